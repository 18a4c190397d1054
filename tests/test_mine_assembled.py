"""A model put together from a learner's parts computes what the library's does, whoever wrote which part."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

import transformer_lib as tl
from factories import make_model, sources, targets
from transformer_lib.baselines import SelfOnlyTransformer
from transformer_lib.course import exercises, mine
from transformer_lib.course.cells import source_of, tags_of
from transformer_lib.course.mine import AssembledTransformer, Parts
from transformer_lib.course.mine.parts import part_of
from transformer_lib.course.notebooks import NOTEBOOKS, notebook
from transformer_lib.course.teaching import notebook_files

ROOT = Path(__file__).resolve().parents[1]
KEYSTONES = {
    exercise.part: exercise
    for exercise in exercises.all_exercises()
    if exercise.part and part_of(exercise.part).of_model
}


# Parts that are no exercise yet, and others in another style ----------------------------------------------------------

TINY = -1e30


def softmax(scores):
    shifted = (scores - scores.amax(-1, keepdim=True)).exp()
    return shifted / shifted.sum(-1, keepdim=True)


def similarity(query, key):
    return torch.einsum("...id,...jd->...ij", query, key)


def embed(ids, table):
    return torch.stack([table[row] * table.shape[1] ** 0.5 for row in ids])


def decoder_layer(x, memory, self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3):
    steps = [(self_attention, norm_1), (lambda y: cross_attention(y, memory, memory), norm_2), (feed_forward, norm_3)]
    for step, norm in steps:
        x = norm(x + step(x))
    return x


def project(X, W_Q, W_K, W_V):
    return [torch.einsum("...d,de->...e", X, W) for W in (W_Q, W_K, W_V)]


def masked_attention(query, key, value, mask):
    scores = similarity(query, key) * query.shape[-1] ** -0.5
    weights = softmax(scores + (~mask).to(scores) * TINY) * mask
    return [weights @ value, weights]


def causal_mask(seq_len):
    return torch.tensor([[j <= i for j in range(seq_len)] for i in range(seq_len)])


def split_heads(x, n_heads):
    batch, seq_len, width = x.shape
    return x.view(batch, seq_len, n_heads, width // n_heads).permute(0, 2, 1, 3)


def layer_norm(x, gain, bias, eps):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], gain, bias, eps)


def masked_cross_entropy(logits, tgt_out, pad_id):
    return torch.nn.functional.cross_entropy(logits.mT, tgt_out, ignore_index=pad_id)


def greedy_loop(next_logits, bos_id, eos_id, max_new_tokens):
    ids = [bos_id]
    while len(ids) < 1 + max_new_tokens and (len(ids) == 1 or ids[-1] != eos_id):
        ids = [*ids, torch.argmax(next_logits(ids)).item()]
    return ids


def beam_step(scores, next_log_probs, beam_size):
    totals = (scores[:, None] + next_log_probs).flatten()
    order = totals.argsort(descending=True)[:beam_size]
    return totals[order], order.div(next_log_probs.shape[1], rounding_mode="floor"), order % next_log_probs.shape[1]


RESTYLED = (
    softmax,
    similarity,
    embed,
    decoder_layer,
    project,
    masked_attention,
    causal_mask,
    split_heads,
    layer_norm,
    masked_cross_entropy,
    greedy_loop,
    beam_step,
)


# Where the parts come from -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def solutions() -> dict:
    """Run the cells with solutions of all notebooks as a kernel would, without what they print and check."""
    shell = InteractiveShell()
    shell.run_cell("import math\nimport torch\nfrom collections import Counter").raise_error()
    for entry in (*NOTEBOOKS[1:15], notebook("19")):
        for cell in notebook_files.read(ROOT / "notebooks" / entry.filename)["cells"]:
            if "solution" in tags_of(cell):
                source = source_of(cell)
                shell.run_cell(source.partition("\ncheck_solution")[0]).raise_error()
    shell.history_manager.end_session()
    return shell.user_ns


@pytest.fixture
def all_kept(solutions) -> tuple[str, ...]:
    """Every part is the learner's: the notebooks' solutions."""
    for name, exercise in KEYSTONES.items():
        mine.keep(name, solutions[f"{exercise.reference.__name__}_solution"])
    assert len(mine.kept()) == 19
    return mine.kept()


@pytest.fixture(scope="module")
def trained() -> tl.Translator:
    return tl.load_trained("context")


@pytest.fixture(scope="module")
def batch(trained) -> tuple[torch.Tensor, torch.Tensor]:
    pairs = tl.load_corpus("context")["heldout"][:40]
    src = trained.src_tokenizer.encode_batch([pair.src for pair in pairs])
    return src, trained.tgt_tokenizer.encode_batch([pair.tgt for pair in pairs], bos=True, eos=True)


@torch.no_grad()
def distance(first, second, src, tgt_in) -> float:
    """Return the largest difference of the logits, by either way into the second model, over the largest logit."""
    wanted = first(src, tgt_in)
    found = (second(src, tgt_in), second.decode(tgt_in, second.encode(src), src))
    return max((one - wanted).abs().max().item() for one in found) / wanted.abs().max().item()


# The same numbers ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choose", ["all", "none", 0, 1, 2, 3])
def test_the_logits_are_the_librarys(all_kept, trained, batch, choose):
    half = random.Random(choose).sample(all_kept, 9)
    names = {"all": all_kept, "none": ()}.get(choose, half)
    src, tgt = batch
    assert distance(trained.model, mine.assembled(parts=names).model, src, tgt[:, :-1]) < 1e-5


def test_in_double_precision_they_agree_to_1e_5_outright(all_kept, batch):
    mine_, library = mine.assembled().model.double(), tl.load_trained("context").model.double()
    src, tgt = batch
    with torch.no_grad():
        assert (mine_(src, tgt[:, :-1]) - library(src, tgt[:, :-1])).abs().max() < 1e-5


def test_parts_in_another_style(trained, batch):
    for function in RESTYLED:
        mine.keep(function.__name__, function)
    translator, (src, tgt) = mine.assembled(), batch
    assert distance(trained.model, translator.model, src, tgt[:, :-1]) < 1e-5
    texts = [trained.src_tokenizer.decode(row) for row in src[:3]]
    for beam_size in (1, 3):
        assert translator.translate(texts, beam_size=beam_size) == trained.translate(texts, beam_size=beam_size)


def test_each_part_is_asked(all_kept):
    """No part may be the learner's in name only: each is called where the model, its loss or its decoding needs it."""
    translator, called = mine.assembled(), set()
    for name, function in translator.parts.theirs.items():
        setattr(translator.parts, name, lambda *args, f=function, n=name: (called.add(n), f(*args))[1])
    translator.translate(["The man saw the bank near the river."])
    translator.translate(["The man saw the bank near the river."], beam_size=2)
    translator.model.loss(torch.tensor([[5, 6]]), torch.tensor([[1, 5, 2]]))
    assert set(all_kept) - called == {"stack_logits"}


