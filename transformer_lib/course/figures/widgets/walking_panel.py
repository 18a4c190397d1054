"""W21, the shape walk: "Show me the money" through two encoder layers, one operation at a time, with all numbers."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ....model.encoder import EncoderLayer
from ....model.positional import sinusoidal_encoding
from ..svg import walking
from ..svg.elements import Picture
from .controls import number, switch
from .panel import Panel

Tables = dict[str, Tensor]  # the last is the result of the step
TOKENS = ("Show", "me", "the", "money", "<pad>")
OPERATIONS = (  # name, kind of box, formula, what to notice
    (
        "× √d_model",
        "embedding",
        "√d_model · E[ids]",
        "Each id picks its row of the table; d_model = 4, so every number doubles.",
    ),
    ("+ position", "embedding", "x + P", "The position encoding is added; from here on x holds word and place."),
    (
        "weights",
        "attention",
        "softmax(Q Kᵀ / √d_k)",
        "Rows are queries, columns keys. Tokens meet only here and in step 4 (12).",
    ),
    ("heads × W_O", "attention", "[A¹V¹ | A²V²] W_O", "What each token collected from all tokens."),
    ("add", "data", "x + attention", "The dashed path brings x past the attention, as it is."),
    ("norm", "norm", "LayerNorm(sum)", "Each row now has mean 0 and variance 1."),
    ("hidden", "feed-forward", "max(0, y W_1 + b_1)", "Row by row: wider (6), and no negative number is left."),
    ("contract", "feed-forward", "hidden W_2 + b_2", "Back to d_model."),
    ("add", "data", "y + feed-forward", "The second dashed path: y past the feed-forward network."),
    ("norm", "norm", "LayerNorm(sum)", "One vector per position, as wide as before."),
)
LAST = len(OPERATIONS) + 8  # two layers; the second has no first two steps

# The hand-made tables of notebook 10: d_model 4, two heads of width 2, d_ff 6; tokens are rows, so y = x W.
TABLE = [
    [0.12, 0.63, 0.29, 0.41],
    [0.83, 0.34, 0.04, 0.53],
    [0.39, 0.77, 0.64, 0.09],
    [0.41, 0.08, 0.51, 0.87],
    [0.25, 0.25, 0.25, 0.25],
]
WEIGHTS = {
    "self_attention.w_q": [[0.5, 0, 0, 0.5], [0, 0.5, -0.5, 0], [0, 0.5, 0.5, 0], [-0.5, 0, 0, 0.5]],
    "self_attention.w_k": [[0, 1, 1, 0], [1, 0, 0, -1], [1, 0, 0, 1], [0, -1, 1, 0]],
    "self_attention.w_v": [[1, 0, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]],
    "self_attention.w_o": [[0.5, 0, 0, -0.5], [0, 0.5, 0.5, 0], [0, -0.5, 0.5, 0], [0.5, 0, 0, 0.5]],
    "feed_forward.expand": [[1, 0, -1, 0, 1, 0], [0, 1, 0, -1, 0, 1], [-1, 0, 1, 0, 0, 1], [0, -1, 0, 1, 1, 0]],
    "feed_forward.contract": [
        [0.5, 0, 0, 0],
        [0, 0.5, 0, 0],
        [0, 0, 0.5, 0],
        [0, 0, 0, 0.5],
        [0, 0, 0.5, -0.5],
        [0.5, -0.5, 0, 0],
    ],
}


@dataclass(frozen=True)
class Step:
    """One operation: its name, its formula, the tables it shows (the last is the result), and what to notice."""

    name: str
    formula: str
    parts: tuple[tuple[str, Tensor], ...]
    note: str

    @property
    def result(self) -> Tensor:
        """The tensor that the operation hands on: [1, heads, seq_len, seq_len] for weights, else [1, seq_len, …]."""
        if self.name == "weights":
            return torch.stack([grid for _, grid in self.parts])[None]
        return self.parts[-1][1][None]


def hand_made_layer(layer: int = 1) -> EncoderLayer:
    """Return the first or second layer (1, 2) as a `tl.EncoderLayer` in float64; the second has the rows reversed.

    Raises:
        ValueError: another number.
    """
    if layer not in (1, 2):
        raise ValueError(f"layer must be 1 or 2, got {layer!r}")
    made = EncoderLayer(4, 2, 6).double().eval()
    with torch.no_grad():
        for name, rows in WEIGHTS.items():
            matrix = torch.tensor(rows, dtype=torch.float64)
            linear = made.get_submodule(name)
            linear.weight.copy_((matrix if layer == 1 else matrix.flip(0)).T)
            if linear.bias is not None:
                linear.bias.zero_()
    return made


@torch.no_grad()
def encoder_steps(pad: bool = False, masked: bool = True) -> list[Step]:
    """Return the 18 steps of "Show me the money" through both layers; `pad` adds a fifth token, `masked` hides it."""
    table = torch.tensor(TABLE, dtype=torch.float64)[: 5 if pad else 4]
    mask = torch.ones(1, 1, 1, len(table), dtype=torch.bool)
    if pad and masked:
        mask[..., 4] = False
    scaled, positions = table * 4**0.5, sinusoidal_encoding(len(table), 4).double()
    x = scaled + positions
    shown: list[Tables] = [{"E[ids]": table, "result": scaled}, {"embedding": scaled, "P": positions, "x": x}]
    for layer in (1, 2):
        shown += _layer_tables(hand_made_layer(layer), x, mask)
        x = shown[-1]["output"]
    operations = (*OPERATIONS, *OPERATIONS[2:])
    return [
        Step(name, formula, tuple(tables.items()), note)
        for (name, _, formula, note), tables in zip(operations, shown, strict=True)
    ]


def _layer_tables(layer: EncoderLayer, x: Tensor, mask: Tensor) -> list[Tables]:
    """Return what the eight steps of one layer show of x [seq_len, 4]."""
    attended, weights = layer.self_attention(x[None], x[None], x[None], mask, return_weights=True)
    attention, (head_1, head_2) = attended[0], weights[0]
    added = x + attention
    normed = layer.self_attention_residual.norm(added)
    hidden = torch.relu(layer.feed_forward.expand(normed))
    fed = layer.feed_forward.contract(hidden)
    summed = normed + fed
    return [
        {"head 1": head_1, "head 2": head_2},
        {"x": x, "attention": attention},
        {"x": x, "attention": attention, "sum": added},
        {"sum": added, "y": normed},
        {"y": normed, "hidden": hidden},
        {"hidden": hidden, "feed-forward": fed},
        {"y": normed, "feed-forward": fed, "sum": summed},
        {"sum": summed, "output": layer.feed_forward_residual.norm(summed)},
    ]


def encoder_walk(*, step: int = 3, pad: bool = False) -> Panel:
    """Walk "Show me the money" through two encoder layers, step by step; add padding, and take its mask away.

    Raises ValueError when step is not 1 to 18.
    """
    controls = {
        "step": number("step", step, 1, LAST),
        "pad": switch("add a padding token", pad),
        "masked": switch("mask it", True),
    }
    return Panel(draw_step, controls, widget_id="W21")


def draw_step(step: int, pad: bool, masked: bool) -> Picture:
    """Draw one step, from 1 to LAST."""
    steps = encoder_steps(pad, masked)
    here = steps[step - 1]
    layer = 1 if step <= len(OPERATIONS) else 2
    places = [_shape(tensor) for tensor in (here.parts[0][1], here.result[0])]
    if here.name == "weights":
        places[0] = f"[1, {4 + pad}, 4]"
    shapes = " → ".join(places)
    moved = f"largest change in the four words by the padding: {_moved(steps, step):.2f}" if pad else ""
    says = f"step {step} of {LAST}, layer {layer}, {here.name}: {shapes}{'; ' + moved if moved else ''}"
    skip, first = (0, 1) if layer == 1 else (2, len(OPERATIONS) + 1)
    names, kinds, *_ = zip(*OPERATIONS[skip:], strict=True)
    body = walking.chain(names, kinds, first, step, f"layer {layer}")
    parts = [(name, tensor.numpy()) for name, tensor in here.parts]
    lines = [f"{here.name}:  {here.formula}", f"shapes, batch first:  {shapes}", here.note, moved]
    body += walking.tables(TOKENS[: 4 + pad], parts, weights=here.name == "weights", lines=lines)
    rows = "; ".join(f"{token} {_spoken(row)}" for token, row in zip(TOKENS, here.parts[-1][1], strict=False))
    alt = f"{says}. {here.formula}. {here.note} {here.parts[-1][0]}: {rows}."
    return Picture(body, walking.WIDTH, walking.HEIGHT, alt, says)


def _shape(tensor: Tensor) -> str:
    return f"[{', '.join(map(str, (1, *tensor.shape)))}]"


def _spoken(row: Tensor) -> str:
    return " ".join(f"{value + 0.0:.2f}" for value in row.tolist())


def _moved(steps: list[Step], step: int) -> float:
    """Return how far the four words' numbers at this step are from those of the sentence without padding."""
    with_pad, without = steps[step - 1].result[..., :4, :], encoder_steps()[step - 1].result
    return float((with_pad[..., : without.shape[-1]] - without).abs().max())
