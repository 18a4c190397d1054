"""What does a model learn that is trained without the causal mask? (notebook 07)

`python -m transformer_lib.course.studies.peeking` trains a small writer and the translator of rung 07, each with the
mask and without, and writes data/peeking.json. The translator with the mask is the ladder's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..._files import DATA
from ..._streams import run_command
from ...data.corpora import Corpus, load_corpus
from ...decoding.translator import Translator
from ...model.attention import scaled_dot_product_attention
from ...model.masks import causal_mask, padding_mask
from ...model.positional import sinusoidal_encoding
from . import ladder, stored
from .ladder_models import Reader

RESULTS = DATA / "peeking.json"
WORDS = ("show", "me", "the", "money", "not", "on", "your", "life")
INPUTS = 8  # a sentence has one word more, and the last one is only predicted
WIDTH, BATCH_SIZE = 32, 64
PASSES = (2, 4)  # of a translator over the corpus
BUDGETS = (250, 1250)  # steps; the notebook trains for 400
RATES = (2e-3, 5e-3, 1e-2)
LAST_AT = range(3, 11)  # positions of the last of four words; those from INPUTS on are never trained
SAMPLES = 3  # translations that are kept of each translator


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
        """Return the rows, what they have read, and the weights; the first token stands at position `start`."""
        seq_len = ids.shape[1]
        x = self.table(ids) + sinusoidal_encoding(start + seq_len, WIDTH)[start:]
        mask = causal_mask(seq_len)[0] if self.masked else None
        z, weights = scaled_dot_product_attention(self.w_q(x), self.w_k(x), self.w_v(x), mask)
        return x, z, weights

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Return logits [batch, seq_len, vocab_size] for ids [batch, seq_len]; the first stands at `start`."""
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


def train(*, masked: bool, seed: int, steps: int = 400, rate: float = 1e-2, cut: bool = False) -> Writer:
    """Train a writer with Adam on fresh sentences, all positions of a sentence in one pass.

    ``cut`` cuts the sentences of each batch to a length of 1 to INPUTS inputs, each equally likely.
    """
    torch.manual_seed(seed)
    generator, model = torch.Generator().manual_seed(seed), Writer(masked=masked)
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        ids = sentences(BATCH_SIZE, generator)
        if cut:
            ids = ids[:, : 2 + int(torch.randint(INPUTS, (), generator=generator))]
        optimizer.zero_grad()
        losses(model(ids[:, :-1]), ids[:, 1:]).mean().backward()
        optimizer.step()
    return model.eval().requires_grad_(False)


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


def after_four(model: Writer, last_at: int) -> float:
    """Return the loss of the last word of the test sentences when the model sees only the four words before it.

    The last of the four stands at position `last_at`.
    """
    inputs, labels = test_sentences()
    return losses(model(inputs[:, -4:], last_at - 3)[:, -1:], labels[:, -1:]).item()


def with_full_window(model: Writer, n_words: int = 8) -> float:
    """Return the mean loss of the true words after the first INPUTS, of which it always sees the last INPUTS."""
    ids = sentences(1000, torch.Generator().manual_seed(98), INPUTS + n_words)
    ends = range(INPUTS, INPUTS + n_words)
    found = [losses(model(ids[:, end - INPUTS : end])[:, -1:], ids[:, end : end + 1]) for end in ends]
    return torch.cat(found).mean().item()


def measure(model: Writer) -> dict[str, Any]:
    """Return what `judge`, `after_four` and `with_full_window` find, and the loss in training form by position."""
    inputs, labels = test_sentences()
    in_training, alone, written = judge(model)
    single = {"training": in_training, "honest": alone, "written": written, "full window": with_full_window(model)}
    found: dict[str, Any] = {name: round(number, 4) for name, number in single.items()}
    by_position = losses(model(inputs), labels).tolist()
    moved = [after_four(model, last_at) for last_at in LAST_AT]
    return found | {"by position": _rounded(by_position), "after four": _rounded(moved)}


def _rounded(numbers: Sequence[float]) -> list[float]:
    return [round(number, 4) for number in numbers]


class Peeker(Reader):
    """The translator of rung 07 without its causal mask: target words read all others, only padding is hidden."""

    def _readable(self, x: Tensor, memory: Tensor, tgt_in: Tensor, src: Tensor) -> tuple[Tensor, Tensor]:
        masks = [padding_mask(ids, self.config.pad_id) for ids in (src, tgt_in)]
        return torch.cat((memory, x), dim=1), torch.cat(masks, dim=-1).expand(-1, -1, tgt_in.shape[1], -1)


def new_peeker(corpus: Corpus, seed: int) -> Translator:
    """Return the untrained translator of rung 07 with this seed, but without the mask."""
    found = ladder.new_translator(corpus, "07", seed)
    model = Peeker(found.model.config, ladder.find("07").parts or ())
    model.load_state_dict(found.model.state_dict())
    return Translator(model, found.src_tokenizer, found.tgt_tokenizer)


def run_peeker(corpus: Corpus, seed: int, passes: Sequence[int] = PASSES) -> dict[str, Any]:
    """Train the translator without the mask as rung 07 is trained; return its scores after each budget and samples."""
    translator, scores = new_peeker(corpus, seed), {}
    pairs = corpus["validation"]

    def look(done: int) -> None:
        if done in passes:
            scores[str(done)] = ladder.measure(translator, pairs)

    rate = ladder.chosen_rate(ladder.load_results(), "07")
    ladder.climb(translator, "07", corpus["train"], seed, epochs=passes[-1], learning_rate=rate, on_epoch=look)
    said = translator.translate([pair.src for pair in pairs[:SAMPLES]])
    samples = [[pair.src, pair.tgt, text] for pair, text in zip(pairs[:SAMPLES], said, strict=True)]
    return {"seed": seed, "rate": rate, "scores": scores, "samples": samples}


def load_results(path: Path = RESULTS) -> dict[str, Any]:
    """Return what the study stored: {"writers": a list of runs, "translators": a list of runs}, and how it was run."""
    return stored.read(path)


def run(masked: bool, cut: bool, seed: int, rate: float, steps: int) -> dict[str, Any]:
    """Train one writer; return the arguments and what `measure` finds."""
    given = {"masked": masked, "cut": cut, "seed": seed, "rate": rate, "steps": steps}
    return given | measure(train(**given))


def run_writers(seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Run the writers with the mask, without it, and without it on sentences cut at random lengths."""
    kinds = ((True, False), (False, False), (False, True))
    return [run(*kind, seed, rate, steps) for kind in kinds for rate in RATES for steps in BUDGETS for seed in seeds]


def measured(seeds: Sequence[int]) -> dict[str, Any]:
    """Return what the study compares: the writers, and the translators without the mask."""
    corpus = load_corpus("context")
    return {"writers": run_writers(seeds), "translators": [run_peeker(corpus, seed) for seed in seeds]}


def main() -> None:
    """Run the command line."""
    stored.measure_and_save("peeking", *stored.arguments(__doc__, RESULTS), measured)


if __name__ == "__main__":
    run_command(main)
