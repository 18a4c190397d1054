from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from factories import make_config, randomise
from transformer_lib.decoding import translator as module

pytestmark = pytest.mark.fast

WORDS = ("she", "sees", "the", "bank", "river", "near", ".", "money", "in", "old")
WOERTER = ("sie", "sieht", "die", "das", "Bank", "Ufer", "am", "Fluss", ".", "Geld", "alte")
TEXTS = ["She sees the bank.", "The old river.", "Money in the bank near the river.", "She.", "Near the money."]


def make(seed=0, **changes):
    torch.manual_seed(seed)
    src, tgt = tl.WordTokenizer(WORDS), tl.WordTokenizer(WOERTER)
    model = tl.Transformer(make_config(src_vocab_size=len(src), tgt_vocab_size=len(tgt), **changes))
    return tl.Translator(randomise(model, 2.0).eval(), src, tgt)


def by_hand(translator, text, **options):
    src = torch.tensor([translator.src_tokenizer.encode(text)])
    decode = tl.beam_search if "beam_size" in options else tl.greedy_decode
    return translator.tgt_tokenizer.decode(decode(translator.model, src, max_new_tokens=11, **options)[0])


@pytest.mark.parametrize("batch", [1, 2, 250])
def test_each_text_gets_its_own_translation(monkeypatch, batch):
    monkeypatch.setattr(module, "_BATCH", batch)
    translator = make()
    found = translator.translate(TEXTS, max_new_tokens=11)
    assert found == [by_hand(translator, text) for text in TEXTS]
    assert len(set(found)) > 1


@pytest.mark.parametrize("options", [{}, {"length_penalty": 0.0}, {"length_penalty": 3.0}])
def test_with_a_beam(options):
    translator = make()
    found = translator.translate(TEXTS, beam_size=3, max_new_tokens=11, **options)
    assert found == [by_hand(translator, text, beam_size=3, **options) for text in TEXTS]


def test_more_tokens_than_the_model_knows_positions_for_are_not_asked_for():
    assert make(max_len=13).translate(TEXTS) == make(max_len=13).translate(TEXTS, max_new_tokens=13)


def test_no_texts():
    assert make().translate([]) == []


@pytest.mark.parametrize(
    "given", [iter, tuple, lambda texts: (text for text in texts), lambda texts: dict.fromkeys(texts).keys()]
)
def test_texts_may_come_from_what_can_be_read_once(given):
    translator = make()
    assert translator.translate(given(TEXTS), max_new_tokens=11) == translator.translate(TEXTS, max_new_tokens=11)
    targets = ["Sie sieht das Ufer."] * len(TEXTS)
    found = translator.log_probabilities(iter(TEXTS), iter(targets))
    assert torch.equal(found, translator.log_probabilities(TEXTS, targets))


@pytest.mark.parametrize("texts", [{"She."}, {"She.": "Sie."}, b"She.", "", b"", None, 7, ["She.", None], [["She."]]])
def test_what_is_no_list_of_texts_is_refused(texts):
    translator = make()
    with pytest.raises(TypeError, match="^texts must be a list of strings, got "):
        translator.translate(texts)
    with pytest.raises(TypeError, match="^src must be a list of strings, got "):
        translator.log_probabilities(texts, ["Sie."])
    with pytest.raises(TypeError, match="^tgt must be a list of strings, got "):
        translator.log_probabilities(["She."], texts)


def test_log_probabilities_of_no_or_unequally_many_texts_are_refused():
    with pytest.raises(ValueError, match="src and tgt must be equally many, got 2 and 1"):
        make().log_probabilities(TEXTS[:2], ["Sie."])
    with pytest.raises(ValueError, match="src and tgt must not be empty, got no text"):
        make().log_probabilities([], [])


def test_pairs_become_batches():
    translator = make()
    pairs = [tl.Pair("She sees the bank.", "Sie sieht das Ufer."), tl.Pair("The bank.", "Die Bank.")] * 3
    batches = translator.batches(pairs, 2, seed=5)
    assert len(batches) == 3 and batches.seed == 5
    assert batches.src[0] == translator.src_tokenizer.encode("She sees the bank.")
    assert batches.tgt[1] == [1, *translator.tgt_tokenizer.encode("Die Bank."), 2]


def test_pairs_that_are_none_or_have_no_source_are_refused():
    translator = make()
    with pytest.raises(TypeError, match=r"pairs must be a list of tl.Pair, got \('She.', 'Sie.'\) at index 0"):
        translator.batches([("She.", "Sie.")], 2)
    with pytest.raises(TypeError, match="pairs must be a list of tl.Pair, got Pair"):
        translator.batches(tl.Pair("She.", "Sie."), 2)
    with pytest.raises(ValueError, match=r"src must have an id in every sentence, got \[\] in sentence 1"):
        translator.batches([tl.Pair("She.", "Sie."), tl.Pair(" ", "Sie.")], 2)


def test_log_probabilities_of_given_translations():
    translator = make()
    src, tgt = ["She sees the bank.", "The river."], ["Sie sieht das Ufer.", "Das Fluss."]
    found = translator.log_probabilities(src, tgt)
    assert found.shape == (2, 6) and not found.requires_grad
    for row, (source, target) in enumerate(zip(src, tgt, strict=True)):
        source_ids = torch.tensor([translator.src_tokenizer.encode(source)])
        ids = translator.tgt_tokenizer.encode(target, bos=True, eos=True)
        for step in range(1, len(ids)):
            with torch.no_grad():
                logits = translator.model(source_ids, torch.tensor([ids[:step]]))[0, -1]
            assert found[row, step - 1] == pytest.approx(logits.log_softmax(-1)[ids[step]].item(), abs=1e-4)
        assert not found[row, len(ids) - 1 :].any()


