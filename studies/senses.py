"""Does an encoder's vector of "bank" say which bank? Five small encoders name the sense of a word (notebook 10)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.course.lab.senses import Senses, load_senses
from transformer_lib.data.tokenizers import PAD_ID
from transformer_lib.model.encoder import Encoder
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.positional import sinusoidal_encoding

from .engine import Step, Steps, Study

WIDTH, HEADS, HIDDEN, BATCH_SIZE, LEARNING_RATE, STEPS = 64, 4, 128, 64, 2e-3, 400
KINDS = {"no layer": 0, "self only": 2, "left side only": 2, "one layer": 1, "two layers": 2}  # number of layers
LONGER_KINDS, LONGER_STEPS = ("left side only", "one layer", "two layers"), 5 * STEPS  # with the first three seeds
GROUPS = ("heldout", "compositional", "hard", "cue before", "cue after", "cue 7+ away")


class SenseTagger(nn.Module):
    """Embeddings and positions, an encoder, and one linear map from the vector of a word to the scores of all senses.

    Args:
        kind: one of KINDS. "self only" lets each position see only itself, "left side only" nothing after itself;
            "no layer" reads the embedding. n_words, n_senses: sizes of the two vocabularies.
    """

    def __init__(self, kind: str, n_words: int, n_senses: int) -> None:
        super().__init__()
        if kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
        self.kind = kind
        self.table = nn.Embedding(n_words, WIDTH)
        nn.init.normal_(self.table.weight, std=WIDTH**-0.5)
        self.encoder = Encoder(KINDS[kind], WIDTH, HEADS, HIDDEN) if KINDS[kind] else None
        self.read_out = nn.Linear(WIDTH, n_senses)

    def forward(self, ids: Tensor, places: Tensor) -> Tensor:
        """Return scores [batch, n_senses] for ids [batch, src_len], read at one place per sentence, places [batch]."""
        x = self.table(ids) * math.sqrt(WIDTH) + sinusoidal_encoding(ids.shape[1], WIDTH)
        memory = self.encoder(x, self.mask(ids)) if self.encoder else x
        return self.read_out(memory[torch.arange(len(ids)), places])

    def mask(self, ids: Tensor) -> Tensor:
        """Return what each position may see, True = may attend."""
        mask = padding_mask(ids, PAD_ID)
        if self.kind == "self only":
            return mask & torch.eye(ids.shape[1], dtype=torch.bool)
        return mask & causal_mask(ids.shape[1]) if self.kind == "left side only" else mask


def train_tagger(kind: str, seed: int, steps: int = STEPS) -> SenseTagger:
    """Train a new tagger by cross-entropy over all senses, batches drawn at random from the training split."""
    tokenizer, senses, splits = load_senses()
    train = splits["train"]
    torch.manual_seed(seed)
    tagger = SenseTagger(kind, len(tokenizer), len(senses))
    optimizer = torch.optim.Adam(tagger.parameters(), LEARNING_RATE)
    for _ in range(steps):
        rows = torch.randint(len(train.ids), (BATCH_SIZE,))
        loss = F.cross_entropy(tagger(train.ids[rows], train.places[rows]), train.labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return tagger


@torch.no_grad()
def choices(tagger: SenseTagger, split: Senses) -> Tensor:
    """Return for each sentence whether the best of *its word's* senses is the right one, [sentences] boolean."""
    scores = tagger(split.ids, split.places).masked_fill(~split.candidates, -math.inf)
    return scores.argmax(dim=-1) == split.labels


def accuracy(tagger: SenseTagger) -> dict[str, float]:
    """Return the share of right choices by GROUPS; the groups of cues are those of the held-out sentences."""
    splits = load_senses()[2]
    found = {name: choices(tagger, splits[name]) for name in ("heldout", "compositional", "hard")}
    found |= {name: found["heldout"][rows] for name, rows in splits["heldout"].groups.items()}
    return {name: round(right.double().mean().item(), 3) for name, right in found.items()}


def majority(split: str = "heldout") -> float:
    """Return the share of right choices when each word gets its most frequent sense in training."""
    train, tested = (load_senses()[2][name] for name in ("train", split))
    counts = torch.bincount(train.labels, minlength=train.candidates.shape[1])
    best = counts.expand(len(tested.labels), -1).masked_fill(~tested.candidates, -1).argmax(dim=-1)
    return (best == tested.labels).double().mean().item()


def shares(kind: str, seeds: Sequence[int], number: int = STEPS) -> dict[str, list[float]]:
    """Return {group: share right of each seed} of taggers trained for this number of steps."""
    each = [accuracy(train_tagger(kind, seed, number)) for seed in seeds]
    return {group: [one[group] for one in each] for group in GROUPS}


def steps(seeds: Sequence[int]) -> Steps:
    """Train every kind, and some of them longer, with the first three seeds."""
    yield Step("majority", lambda: round(majority(), 3))
    for kind in KINDS:
        yield Step(("accuracy", kind), shares, kind, seeds)
    yield Step(("longer", "steps"), lambda: LONGER_STEPS)
    yield Step(("longer", "seeds"), lambda: list(seeds[:3]))
    for kind in LONGER_KINDS:
        yield Step(("longer", "accuracy", kind), shares, kind, seeds[:3], LONGER_STEPS)


STUDY = Study("senses", __doc__, steps, seeds=range(9), constants={"steps": STEPS})


if __name__ == "__main__":
    STUDY.command()