# Translating and training --------------------------------------------------------------------------------------------


def test_it_translates(all_kept, trained, batch):
    texts = [trained.src_tokenizer.decode(row) for row in batch[0][:6]]
    translator = mine.assembled()
    for options in (
        {},
        {"beam_size": 2},
        {"beam_size": 4, "length_penalty": 1.5},
        {"max_new_tokens": 3, "beam_size": 3},
    ):
        assert translator.translate(texts, **options) == trained.translate(texts, **options)
    with pytest.raises(ValueError, match="path must be 'readable' for a model of your own parts, got 'fast'"):
        translator.translate(texts, path="fast")


def test_beams_are_the_librarys_also_where_the_model_is_unsure():
    model = make_model(3, scale=1.5, norm_first=False)
    own = AssembledTransformer(model, Parts({}))
    words = [tl.WordTokenizer([f"w{i}" for i in range(size - 4)]) for size in (23, 29)]
    assert [len(one) for one in words] == [23, 29]
    library, translator = tl.Translator(model, *words), mine.MyTranslator(own, *words)
    texts = [words[0].decode(row) for row in sources(padded=False).clamp(min=4)]
    for options in ({"beam_size": 1}, {"beam_size": 2}, {"beam_size": 5, "length_penalty": 0.0}):
        assert translator.translate(texts, max_new_tokens=9, **options) == library.translate(
            texts, max_new_tokens=9, **options
        )


