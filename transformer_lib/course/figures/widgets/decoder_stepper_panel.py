"""W10, the decoder stepper: a sentence written token by token, by greedy choice or by several beams."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

from ....decoding.beam import BeamStep, Hypothesis, beam_hypotheses
from ....decoding.translator import Translator
from ....model.evaluating import evaluating
from ....model.recording import record_attention
from ..plotting.base import check_sentences, distinct_tokens, signed_text, weight_text
from ..svg.beam_tree import Node, draw_tree
from ..svg.beam_tree import height as tree_height
from ..svg.colours import ink_kind, weight_colour
from ..svg.elements import LINE, Picture, fit, line, rect, text, text_width
from .controls import choice, steps
from .panel import Panel

BEAM_SIZES = (1, 2, 3, 4)
_WIDTH, _ROW, _BAR_X, _BAR = 700, 22, 150, 320
_DROPPED = 2  # continuations that were not kept, shown at each step
Beginnings = tuple[tuple[tuple[int, ...], float], ...]  # (ids, summed log-probability), best first


@dataclass(frozen=True)
class Step:
    """One step of writing a sentence.

    Args:
        before: the prefixes that the decoder reads, (ids from bos on, summed log-probability), best first.
        kept, ended: what becomes of them: prefixes that go on, and hypotheses that took eos.
        dropped: the best continuations that were neither, with their summed log-probabilities.
        top: (id, probability) of the likeliest next tokens after the best prefix.
        cross: [src_len], the last layer's cross-attention in the best prefix's last row, mean over heads.
    """

    before: Beginnings
    kept: Beginnings
    ended: tuple[Hypothesis, ...]
    dropped: Beginnings
    top: tuple[tuple[int, float], ...]
    cross: np.ndarray


@dataclass(frozen=True)
class Replay:
    """A sentence written to its end: the source's words, every step, the hypotheses, best first."""

    source: tuple[str, ...]
    words: tuple[str, ...]  # the target vocabulary
    steps: tuple[Step, ...]
    ranked: tuple[Hypothesis, ...]

    def written(self, ids: Sequence[int]) -> str:
        """Return the words of target ids."""
        return " ".join(self.words[i] for i in ids)


def decoder_stepper(translator: Translator, sentences: Sequence[str], *, max_new_tokens: int = 30) -> Panel:
    """Watch `translator` write its translation of a sentence, step by step, with 1 (greedy) to 4 beams.

    Raises:
        TypeError, ValueError: `sentences` is one string or none, or has a word that the translator does not know.
    """
    check_sentences(sentences)
    replays = cache(lambda index, beams: replay(translator, sentences[index], beams, max_new_tokens=max_new_tokens))
    longest = max(len(replays(index, beams).steps) for index in range(len(sentences)) for beams in BEAM_SIZES)

    def draw(step: int, beams: int, sentence: int = 1) -> Picture:
        return draw_step(replays(sentence - 1, beams), step)

    several = len(sentences) > 1
    controls: dict[str, Any] = {"sentence": choice("sentence", range(1, len(sentences) + 1))} if several else {}
    controls["step"] = steps("step", longest)
    controls["beams"] = choice("beams", BEAM_SIZES)
    return Panel(draw, controls, widget_id="W10")


@torch.no_grad()
def replay(translator: Translator, sentence: str, beam_size: int, *, max_new_tokens: int = 30) -> Replay:
    """Decode one sentence with `beam_size` beams and record every step."""
    model, tokenizer = translator.model, translator.src_tokenizer
    src = tokenizer.encode_batch([sentence])
    seen: list[BeamStep] = []
    limit = min(max_new_tokens, model.config.max_len)
    ranked = beam_hypotheses(model, src, beam_size=beam_size, max_new_tokens=limit, on_step=seen.append)[0]
    before, steps = (((model.config.bos_id,), 0.0),), []
    for step in seen:
        taken = {ids for ids, _ in step.kept} | {hypothesis.ids for hypothesis in step.ended}
        dropped, top, cross = _look(translator, src, before, taken)
        steps.append(Step(before, step.kept, step.ended, dropped, top, cross))
        before = step.kept
    source = tuple(tokenizer.words[i] for i in src[0].tolist())
    return Replay(source, tuple(translator.tgt_tokenizer.words), tuple(steps), tuple(ranked))


