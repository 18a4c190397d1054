"""What does an embedding table learn? 22 words in four classes, and a model of the next word (notebook 05)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model.layers import FeedForward
from ...model.masks import causal_mask
from ...model.multihead import MultiHeadAttention
from ...model.positional import sinusoidal_encoding
from . import stored

load_results = stored.loader("word_classes.json")
CLASSES = {
    "article": ("the", "a"),
    "adjective": ("red", "big", "old", "small", "wet", "dry"),
    "noun": ("dog", "cat", "child", "bird", "farmer", "boy", "girl", "sister"),
    "verb": ("sees", "likes", "hears", "finds", "calls", "helps"),
}
WORDS = tuple(word for group in CLASSES.values() for word in group)
KINDS = torch.tensor([kind for kind, group in enumerate(CLASSES.values()) for _ in group])
TEMPLATE = ("article", "adjective", "noun", "verb", "article", "noun")
WIDTH, BATCH_SIZE, LEARNING_RATE = 16, 64, 3e-3
SNAPSHOTS = (0, 10, 20, 40, 80, 120, 200)


class NextWord(nn.Module):
    """Scores each next word: embeddings, one causal attention layer, a feed-forward layer, a readout.

    Args:
        std: standard deviation of the table's entries at the start.
    """

    def __init__(self, std: float) -> None:
        super().__init__()
        self.table = nn.Embedding(len(WORDS), WIDTH)
        nn.init.normal_(self.table.weight, std=std)
        self.attention, self.feed_forward = MultiHeadAttention(WIDTH, 2), FeedForward(WIDTH, 4 * WIDTH)
        self.readout = nn.Linear(WIDTH, len(WORDS))

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits [batch, seq_len, n_words] for ids [batch, seq_len]."""
        seq_len = ids.shape[1]
        x = self.table(ids) + 0.1 * sinusoidal_encoding(seq_len, WIDTH)
        x = x + self.attention(x, x, x, causal_mask(seq_len))
        return self.readout(x + self.feed_forward(x))


def sentences(size: int, generator: torch.Generator, template: Sequence[str] = TEMPLATE) -> Tensor:
    """Return ids [size, len(template)]: for each place a word of its class, all equally likely."""
    columns = []
    for kind in map(list(CLASSES).index, template):
        members = torch.nonzero(KINDS.eq(kind))[:, 0]
        columns.append(members[torch.randint(len(members), (size,), generator=generator)])
    return torch.stack(columns, dim=1)


def class_cosines(table: Tensor) -> Tensor:
    """Return [4, 4]: the mean cosine between rows of two classes, and within a class that between different words."""
    unit = F.normalize(table, dim=1)
    grid, members = unit @ unit.T, F.one_hot(KINDS).to(table.dtype)
    pairs = members.T @ (1 - torch.eye(len(WORDS))) @ members
    return members.T @ grid.fill_diagonal_(0.0) @ members / pairs


def nearest_in_class(table: Tensor) -> float:
    """Return the share of words whose nearest row, by cosine, is of their own class."""
    unit = F.normalize(table, dim=1)
    nearest = (unit @ unit.T).fill_diagonal_(-2.0).argmax(dim=1)
    return KINDS[nearest].eq(KINDS).double().mean().item()


def near_articles(tables: Sequence[Tensor]) -> dict[str, list[float]]:
    """Return {another class: in each table, the mean cosine of its rows with those of the articles}."""
    grids = [class_cosines(table)[0] for table in tables]
    return {f"{name}s": [grid[kind].item() for grid in grids] for kind, name in enumerate(CLASSES) if kind}


def train(
    seed: int,
    std: float,
    template: Sequence[str] = TEMPLATE,
    *,
    frozen: bool = False,
    steps: int = SNAPSHOTS[-1],
    learning_rate: float = LEARNING_RATE,
) -> tuple[dict[int, Tensor], float]:
    """Train with Adam; return the table [22, 16] after each step of SNAPSHOTS and the last, and the final loss.

    The loss is that on fresh sentences. ``frozen`` keeps the table as it starts and trains the layers above it alone.
    """
    torch.manual_seed(seed)
    generator, model, snapshots = torch.Generator().manual_seed(seed), NextWord(std), {}
    model.table.weight.requires_grad_(not frozen)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate)

    def loss_on(ids: Tensor) -> Tensor:
        return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())

    for step in range(steps + 1):
        if step in (*SNAPSHOTS, steps):
            snapshots[step] = model.table.weight.detach().clone()
        optimizer.zero_grad()
        loss_on(sentences(BATCH_SIZE, generator, template)).backward()
        optimizer.step()
    with torch.no_grad():
        return snapshots, loss_on(sentences(2_000, generator, template)).item()