def test_loss_and_gradients_are_the_librarys(all_kept):
    model = make_model()
    own = AssembledTransformer(model, mine.assembled().parts)
    src, tgt = sources(), targets(padded=True)
    loss = own.loss(src, tgt)
    found = torch.autograd.grad(loss, list(own.parameters()))
    tgt_in, tgt_out = tl.shift_right(tgt)
    wanted = tl.translation_loss(model(src, tgt_in), tgt_out, pad_id=0)
    torch.testing.assert_close(loss, wanted)
    for one, other in zip(found, torch.autograd.grad(wanted, list(model.parameters())), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_the_library_trains_it(all_kept, trained):
    pairs = tl.load_corpus("context")["train"][:32]
    sizes = {
        "src_vocab_size": trained.model.config.src_vocab_size,
        "tgt_vocab_size": trained.model.config.tgt_vocab_size,
    }
    torch.manual_seed(0)
    model = tl.Transformer(tl.TransformerConfig(**sizes, d_model=16, n_heads=2, n_layers=1, d_ff=16, max_len=64))
    fresh = tl.Translator(model, trained.src_tokenizer, trained.tgt_tokenizer)
    translator = mine.assembled(fresh)
    history = tl.train(translator.model, translator.batches(pairs, 16), epochs=2, progress=False)
    assert history.loss[-1] < history.loss[0]
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_attention_can_be_recorded(all_kept, batch):
    model = mine.assembled().model
    with tl.record_attention(model) as record:
        model(batch[0][:2], batch[1][:2, :-1])
    assert len(record) == 6 and all(weights.dim() == 4 for weights in record.values())
    assert math.isclose(next(iter(record.values())).sum(-1)[0, 0, 0].item(), 1.0, rel_tol=1e-5)


# A single stack ------------------------------------------------------------------------------------------------------


@pytest.fixture
def language_model() -> tl.LanguageModel:
    torch.manual_seed(0)
    model = tl.LanguageModel(23, 2, 16, 4, 32, position="sinusoidal")
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)  # gains and biases, too
    return model


@pytest.mark.parametrize("whose", ["theirs", "the library's"])
def test_a_stack_of_their_parts_has_the_librarys_logits(all_kept, language_model, whose):
    parts = None if whose == "theirs" else ()
    own = mine.assembled_stack(language_model.embedding, language_model.stack, parts=parts)
    ids = torch.randint(4, 23, (3, 9), generator=torch.Generator().manual_seed(1))
    ids[1, 6:] = 0
    real = tl.padding_mask(ids, 0)
    for lengths in (None, torch.tensor([0, 4, 9])):
        mask = real & tl.prefix_mask(torch.zeros(3, dtype=torch.long) if lengths is None else lengths, 9)
        with torch.no_grad():
            torch.testing.assert_close(own(ids, lengths), language_model(ids, mask), rtol=1e-4, atol=1e-5)


def test_a_stack_without_biases_gives_the_parts_zeros(all_kept):
    torch.manual_seed(0)
    model = tl.LanguageModel(23, 2, 16, 4, 32, position="sinusoidal", bias=False)
    ids = torch.randint(1, 23, (3, 9), generator=torch.Generator().manual_seed(1))
    own = mine.assembled_stack(model.embedding, model.stack)
    torch.testing.assert_close(own(ids), model(ids), rtol=1e-4, atol=1e-5)


def test_a_stack_asks_each_part_of_it(all_kept, language_model):
    own, called = mine.assembled_stack(language_model.embedding, language_model.stack), set()
    for name, function in own.parts.theirs.items():
        setattr(own.parts, name, lambda *args, f=function, n=name: (called.add(n), f(*args))[1])
    own(torch.tensor([[5, 6, 7]])).sum().backward()
    assert called >= {"embed", "sinusoidal_table", "stack_logits", "encoder_layer", "masked_attention", "layer_norm"}
    assert "decoder_layer" not in called and all(parameter.grad is not None for parameter in own.parameters())