def _look(
    translator: Translator, src: torch.Tensor, before: Beginnings, taken: Collection[tuple[int, ...]], count: int = 5
) -> tuple[Beginnings, tuple[tuple[int, float], ...], np.ndarray]:
    """Return the best continuations not taken, and the best prefix's likeliest tokens and cross-attention."""
    model = translator.model
    with evaluating(model), record_attention(model) as weights:
        logits = model(src.expand(len(before), -1), src.new_tensor([ids for ids, _ in before]))[:, -1]
    totals = logits.log_softmax(-1) + logits.new_tensor([score for _, score in before])[:, None]
    scores, flat = totals.flatten().topk(min(len(taken) + _DROPPED, totals.numel()))
    ranked = [
        ((*before[at // logits.shape[1]][0], at % logits.shape[1]), score)
        for at, score in zip(flat.tolist(), scores.tolist(), strict=True)
    ]
    dropped = [(ids, score) for ids, score in ranked if ids not in taken][:_DROPPED]
    values, tokens = logits[0].softmax(-1).topk(min(count, logits.shape[1]))
    cross = weights[f"decoder.layers.{model.config.n_layers - 1}.cross_attention"][0, :, -1].mean(0)
    return tuple(dropped), tuple(zip(tokens.tolist(), values.tolist(), strict=True)), cross.double().numpy()


def draw_step(shown: Replay, step_number: int) -> Picture:
    """Draw one step, counted from 1; a number beyond the last step shows the last."""
    step_number = min(step_number, len(shown.steps))
    step = shown.steps[step_number - 1]
    parts, y = _source(shown.source, step.cross)
    parts.append(text(10, y + 20, "written so far", "bold"))
    parts.append(text(_BAR_X, y + 20, fit(shown.written(step.before[0][0]), _WIDTH - _BAR_X - 10)))
    y += 36
    parts += _candidates(shown, step_number, y)
    y += 8 + _ROW * len(step.top)
    rows = max(len(_after(shown, n)) for n in range(1, len(shown.steps) + 1))  # so that the height stays
    parts += _beams(shown, step_number, y)
    y += 34 + _ROW * rows
    parts += [line(10, y, _WIDTH - 10, y, LINE), text(10, y + 20, "the tree, with sums of log p", "bold")]
    parts.append(text(_WIDTH - 10, y + 20, "solid: leads on; dashed: dropped; ✓ ended", "end soft"))
    parts.append(draw_tree(tree(shown, step_number), y + 32, _leading(shown, step_number)))
    y += 36 + tree_height(tree(shown, len(shown.steps)))
    says = describe(shown, step_number)
    table = [["next token", "probability"], *([shown.words[i], weight_text(p)] for i, p in step.top)]
    alt = f"The decoder writing, source {' '.join(shown.source)}: {says}."
    return Picture("".join(parts), _WIDTH, int(y), alt, says, table=table)


def tree(shown: Replay, step_number: int) -> list[list[Node]]:
    """Return one column per token up to this step, each with its prefixes, the best first."""
    columns = [[Node(ids, shown.written(ids), score, "kept") for ids, score in shown.steps[0].before]]
    results = {hypothesis.ids for hypothesis in shown.ranked}
    for number, step in enumerate(shown.steps[:step_number], 1):
        over = number == len(shown.steps)  # what is still open then counts only if it became a result
        kept = [(ids, score, "kept") for ids, score in step.kept if not over or ids in results]
        lost = [(ids, score, "dropped") for ids, score in step.kept if over and ids not in results]
        lost += [(ids, score, "dropped") for ids, score in step.dropped]
        lost.sort(key=lambda node: -node[1])
        nodes = kept + [(h.ids, h.log_probability, "ended") for h in step.ended] + lost[:_DROPPED]
        nodes.sort(key=lambda node: -node[1])
        columns.append([Node(ids, shown.words[ids[-1]], score, state) for ids, score, state in nodes])
    return columns


def _leading(shown: Replay, step_number: int) -> tuple[int, ...]:
    """Return the prefix with the largest sum; at the end the sentence that won."""
    if step_number == len(shown.steps):
        return shown.ranked[0].ids
    return max(_after(shown, step_number), key=lambda row: row[1])[0]


def describe(shown: Replay, step_number: int) -> str:
    """Describe the step in one line: what was written, what comes next, and at the end the sentence."""
    step = shown.steps[step_number - 1]
    token, probability = step.top[0]
    ids, _ = step.before[0]
    says = f"step {step_number} of {len(shown.steps)}: after “{shown.written(ids)}” the likeliest is "
    says += f"{shown.words[token]} {weight_text(probability)}"
    if step.dropped:
        lost, score = step.dropped[0]
        says += f"; the best of the dropped ends in “{shown.words[lost[-1]]}”, {signed_text(score)}"
    if step_number == len(shown.steps):
        best = shown.ranked[0]
        says += f"; result “{shown.written(best.ids[1:])}”, "
        says += f"summed log-probability {signed_text(best.log_probability)}"
    return says


def _source(tokens: Sequence[str], cross: np.ndarray) -> tuple[list[str], float]:
    """Draw the source's words with their cross-attention weights, in lines; also returns where they end."""
    parts = [text(10, 16, "cross-attention: what the last layer reads to choose the next token", "bold")]
    x, y = 10.0, 24.0
    for label, weight in zip(distinct_tokens(tokens), cross, strict=True):
        width = max(40.0, text_width(label) + 14)
        if x + width > _WIDTH - 6:
            x, y = 10.0, y + 44
        colour = weight_colour(weight)
        parts.append(text(x + width / 2, y + 13, label, "mid"))
        parts.append(rect(x, y + 18, width - 2, 20, colour))
        parts.append(text(x + width / 2, y + 32, weight_text(float(weight)), f"mid {ink_kind(colour)}", size=11))
        x += width
    return parts, y + 44


def _candidates(shown: Replay, step_number: int, y: float) -> list[str]:
    """Draw the likeliest next tokens as bars; the ones that were taken are marked."""
    step = shown.steps[step_number - 1]
    taken = {ids for ids, *_ in _after(shown, step_number)}
    parts = [text(10, y + 15, "next token", "bold")]
    for rank, (token, probability) in enumerate(step.top):
        at = y + rank * _ROW
        parts.append(text(_BAR_X, at + 15, fit(shown.words[token], 130)))
        parts.append(rect(_BAR_X + 130, at + 3, _BAR, _ROW - 7, "none", f'stroke="{LINE}"'))
        parts.append(rect(_BAR_X + 130, at + 3, max(1.0, _BAR * probability), _ROW - 7, weight_colour(probability)))
        mark = " ← kept" if (*step.before[0][0], token) in taken else ""
        parts.append(text(_BAR_X + 138 + _BAR, at + 15, weight_text(probability) + mark))
    return parts


def _beams(shown: Replay, step_number: int, y: float) -> list[str]:
    """Write what there is after the step, a line each, with its summed log-probability."""
    rows = _after(shown, step_number)
    title = "hypotheses, best first" if step_number == len(shown.steps) else "kept after this step"
    parts = [line(10, y, _WIDTH - 10, y, LINE), text(10, y + 20, title, "bold")]
    parts.append(text(_WIDTH - 10, y + 20, "sum of log p", "end bold"))
    for rank, (ids, score, mark) in enumerate(rows):
        at = y + 42 + rank * _ROW
        parts.append(text(10, at, fit(mark + shown.written(ids[1:]), _WIDTH - 90)))
        parts.append(text(_WIDTH - 10, at, signed_text(score), "end"))
    return parts


def _after(shown: Replay, step_number: int) -> list[tuple[tuple[int, ...], float, str]]:
    """Return (ids, summed log-probability, mark) of prefixes and new hypotheses; at the end, of all hypotheses."""
    if step_number == len(shown.steps):
        return [(h.ids, h.log_probability, "✓ ") for h in shown.ranked[:4]]
    step = shown.steps[step_number - 1]
    ended = [(h.ids, h.log_probability, "✓ ") for h in step.ended]
    return ended + [(ids, score, "") for ids, score in step.kept]