def test_log_probabilities_are_of_the_model_at_rest():
    translator = make(dropout=0.5)
    wanted = translator.log_probabilities(TEXTS[:1], ["Sie."])
    translator.model.train()
    assert torch.equal(translator.log_probabilities(TEXTS[:1], ["Sie."]), wanted) and translator.model.training


def test_special_ids_other_than_the_tokenizers_are_refused():
    """Padding would be attended to, and no sentence would end."""
    with pytest.raises(ValueError, match=r"model must have the tokenizers' special ids .*'pad_id': 0.*, got .*5"):
        make(pad_id=5, bos_id=6, eos_id=7)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_both_paths_say_the_same(beam_size):
    translator = make()
    options = {"beam_size": beam_size, "max_new_tokens": 11}
    assert translator.translate(TEXTS, path="fast", **options) == translator.translate(TEXTS, **options)


def test_ids_go_to_where_the_model_is(monkeypatch):
    """On a device without numbers nothing is computed, but what arrives can be seen."""
    translator, arrived = make(), []
    translator.model.to("meta")

    def forward(*ids):
        arrived.extend(x.device.type for x in ids)
        return torch.zeros(len(ids[0]), ids[1].shape[1], len(WOERTER) + 4, device="meta")

    monkeypatch.setattr(translator.model, "forward", forward)
    translator.log_probabilities(TEXTS[:1], ["Sie."])
    assert arrived == ["meta", "meta"]


def test_a_translator_can_be_stored(tmp_path):
    translator = make()
    translator.save(tmp_path / "t.safetensors", seed=3, command="make")
    again = tl.Translator.load(tmp_path / "t.safetensors")
    assert again.src_tokenizer.words == translator.src_tokenizer.words
    assert again.tgt_tokenizer.words == translator.tgt_tokenizer.words
    assert again.translate(TEXTS) == translator.translate(TEXTS)
    extra = tl.load_checkpoint(tmp_path / "t.safetensors").extra
    assert extra["provenance"] == {"seed": 3, "command": "make"}


def test_a_checkpoint_without_vocabularies_is_refused(tmp_path):
    tl.save_checkpoint(tmp_path / "t.safetensors", make().model, extra={"step": 3})
    with pytest.raises(ValueError, match=r"checkpoint .* must hold one tokenizer or two vocabularies, got \['step'\]"):
        tl.Translator.load(tmp_path / "t.safetensors")


def test_vocabularies_of_another_size_are_refused():
    translator = make()
    with pytest.raises(ValueError, match="src_tokenizer must have the model's vocabulary size 14, got 15"):
        tl.Translator(translator.model, translator.tgt_tokenizer, translator.tgt_tokenizer)
    with pytest.raises(ValueError, match="tgt_tokenizer must have the model's vocabulary size 15, got 14"):
        tl.Translator(translator.model, translator.src_tokenizer, translator.src_tokenizer)


def test_bad_texts_are_refused():
    translator = make()
    with pytest.raises(TypeError, match="texts must be a list of strings, got 'She sees.'"):
        translator.translate("She sees.")
    with pytest.raises(ValueError, match="each text must have at least one word, got ' '"):
        translator.translate(["She sees.", " "])
    with pytest.raises(ValueError, match="unknown word 'banks', .* close known words: bank"):
        translator.translate(["She sees banks."])
    with pytest.raises(ValueError, match="src has 39 tokens, more than max_len = 37"):
        translator.translate(["she " * 39])


def test_an_unknown_trained_model_is_refused():
    with pytest.raises(ValueError, match="name must be one of 'context', 'draft', got 'wmt14'"):
        tl.load_trained("wmt14")


def test_missing_weights_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(module.TRAINED, "context", tmp_path / "transformer.safetensors")
    with pytest.raises(FileNotFoundError, match=r"checkpoint .*transformer.safetensors does not exist"):
        tl.load_trained("context")
    make().save(tmp_path / "transformer.safetensors")
    assert tl.load_trained("context").src_tokenizer.words[4:] == WORDS


# The model that comes with the course, on a few sentences of its corpus (its scores have tests of their own).


def test_the_trained_model_knows_its_senses():
    pairs = [pair for pair in tl.load_corpus("context")["heldout"] if pair.expected][:200]
    translations = tl.load_trained("context").translate([pair.src for pair in pairs])
    right = tl.metrics.sense_matches(translations, pairs)
    assert sum(right) >= 0.97 * len(right)


def test_a_translator_of_subwords_can_be_stored_too(tmp_path):
    bpe = tl.BPETokenizer.from_texts(TEXTS, vocab_size=300)
    model = randomise(tl.Transformer(make_config(src_vocab_size=len(bpe), tgt_vocab_size=len(bpe))), 2.0).eval()
    translator = tl.Translator(model, bpe, bpe)
    translator.save(tmp_path / "t.safetensors")
    again = tl.Translator.load(tmp_path / "t.safetensors")
    assert again.src_tokenizer is again.tgt_tokenizer
    assert again.src_tokenizer.to_string() == bpe.to_string()
    assert again.translate(TEXTS, max_new_tokens=11) == translator.translate(TEXTS, max_new_tokens=11)