def test_a_stack_of_another_form_is_refused(language_model):
    for options, found in (
        ({"norm_first": True}, "layers.0.self_attention_residual.norm_first"),
        ({"position": "rotary"}, "layers.0.self_attention.position"),
        ({"activation": "gelu"}, "layers.0.feed_forward.activation"),
        ({"attention_bias": True}, "layers.0.self_attention.w_q.bias"),
        ({"final_norm": True}, r"norm \(final_norm=True\)"),
    ):
        message = f"stack must be post-norm, with its positions outside .*, got another {found}"
        with pytest.raises(ValueError, match=message):
            mine.assembled_stack(language_model.embedding, tl.Encoder(1, 16, 4, 32, **options))
    language_model.stack.layers[1].self_attention.dropout = 0.1
    with pytest.raises(ValueError, match="got another layers.1.self_attention.dropout"):
        mine.assembled_stack(language_model.embedding, language_model.stack)
    language_model.stack.layers[1].self_attention.dropout = 0.0
    language_model.embedding.max_norm = 1.0
    with pytest.raises(ValueError, match="embedding must have max_norm None, got 1.0"):
        mine.assembled_stack(language_model.embedding, language_model.stack)
    language_model.embedding.max_norm = None
    own = mine.assembled_stack(language_model.embedding, language_model.stack)
    with pytest.raises(ValueError, match="ids"):
        own(torch.tensor([[5, 23]]))


# What is refused -----------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_refused(trained):
    mine.keep("softmax", softmax)
    with pytest.raises(ValueError, match="parts must be among yours, softmax, got embed"):
        mine.assembled(parts=["embed"])
    words = (trained.src_tokenizer, trained.tgt_tokenizer)
    config = trained.model.config.to_dict()
    for change in ({"norm_first": True}, {"position": "rotary"}):
        other = tl.Translator(tl.Transformer(tl.TransformerConfig(**{**config, **change})), *words)
        message = "translator must have a Transformer with norm_first=False and position='sinusoidal', got "
        with pytest.raises(ValueError, match=f"{message}{next(iter(change))}="):
            mine.assembled(other)


def gelu(model):
    model.decoder.layers[1].feed_forward.activation = "gelu"


def flipped(model):
    model.encoder.layers[0].feed_forward_residual.norm_first = True


def biased(model):
    model.encoder.layers[0].self_attention = tl.MultiHeadAttention(30, 3, bias=True)


def normed_at_the_end(model):
    model.decoder.norm = tl.LayerNorm(30)


def dropping_weights(model):
    model.encoder.layers[0].self_attention.dropout = 0.1


def shortened(model):
    model.src_embedding.max_norm = 1.0


def other_constants(model):
    model.position.table += 0.1


def cut_down(model):
    return SelfOnlyTransformer(model.config)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (gelu, "one in which decoder.layers.1.feed_forward.activation is 'gelu', where its config builds 'relu'"),
        (flipped, "one in which encoder.layers.0.feed_forward_residual.norm_first is True"),
        (biased, "one in which encoder.layers.0.self_attention.w_k is a Linear .*bias"),
        (normed_at_the_end, "one in which decoder.norm is a LayerNorm"),
        (dropping_weights, "one in which encoder.layers.0.self_attention.dropout is 0.1"),
        (shortened, "one in which src_embedding.max_norm is 1.0"),
        (other_constants, "one in which position.table holds other numbers than its config builds"),
        (cut_down, "a SelfOnlyTransformer"),
    ],
)
def test_a_model_that_the_parts_do_not_compute_is_refused(change, reason):
    model = make_model()
    other = change(model)
    with pytest.raises(ValueError, match=f"translator must have a Transformer with .*, got {reason}"):
        AssembledTransformer(model if other is None else other, Parts({}))


def test_what_the_parts_are_given_may_differ():
    """ε, dropout's p, and tied tables are the model's own; a model made in another type is still itself."""
    model = make_model(dtype=torch.float64, dropout=0.3, src_vocab_size=29, tie_embeddings=True)
    for part in model.modules():
        if isinstance(part, tl.LayerNorm):
            part.eps = 0.2
    model.dropout.p = 0.1
    own = AssembledTransformer(model, Parts({}))
    torch.testing.assert_close(own(sources(), targets()), model(sources(), targets()), rtol=0, atol=1e-5)


def test_a_file_that_lost_its_function_is_refused():
    mine.keep("softmax", softmax)
    file = mine.folder() / "my_transformer.py"
    file.write_text(file.read_text("utf-8").replace("def softmax", "def sofmax"), "utf-8")
    with pytest.raises(ValueError, match="my_transformer.py must define a function softmax, got none: mend it"):
        mine.assembled()
    file.write_text(file.read_text("utf-8") + "\n1 / 0\n", "utf-8")
    with pytest.raises(ValueError, match=r"cannot be imported \(ZeroDivisionError: division by zero\)"):
        mine.assembled()
