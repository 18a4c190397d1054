"""The decoder stepper: what it replays is what the library decodes, and what it shows is what the model computes."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from factories import make_model
from transformer_lib import progress, widgets
from transformer_lib.widgets.decoder_stepper import BEAM_SIZES, draw_step, replay

SENTENCES = ["The cat sat near the river.", "A dog slept."]


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_COURSE_PROGRESS", str(tmp_path / "progress.json"))
    monkeypatch.delenv("TRANSFORMER_COURSE_STATIC", raising=False)


@pytest.fixture(scope="module")
def translator():
    """An untrained translator with large weights, so that its probabilities differ."""
    src = tl.WordTokenizer.from_texts(SENTENCES)
    tgt = tl.WordTokenizer([f"w{i}" for i in range(13)])
    sizes = {"src_vocab_size": len(src), "tgt_vocab_size": len(tgt), "max_len": 19}
    return tl.Translator(make_model(3, scale=1.5, dtype=torch.float64, **sizes), src, tgt)


def decoded(translator, sentence, beams):
    src = translator.src_tokenizer.encode_batch([sentence])
    if beams == 1:
        return tl.greedy_decode(translator.model, src, max_new_tokens=19)[0].tolist()
    return tl.beam_search(translator.model, src, beam_size=beams, max_new_tokens=19)[0].tolist()


@pytest.mark.parametrize("beams", BEAM_SIZES)
@pytest.mark.parametrize("sentence", SENTENCES)
def test_the_replay_ends_in_what_the_library_decodes(translator, sentence, beams):
    shown = replay(translator, sentence, beams)
    assert list(shown.ranked[0].ids) == decoded(translator, sentence, beams)
    assert [step.before for step in shown.steps[1:]] == [step.kept for step in shown.steps[:-1]]
    assert shown.source == tuple(tl.WordTokenizer.tokenize(sentence))


def test_scores_are_summed_log_probabilities(translator):
    src = translator.src_tokenizer.encode_batch(SENTENCES[:1])
    for step in replay(translator, SENTENCES[0], 3).steps:
        for ids, score in step.kept:
            log_probs = translator.model(src, torch.tensor([ids[:-1]])).log_softmax(-1)[0]
            assert score == pytest.approx(log_probs[range(len(ids) - 1), ids[1:]].sum().item(), abs=1e-9)


def test_candidates_and_cross_attention_are_those_of_the_best_beginning(translator):
    src, model = translator.src_tokenizer.encode_batch(SENTENCES[:1]), translator.model
    for step in replay(translator, SENTENCES[0], 2).steps:
        with tl.record_attention(model) as weights, torch.no_grad():
            probabilities = model(src, torch.tensor([step.before[0][0]]))[0, -1].softmax(-1)
        assert [p for _, p in step.top] == pytest.approx(sorted(probabilities.tolist(), reverse=True)[:5], abs=1e-9)
        assert all(probabilities[i].item() == pytest.approx(p, abs=1e-9) for i, p in step.top)
        cross = weights["decoder.layers.1.cross_attention"][0, :, -1].mean(0)
        torch.testing.assert_close(torch.tensor(step.cross), cross.double())


def test_the_model_keeps_its_mode(translator):
    translator.model.train()
    try:
        replay(translator, SENTENCES[1], 2)
        assert translator.model.training
    finally:
        translator.model.eval()


def test_each_step_is_drawn_with_its_words_and_a_step_too_many_shows_the_last(translator):
    shown = replay(translator, SENTENCES[1], 2)
    last = len(shown.steps)
    for number, step in enumerate(shown.steps, 1):
        picture = draw_step(shown, number)
        assert picture.says.startswith(f"step {number} of {last}: after “{shown.written(step.before[0][0])}”")
        assert [row[0] for row in picture.table[1:]] == [shown.words[i] for i, _ in step.top]
        if number < last:
            going_on = {ids for ids, _ in step.kept} | {hypothesis.ids for hypothesis in step.ended}
            kept = sum((*step.before[0][0], token) in going_on for token, _ in step.top)
            assert picture.svg.count("← kept") == kept
    assert f"result “{shown.written(shown.ranked[0].ids[1:])}”" in draw_step(shown, last).says
    assert draw_step(shown, last + 5) == draw_step(shown, last)
    assert len({draw_step(shown, number).height for number in range(1, last + 1)}) == 1


def test_a_long_source_goes_on_in_a_second_line(translator):
    short, long = (replay(translator, " ".join(["river"] * n), 1, max_new_tokens=2) for n in (3, 17))
    assert draw_step(long, 1).height == draw_step(short, 1).height + 44
    assert "river₁₇" in draw_step(long, 1).svg


def test_the_controls_move_it_and_the_first_move_is_remembered(translator):
    panel = widgets.decoder_stepper(translator, SENTENCES)
    assert list(panel.controls) == ["sentence", "step", "beams"]
    before = panel.picture.svg
    assert panel.set(beams=2, step=2).picture.svg != before
    assert progress.state()["widget"] == {}
    panel.controls["step"].slider.value = 3
    panel.controls["sentence"].value = 2
    assert "dog" in panel.picture.svg
    assert list(progress.state()["widget"]) == ["W10"]
    assert list(widgets.decoder_stepper(translator, SENTENCES[:1]).controls) == ["step", "beams"]


def test_the_saved_form_is_the_same_twice_and_small(translator):
    first, second = (widgets.decoder_stepper(translator, SENTENCES)._repr_mimebundle_() for _ in range(2))
    assert first["text/html"] == second["text/html"]
    assert len(first["text/html"]) <= 50_000
    assert first["text/plain"].startswith("The decoder writing, source the cat sat near the river .: step 1 of ")


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        ("The cat.", TypeError, "sentences must be a list of strings, got one string: 'The cat.'"),
        ([], ValueError, "sentences must hold at least one sentence, got none"),
        (["The catt slept."], ValueError, "unknown word 'catt'.*cat"),
    ],
)
def test_what_cannot_be_shown_is_refused(translator, sentences, error, message):
    with pytest.raises(error, match=message):
        widgets.decoder_stepper(translator, sentences)
