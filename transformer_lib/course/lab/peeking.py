"""What does a model learn that is trained without the causal mask? (notebook 07)"""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...model.attention import scaled_dot_product_attention
from ...model.masks import causal_mask
from ...model.positional import sinusoidal_encoding
from . import stored

load_results = stored.loader("peeking.json")
WORDS = ("show", "me", "the", "money", "not", "on", "your", "life")
INPUTS = 8  # a sentence has one word more, and the last one is only predicted
WIDTH, BATCH_SIZE = 32, 64


def _balanced(weights: Tensor) -> Tensor:
    """Return positive weights [n, n], scaled by rows and columns in turn until all of them sum to 1 (Sinkhorn)."""
    for _ in range(500):
        weights = weights / weights.sum(dim=0)
        weights = weights / weights.sum(dim=1, keepdim=True)
    return weights


# Probabilities [word, next word]. As the columns sum to 1, too, all words are equally frequent at every position.
FOLLOWS = _balanced((2 * torch.randn(8, 8, generator=torch.Generator().manual_seed(0))).exp())


class Writer(nn.Module):
    """Scores each next word: embeddings and positions, one head of attention, a readout of what a row is and has read.

    Args:
        masked: whether a row reads itself and the rows before it alone; else it reads all.
    """

    def __init__(self, *, masked: bool, vocab_size: int = len(WORDS)) -> None:
        super().__init__()
        self.masked = masked
        self.table = nn.Embedding(vocab_size, WIDTH)
        self.w_q, self.w_k, self.w_v = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.readout = nn.Linear(2 * WIDTH, vocab_size)

    def attend(self, ids: Tensor, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rows, what they have read, and the weights; the first token is at position `start`."""
        seq_len = ids.shape[1]
        x = self.table(ids) + sinusoidal_encoding(start + seq_len, WIDTH)[start:]
        mask = causal_mask(seq_len)[0] if self.masked else None
        z, weights = scaled_dot_product_attention(self.w_q(x), self.w_k(x), self.w_v(x), mask)
        return x, z, weights

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Return logits [batch, seq_len, vocab_size] for ids [batch, seq_len]; the first is at `start`."""
        x, z, _ = self.attend(ids, start)
        return self.readout(torch.cat((x, z), dim=-1))


def sentences(size: int, generator: torch.Generator, n_words: int = INPUTS + 1) -> Tensor:
    """Return ids [size, n_words]: any first word, and then each by the probabilities FOLLOWS of the word before."""
    columns = [torch.randint(len(WORDS), (size,), generator=generator)]
    for _ in range(n_words - 1):
        columns.append(torch.multinomial(FOLLOWS[columns[-1]], 1, generator=generator)[:, 0])
    return torch.stack(columns, dim=1)


def surprise(ids: Tensor) -> float:
    """Return the mean −ln p of the words after the first, by the true probabilities: the best possible loss on them."""
    return -FOLLOWS[ids[:, :-1], ids[:, 1:]].log().mean().item()


def train(
    *, masked: bool, seed: int, steps: int = 400, rate: float = 1e-2, cut: bool = False, last_row: bool = True
) -> Writer:
    """Train a writer with Adam on fresh sentences, all positions of a sentence in one pass.

    Args:
        cut: whether the sentences of each batch are cut to a length of 1 to INPUTS inputs, each equally likely.
        last_row: whether the last row of a pass counts in the loss.

    Raises:
        ValueError: the sentences are cut, but the last row does not count: of one word, no row would be left.
    """
    if cut and not last_row:
        raise ValueError("last_row must be True where sentences are cut, got False")
    torch.manual_seed(seed)
    generator, model = torch.Generator().manual_seed(seed), Writer(masked=masked)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        ids = sentences(BATCH_SIZE, generator)
        if cut:
            ids = ids[:, : 2 + int(torch.randint(INPUTS, (), generator=generator))]
        optimizer.zero_grad()
        each = losses(model(ids[:, :-1]), ids[:, 1:])
        (each if last_row else each[:-1]).mean().backward()
        optimizer.step()
    return model.eval().requires_grad_(False)


def two_writers(seeds: Iterable[int]) -> dict[str, list[Writer]]:
    """Train both writers with each seed, and return them in float64, where small changes show."""
    masks = {"Ada": True, "Ben": False}
    return {name: [train(masked=masked, seed=seed).double() for seed in seeds] for name, masked in masks.items()}


def losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy at each position, [seq_len], of logits [batch, seq_len, vocab_size]."""
    return F.cross_entropy(logits.mT, labels, reduction="none").mean(dim=0)


def honest(model: Writer, ids: Tensor) -> Tensor:
    """Return logits [batch, seq_len, vocab_size]: each row from a pass over its own prefix alone."""
    return torch.stack([model(ids[:, : t + 1])[:, -1] for t in range(ids.shape[1])], dim=1)


def write(model: Writer, ids: Tensor, n_words: int) -> Tensor:
    """Return ids with n_words more, each drawn from the model's probabilities; it reads the last INPUTS words."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(n_words):
        probabilities = model(ids[:, -INPUTS:])[:, -1].softmax(dim=-1)
        ids = torch.cat((ids, torch.multinomial(probabilities, 1, generator=generator)), dim=1)
    return ids


def test_sentences(size: int = 1000) -> tuple[Tensor, Tensor]:
    """Return inputs and labels, [size, INPUTS] each, of sentences that no training draws."""
    ids = sentences(size, torch.Generator().manual_seed(99))
    return ids[:, :-1], ids[:, 1:]


def judge(model: Writer) -> tuple[float, float, float]:
    """Return the mean loss in training form, the mean honest loss, and the surprise of a text of its own."""
    inputs, labels = test_sentences()
    forms = (model(inputs), honest(model, inputs))
    in_training, alone = (losses(logits, labels).mean().item() for logits in forms)
    return in_training, alone, surprise(write(model, inputs[:, :1], INPUTS))


def after(model: Writer, n_words: int, last_at: int) -> float:
    """Return the loss of the last word of the test sentences when the model sees only the `n_words` before it.

    The last of these is at position `last_at`.

    Raises:
        ValueError: if there are fewer words, or the first of them would be before position 0.
    """
    if not 1 <= n_words <= min(INPUTS, last_at + 1):
        raise ValueError(
            f"n_words must be from 1 to {min(INPUTS, last_at + 1)} up to position {last_at}, got {n_words}"
        )
    inputs, labels = test_sentences()
    logits = model(inputs[:, -n_words:], start=last_at + 1 - n_words)
    return losses(logits[:, -1:], labels[:, -1:]).item()


def reading_the_same(model: Writer) -> Tensor:
    """Return the mean loss at each position, [INPUTS], on the test sentences, when all rows read the same.

    It is the average of what all rows of all these sentences read, so that it tells nothing about any of them.
    """
    inputs, labels = test_sentences()
    x, read, _ = model.attend(inputs)
    same = read.mean(dim=(0, 1)).expand_as(read)
    return losses(model.readout(torch.cat((x, same), dim=-1)), labels)


def with_full_window(model: Writer, n_words: int = 8) -> float:
    """Return the mean loss of the true words after the first INPUTS, of which it always sees the last INPUTS."""
    ids = sentences(1000, torch.Generator().manual_seed(98), INPUTS + n_words)
    ends = range(INPUTS, INPUTS + n_words)
    each = [losses(model(ids[:, end - INPUTS : end])[:, -1:], ids[:, end : end + 1]) for end in ends]
    return torch.cat(each).mean().item()
