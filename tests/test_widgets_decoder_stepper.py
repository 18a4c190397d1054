"""The decoder stepper: what it replays is what the library decodes, and what it shows is what the model computes."""

from __future__ import annotations

import itertools

import pytest
import torch

import small_panels
import transformer_lib as tl
from small_panels import SENTENCES
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg import beam_tree
from transformer_lib.course.figures.svg.beam_tree import Node
from transformer_lib.course.figures.widgets.controls import steps
from transformer_lib.course.figures.widgets.decoder_stepper_panel import BEAM_SIZES, draw_step, replay, tree


@pytest.fixture
def translator():
    return small_panels.translator()


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


@pytest.mark.parametrize("beams", BEAM_SIZES)
def test_the_replay_is_what_a_padded_batch_decodes(translator, beams):
    src = translator.src_tokenizer.encode_batch(SENTENCES)
    batch = tl.beam_hypotheses(translator.model, src, beam_size=beams, max_new_tokens=19)
    for sentence, expected in zip(SENTENCES, batch, strict=True):
        best = replay(translator, sentence, beams, max_new_tokens=19).ranked[0]
        assert best.ids == expected[0].ids
        assert best.log_probability == pytest.approx(expected[0].log_probability, abs=1e-5)


@pytest.mark.parametrize("beams", [1, 3])
def test_the_dropped_are_the_best_of_all_continuations_that_were_not_taken(translator, beams):
    src = translator.src_tokenizer.encode_batch(SENTENCES[:1])
    for step in replay(translator, SENTENCES[0], beams).steps:
        totals = {}
        for ids, score in step.before:
            log_probs = translator.model(src, torch.tensor([ids]))[0, -1].log_softmax(-1)
            totals |= {(*ids, token): score + gain for token, gain in enumerate(log_probs.tolist())}
        taken = [ids for ids, _ in step.kept] + [hypothesis.ids for hypothesis in step.ended]
        left = sorted((ids for ids in totals if ids not in taken), key=totals.get, reverse=True)
        assert [ids for ids, _ in step.dropped] == left[:2]
        assert [score for _, score in step.dropped] == pytest.approx([totals[ids] for ids in left[:2]], abs=1e-9)


def test_the_tree_has_every_beginning_below_its_own_and_the_best_first(translator):
    shown = replay(translator, SENTENCES[0], 3)
    columns = tree(shown, len(shown.steps))
    assert [node.path for node in columns[0]] == [(translator.model.config.bos_id,)]
    for before, column in itertools.pairwise(columns):
        open_ones = {node.path for node in before if node.state == "kept"}
        assert {node.path[:-1] for node in column} <= open_ones
        assert [node.score for node in column] == sorted((node.score for node in column), reverse=True)
    ends = {node.path for column in columns for node in column if node.state == "ended"}
    ends |= {node.path for node in columns[-1] if node.state == "kept"}
    assert ends == {hypothesis.ids for hypothesis in shown.ranked}
    assert tree(shown, 2) == columns[:3]


def test_the_drawn_tree_tells_what_leads_on_from_what_was_dropped():
    columns = [
        [Node((1,), "bos", 0.0, "kept")],
        [Node((1, 5), "ask", -0.5, "kept"), Node((1, 6), "follow", -0.9, "kept")],
        [Node((1, 6, 7), "the", -0.9, "ended"), Node((1, 5, 8), "my", -1.6, "dropped")],
    ]
    assert beam_tree.alive(columns) == {(1,), (1, 6), (1, 6, 7)}
    assert beam_tree.alive(columns[:2]) == {(1,), (1, 5), (1, 6)}
    drawn = beam_tree.draw_tree(columns, 0, (1, 6, 7))
    assert (drawn.count("<line"), drawn.count("stroke-dasharray"), drawn.count(beam_tree.CURRENT)) == (4, 2, 2)
    assert drawn.count('class="bold"') == 3 and "✓ the" in drawn
    longer = [*columns[:1], *([Node((1, *[5] * n), f"w{n}", -n, "kept")] for n in range(1, 10))]
    drawn = beam_tree.draw_tree(longer, 0, ())
    assert "w4" in drawn and "w3" not in drawn and drawn.count("<line") == beam_tree.COLUMNS - 1
    assert beam_tree.height(columns) == 2 * beam_tree.height(longer)


def test_the_buttons_step_and_stay_within_the_bounds():
    control = steps("step", 3)
    assert list(control.buttons) == ["back", "next", "reset"]
    for name, expected in [("back", 1), ("next", 2), ("next", 3), ("next", 3), ("back", 2), ("reset", 1)]:
        control.buttons[name].click()
        assert control.value == control.box.value == control.slider.value == expected
    with pytest.raises(ValueError, match="last must be at least 1, got 0"):
        steps("step", 0)


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


def test_the_buttons_move_the_panel_and_one_sentence_needs_no_choice(translator):
    panel = widgets.decoder_stepper(translator, SENTENCES).set(beams=2, step=2)
    panel.controls["step"].buttons["next"].click()
    assert panel.values["step"] == 3 and panel.picture.says.startswith("step 3 of ")
    assert "dog" in panel.set(sentence=2).picture.svg
    assert list(widgets.decoder_stepper(translator, SENTENCES[:1]).controls) == ["step", "beams"]
