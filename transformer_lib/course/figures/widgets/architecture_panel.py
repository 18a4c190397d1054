"""W15, the map of the whole model: its parts in order, the shape or the numbers at each, and who builds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from ....decoding.translator import Translator
from ....model.config import TransformerConfig
from ... import notebooks as course
from ..svg import flow
from ..svg.elements import Picture, escape, text
from . import model_numbers
from .controls import number, word
from .panel import Panel
from .spots import Spot

Sizes = dict[str, int]
_ENCODER_X, _DECODER_X, _BOTTOM, _STEP = 190.0, 520.0, 490.0, 46.0


@dataclass(frozen=True)
class Step:
    """One part of the model.

    Args:
        label, kind: what its box says, and its kind (see `flow.FILLS`).
        axes: names of the axes of its output. idea: what it does, in a few words.
        notebooks: numbers of the notebooks that build it.
        module: its dotted name inside `tl.Transformer`, "" for what is no module.
        inner: axes of what it computes on the way: attention weights, or the hidden layer.
    """

    label: str
    kind: str
    axes: str
    idea: str
    notebooks: tuple[str, ...]
    module: str = ""
    inner: str = ""


OTHERS = ("The man saw the bank near the money.", "The child saw the bat near the cave.")  # where nothing can be typed
_X, _Y = "batch, src_len, d_model", "batch, tgt_len, d_model"
_ENC, _DEC = "encoder.layers.0.", "decoder.layers.0."
_KEPT = "the input is kept and added"
_ALONE = "each word is worked on alone"
STEPS = (
    Step("source ids", "data", "batch, src_len", "words as numbers", ("05",)),
    Step("embedding × √d_model", "embedding", _X, "a learned vector per word", ("05",), "src_embedding"),
    Step("+ positions", "embedding", _X, "where each word stands", ("06",), "position"),
    Step(
        "self-attention",
        "attention",
        _X,
        "every source word reads all of them",
        ("01", "02", "03", "04", "08"),
        _ENC + "self_attention",
        "batch, n_heads, src_len, src_len",
    ),
    Step("add & norm", "norm", _X, _KEPT, ("09",), _ENC + "self_attention_residual"),
    Step("feed-forward", "feed-forward", _X, _ALONE, ("09",), _ENC + "feed_forward", "batch, src_len, d_ff"),
    Step("add & norm", "norm", _X, "the end of a layer", ("09", "10"), _ENC + "feed_forward_residual"),
    Step("memory", "data", _X, "the source, ready to be read", ("10",), "encoder"),
    Step("target ids, shifted", "data", "batch, tgt_len", "the translation so far", ("07", "13")),
    Step("embedding × √d_model", "embedding", _Y, "a learned vector per word", ("05",), "tgt_embedding"),
    Step("+ positions", "embedding", _Y, "where each word stands", ("06",), "position"),
    Step(
        "masked self-attention",
        "attention",
        _Y,
        "each target word reads itself and earlier ones",
        ("07", "11"),
        _DEC + "self_attention",
        "batch, n_heads, tgt_len, tgt_len",
    ),
    Step("add & norm", "norm", _Y, _KEPT, ("09",), _DEC + "self_attention_residual"),
    Step(
        "cross-attention",
        "attention",
        _Y,
        "target words read the memory",
        ("11",),
        _DEC + "cross_attention",
        "batch, n_heads, tgt_len, src_len",
    ),
    Step("add & norm", "norm", _Y, _KEPT, ("09",), _DEC + "cross_attention_residual"),
    Step("feed-forward", "feed-forward", _Y, _ALONE, ("09",), _DEC + "feed_forward", "batch, tgt_len, d_ff"),
    Step("add & norm", "norm", _Y, "the end of a layer", ("09", "11"), _DEC + "feed_forward_residual"),
    Step("output head", "head", "batch, tgt_len, tgt_vocab_size", "a logit per target word", ("12",), "output_head"),
    Step("softmax", "head", "batch, tgt_len, tgt_vocab_size", "how likely each next word is", ("13", "14")),
)


def step_shapes(
    config: TransformerConfig, *, batch: int = 1, src_len: int = 7, tgt_len: int = 5
) -> list[tuple[int, ...]]:
    """Return the output shape of every step of STEPS for these sizes: what a forward hook on its module sees."""
    sizes = _sizes(config, batch, src_len, tgt_len)
    return [shape_of(step.axes, sizes) for step in STEPS]


def shape_of(axes: str, sizes: Sizes) -> tuple[int, ...]:
    """Return the sizes of axes named in words, such as "batch, src_len"."""
    return tuple(sizes[axis] for axis in axes.split(", "))


def model_map(
    config: TransformerConfig | Translator | None = None,
    *,
    batch: int = 1,
    src_len: int = 7,
    tgt_len: int = 5,
    step: int = 1,
    sentence: str = "The man saw the bank near the river.",
    word: int = 5,
) -> Panel:
    """Show the architecture with a step to move: the part, its shape for these sizes, its notebooks.

    Given a translator, it also takes a sentence, and shows what a word of it is at each step of the first layer.

    Args:
        config: of a model, by default the paper's base model with 37,000 tokens; or a translator.
        batch, src_len, tgt_len: the sizes; a translator's are those of the sentence.
        step: shown first, from 1. sentence, word: shown first, for a translator; the word's number, from 1.

    Raises:
        ValueError: sizes below 1; or a sentence that the translator cannot read, or a word it does not have.
    """
    if isinstance(config, Translator):
        draw, controls = _with_numbers(config, step, sentence, word)
        config, lines = config.model.config, 4
    else:
        config, lines = config or TransformerConfig(src_vocab_size=37_000, tgt_vocab_size=37_000), 2
        sizes = _sizes(config, batch, src_len, tgt_len)
        draw = partial(draw_model, sizes=sizes, n_layers=config.n_layers, steps=steps_of(config))
        controls = {"step": number("step", step, 1, len(STEPS))}
    spots = _spots(steps_of(config))
    few = {"word": range(1, 11), "sentence": [sentence, *(text for text in OTHERS if text != sentence)]}
    carried = {name: values for name, values in few.items() if name in controls}
    links: Callable[..., str] = lambda step, **_: _links(step)  # noqa: E731
    return Panel(draw, controls, widget_id="W15", footer=links, spots=spots, says_lines=lines, carried=carried)


def _with_numbers(
    translator: Translator, step: int, sentence: str, at: int
) -> tuple[Callable[..., Picture], dict[str, Any]]:
    """Return what draws the map of a translator with the numbers of a word, and the controls, a sentence included."""
    config, steps = translator.model.config, steps_of(translator.model.config)
    modules = [part.module for part in steps if part.module]
    walked = cache(lambda text: model_numbers.walk(translator, text, modules))
    walked(sentence)

    def draw(step: int, sentence: str, word: int) -> Picture:
        try:
            found = walked(sentence)
        except ValueError as error:  # said in the picture: the next sentence may be a better one
            return _unknown(step, config, steps, str(error))
        return draw_numbers(step, found, word, config, steps)

    controls = {
        "step": number("step", step, 1, len(STEPS)),
        "word": number("word", at, 1, model_numbers.MOST),
        "sentence": word("your sentence", sentence),
    }
    controls["sentence"].layout.width = "480px"
    return draw, controls


def draw_numbers(
    step: int, walked: model_numbers.Walked, at: int, config: TransformerConfig, steps: tuple[Step, ...] = STEPS
) -> Picture:
    """Draw the map with the numbers of word ``at`` (from 1) at part ``step`` (from 1)."""
    sizes = _sizes(config, 1, len(walked.source), len(walked.target))
    shapes = draw_model(step, sizes, config.n_layers, steps)
    shown = [model_numbers.at_step(walked, i, part.module, at) for i, part in enumerate(steps, 1)]
    says = f"{shapes.says} {shown[step - 1].told()} It writes: {walked.translation}"
    columns = [["what this word is there"], *([each.told()] for each in shown)]
    table = [[*row, *more] for row, more in zip(shapes.table, columns, strict=True)]
    alt = f"{shapes.alt} {shown[step - 1].told()} It writes: {walked.translation}"
    body = shapes.body + model_numbers.draw(shown[step - 1])
    return replace(shapes, body=body, alt=alt, says=says, table=table)


def _unknown(step: int, config: TransformerConfig, steps: tuple[Step, ...], problem: str) -> Picture:
    """Draw the map without numbers, and say why there are none."""
    shapes = draw_model(step, _sizes(config, 1, 1, 1), config.n_layers, steps)
    says = " ".join(problem.split())
    body = shapes.body + model_numbers.draw_problem(says)
    return replace(shapes, body=body, alt=f"{shapes.alt} No numbers: {says}", says=says)


def _spots(steps: tuple[Step, ...]) -> list[Spot]:
    """Return a spot for every box, which goes to its step."""
    return [
        Spot(f"{box.step}. {box.label}", "step", box.step, box.x - box.width / 2, box.y, box.width, box.height)
        for box in _boxes(steps)
    ]


def steps_of(config: TransformerConfig) -> tuple[Step, ...]:
    """Return STEPS, named after what the model does where it normalises first: norm inside the branch, then add."""
    if not config.norm_first:
        return STEPS
    inside = [step for step in STEPS if step.kind in ("attention", "feed-forward")]
    named = {step.label: f"norm, {step.label}" for step in inside} | {"add & norm": "add"}
    return tuple(replace(step, label=named.get(step.label, step.label)) for step in STEPS)


def draw_model(step: int, sizes: Sizes, n_layers: int, steps: tuple[Step, ...] = STEPS) -> Picture:
    """Draw the encoder on the left and the decoder on the right, from the bottom up; frame part ``step`` (from 1)."""
    boxes = _boxes(steps)
    encoder, decoder = boxes[:8], boxes[8:]
    parts = [flow.frame(encoder[3:7], f"× {n_layers}", -1), flow.frame(decoder[3:9], f"× {n_layers}", 1)]
    for stack in (encoder, decoder):
        parts += [flow.up(lower, upper) for lower, upper in zip(stack, stack[1:], strict=False)]
    for first, norm in ((3, 4), (5, 6), (11, 12), (13, 14), (15, 16)):
        parts.append(flow.around(boxes[first], boxes[norm]))
    parts.append(flow.across(boxes[7], boxes[13]))
    parts += [flow.draw_box(box, step) for box in boxes]
    parts.append(text(_ENCODER_X, 14, "encoder", "mid bold") + text(_DECODER_X, 14, "decoder", "mid bold"))
    says = describe(step, sizes, steps)
    alt = f"The Transformer as boxes: encoder of {n_layers} layers, decoder of {n_layers} layers. {says}"
    rows = [(part.label, written_shape(part.axes, sizes), ", ".join(part.notebooks)) for part in steps]
    table = [["step", "part", "shape", "notebooks"], *([i, *row] for i, row in enumerate(rows, 1))]
    return Picture("".join(parts), 700, 530, alt, says, table=table)


def describe(step: int, sizes: Sizes, steps: tuple[Step, ...] = STEPS) -> str:
    """Describe part ``step`` in one line: name, shape in words and numbers, what it does."""
    part = steps[step - 1]
    side = "encoder" if step <= 8 else "decoder"
    inner = f" (inside: {written_shape(part.inner, sizes)})" if part.inner else ""
    return f"{step}. {side}, {part.label}: {written_shape(part.axes, sizes)}{inner}; {part.idea}."


def written_shape(axes: str, sizes: Sizes) -> str:
    """Write out a shape, for example "[batch 1, src_len 7, d_model 512]"."""
    return "[" + ", ".join(f"{axis} {sizes[axis]:,}" for axis in axes.split(", ")) + "]"


def _sizes(config: TransformerConfig, batch: int, src_len: int, tgt_len: int) -> Sizes:
    for name, value in (("batch", batch), ("src_len", src_len), ("tgt_len", tgt_len)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    own = ("d_model", "n_heads", "d_ff", "tgt_vocab_size")
    lengths = {"batch": batch, "src_len": src_len, "tgt_len": tgt_len}
    return lengths | {name: getattr(config, name) for name in own}


def _boxes(steps: tuple[Step, ...]) -> list[flow.Box]:
    places = [(_ENCODER_X, _BOTTOM - i * _STEP) for i in range(8)]
    places += [(_DECODER_X, _BOTTOM - i * _STEP) for i in range(len(steps) - 8)]
    labelled = enumerate(zip(places, steps, strict=True), 1)
    return [flow.Box(*place, step.label, step.kind, i) for i, (place, step) in labelled]


def _links(step: int, exists: Callable[[course.Notebook], bool] = course.written) -> str:
    """Return links to the notebooks that build this part; those that do not exist are named without a link."""
    named = []
    for entry in map(course.notebook, STEPS[step - 1].notebooks):
        name = f"{entry.id} {escape(entry.title)}"
        named.append(f'<a href="{entry.filename}">{name}</a>' if exists(entry) else name)
    return f"<p>Built in: {' · '.join(named)}</p>"
