"""One model, two jobs: name the next English word, or the words of the German translation (notebook 05)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...data.corpora import load_corpus
from ...data.tokenizers import PAD_ID, SPECIAL_TOKENS, WordTokenizer
from ...model.layers import FeedForward
from ...model.masks import causal_mask
from ...model.multihead import MultiHeadAttention
from ...model.positional import sinusoidal_encoding
from . import stored

load_results = stored.loader("jobs.json")
PAST = {
    "find": "found",
    "notice": "noticed",
    "draw": "drew",
    "mention": "mentioned",
    "describe": "described",
    "photograph": "photographed",
    "recognize": "recognized",
    "see": "saw",
    "look": "looked",
}
WIDTH, BATCH_SIZE, LEARNING_RATE, STEPS = 32, 64, 0.01, 200
Job = Callable[["Reader", Tensor, Tensor], Tensor]  # model, English ids, shares of German words -> the loss


class Reader(nn.Module):
    """Reads English: a table, weak positions, one causal attention layer, a feed-forward layer; a readout for each job.

    Both jobs start from the same numbers; the readout of the other one is never used.

    Args:
        n_english: words of the table. n_german: those of the other language.
    """

    def __init__(self, n_english: int, n_german: int) -> None:
        super().__init__()
        self.table = nn.Embedding(n_english, WIDTH)
        nn.init.normal_(self.table.weight, std=0.1)
        self.attention, self.feed_forward = MultiHeadAttention(WIDTH, 2), FeedForward(WIDTH, 4 * WIDTH)
        self.english, self.german = nn.Linear(WIDTH, n_english), nn.Linear(WIDTH, n_german)

    def forward(self, ids: Tensor) -> Tensor:
        """Return vectors [batch, seq_len, WIDTH] for ids [batch, seq_len]; those of padding are zero."""
        seq_len = ids.shape[1]
        x = self.table(ids) + 0.1 * sinusoidal_encoding(seq_len, WIDTH)
        x = x + self.attention(x, x, x, causal_mask(seq_len))
        return (x + self.feed_forward(x)) * ids.ne(PAD_ID)[..., None]


def next_word(model: Reader, english: Tensor, german: Tensor) -> Tensor:
    """Return the loss of naming each next English word; english [batch, seq_len], german unused."""
    logits = model.english(model(english[:, :-1]))  # [batch, seq_len - 1, n_english]
    return F.cross_entropy(logits.mT, english[:, 1:], ignore_index=PAD_ID)


def german_words(model: Reader, english: Tensor, german: Tensor) -> Tensor:
    """Return the loss of naming the words of the translation; german [batch, n_german] has the share of each."""
    return F.cross_entropy(model.german(model(english).sum(dim=1)), german)


JOBS = {"next word": next_word, "German words": german_words}


@cache
def sentences() -> tuple[tuple[str, ...], Tensor, Tensor]:
    """Return the English words, the ids [n, longest] of all sentences, and the shares [n, n_german] of German words."""
    pairs = load_corpus("context")["train"]
    sources, targets = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    english, german = WordTokenizer.from_texts(sources), WordTokenizer.from_texts(targets)
    translations = german.encode_batch(targets)
    shares = torch.zeros(len(pairs), len(german.words)).scatter_(1, translations, 1.0)
    shares[:, : len(SPECIAL_TOKENS)] = 0.0
    return english.words, english.encode_batch(sources), shares / shares.sum(dim=1, keepdim=True)


def train(job: Job, seed: int, rate: float = LEARNING_RATE, budgets: Sequence[int] = (STEPS,)) -> list[Tensor]:
    """Train a reader with Adam; return its table [n_english, WIDTH] after each of these numbers of steps, rising."""
    words, ids, shares = sentences()
    torch.manual_seed(seed)
    model, tables = Reader(len(words), shares.shape[1]), []
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for step in range(1, budgets[-1] + 1):
        batch = torch.randint(len(ids), (BATCH_SIZE,))
        optimizer.zero_grad()
        job(model, ids[batch], shares[batch]).backward()
        optimizer.step()
        if step in budgets:
            tables.append(model.table.weight.detach().clone())
    return tables


def rows(table: Tensor, forms: Sequence[str]) -> Tensor:
    """Return the rows [n, d_model] of these words.

    Raises:
        ValueError: the corpus has no such word.
    """
    words = sentences()[0]
    if strange := [form for form in forms if form not in words]:
        raise ValueError(f"forms must be English words of the corpus, got {', '.join(strange)}")
    return table.detach()[[words.index(form) for form in forms]]


def cosines(tables: Sequence[Tensor], pairs: Sequence[tuple[str, str]]) -> dict[str, list[float]]:
    """Return {"one, other": the cosine of the rows of two words in each of the tables}."""
    return {
        ", ".join(pair): [F.cosine_similarity(*rows(table, pair), dim=0).item() for table in tables] for pair in pairs
    }


def forms(table: Tensor) -> Tensor:
    """Return the rows [18, d_model] of the verbs, each base form followed by its past form."""
    return rows(table, [form for verb in PAST.items() for form in verb])


def nearest(table: Tensor, form: str) -> str:
    """Return the word whose row, of all, has the largest cosine with that of this form."""
    words = sentences()[0]
    similar = F.cosine_similarity(table.detach(), rows(table, [form]), dim=1)
    similar[words.index(form)] = -2.0
    return words[int(similar.argmax())]


def partners(table: Tensor) -> int:
    """Return how many of the 18 forms have their own partner nearest, as see has saw and saw has see."""
    both = [*PAST.items(), *((past, base) for base, past in PAST.items())]
    return sum(nearest(table, form) == partner for form, partner in both)


def same_tense(table: Tensor) -> int:
    """Return how many of the 18 forms have a form of the same tense nearest, as saw has drew."""
    return sum(nearest(table, form) in group for group in (PAST.keys(), PAST.values()) for form in group)
