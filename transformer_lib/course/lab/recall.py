"""Who still knows the first token at the end? Recurrent nets beside attention, over length and seeds (notebook 01)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...model.multihead import MultiHeadAttention
from ...model.positional import SinusoidalPosition
from . import stored

load_results = stored.loader("recall.json")
KINDS = (
    "RNN",
    "LSTM",
    "RNN + positions",
    "LSTM + positions",
    "LSTM, open gate",
    "RNN + attention",
    "attention",
)
LENGTHS = (5, 10, 20, 40, 80)
SYMBOLS, WIDTH, BATCH_SIZE, LEARNING_RATE = 8, 32, 64, 3e-3


class Reader(nn.Module):
    """Reads a row of symbols and says, at the last position, which symbol came first.

    Args:
        kind: one of KINDS. "LSTM, open gate" starts with a forget bias of 3 instead of about 0, so that it keeps
            its state (Jozefowicz et al. 2015). "RNN + attention" attends from its last state to all its states,
            "attention" from the last embedding to all embeddings. Both add positions: attention alone cannot know
            without them which token is the first. "+ positions" adds them to what the RNN or LSTM reads.
        radius: scales the recurrent matrix to this spectral radius, the size of its largest eigenvalue.
        damping: multiplies the gradient by this at each step back through an RNN; the forward pass stays as it is.
        questions: the number of ids after the symbols, which ask "which symbol was the first, the second, …?"
    """

    def __init__(
        self, kind: str, *, radius: float | None = None, damping: float | None = None, questions: int = 0
    ) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        self.reads_positions = "positions" in kind
        self.embedding = nn.Embedding(SYMBOLS + questions, WIDTH)
        self.recurrent = _recurrent(kind, radius, damping)
        self.attention = MultiHeadAttention(WIDTH, 1) if "attention" in kind else None
        self.positions = SinusoidalPosition(max(LENGTHS), WIDTH)
        self.head = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, SYMBOLS] for ids [batch, length]."""
        return self.head(self.read(self.embedding(ids))[0])

    def read(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the last position's result [batch, WIDTH] and its attention weights [batch, length], if it has any."""
        x = self.positions(x) if self.reads_positions else x
        states = x if self.recurrent is None else self.recurrent(x)[0]  # [batch, length, WIDTH]
        if self.attention is None:
            return states[:, -1], None
        states = self.positions(states)
        output, weights = self.attention(states[:, -1:], states, states, return_weights=True)
        return output[:, 0], weights[:, 0, 0]


class _DampedRNN(nn.RNN):
    """An RNN whose gradient is multiplied by `damping` at each step back, on inputs [batch, length, WIDTH]."""

    damping = 1.0

    def forward(self, x: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return all states and the last, as nn.RNN does."""
        inputs = x @ self.weight_ih_l0.T + self.bias_ih_l0 + self.bias_hh_l0
        states = [torch.zeros_like(x[:, 0])]
        for step in inputs.unbind(dim=1):
            before = self.damping * states[-1] + (1 - self.damping) * states[-1].detach()
            states.append(torch.tanh(step + before @ self.weight_hh_l0.T))
        return torch.stack(states[1:], dim=1), states[-1][None]


def _recurrent(kind: str, radius: float | None, damping: float | None) -> nn.Module | None:
    if kind == "attention":
        return None
    module = nn.LSTM if "LSTM" in kind else nn.RNN if damping is None else _DampedRNN
    recurrent = module(WIDTH, WIDTH, batch_first=True)
    if damping is not None:
        recurrent.damping = damping
    if kind == "LSTM, open gate":
        nn.init.constant_(recurrent.bias_hh_l0[WIDTH : 2 * WIDTH], 3.0)  # torch's gates: input, forget, cell, output
    if radius is not None:
        matrix = recurrent.weight_hh_l0.data
        matrix *= radius / torch.linalg.eigvals(matrix).abs().max()
    return recurrent


def gradient_ratio(kind: str, length: int, seed: int, *, radius: float | None = None) -> float:
    """Return |∂ output / ∂ first input| / |∂ output / ∂ last input| of an untrained reader, in float64.

    The output is the sum of the last position's result; inputs are normal. 1 means that the first token counts
    as much as the last.
    """
    torch.manual_seed(seed)
    reader = Reader(kind, radius=radius).double()
    x = torch.randn(1, length, WIDTH, dtype=torch.float64, requires_grad=True)
    (grad,) = torch.autograd.grad(reader.read(x)[0].sum(), x)
    return (grad[0, 0].norm() / grad[0, -1].norm()).item()
