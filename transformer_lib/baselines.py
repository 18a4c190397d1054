"""What a Transformer must beat: a word-by-word dictionary, attention cut to the token itself, and a GRU."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ._validate import check_ids, check_int
from .config import TransformerConfig
from .corpus import Pair
from .tokenizer import WordTokenizer
from .transformer import Transformer


class DictionaryBaseline:
    """Translates word by word, in the source's order, each word always the same way.

    The dictionary is learned from the training pairs by IBM Model 1 (Brown et al. 1993): expectation-maximisation
    over which target word each source word produced.
    """

    def __init__(self, pairs: Sequence[Pair], *, iterations: int = 5) -> None:
        check_int("iterations", iterations)
        tokenize = WordTokenizer.tokenize
        sentences = Counter((tuple(tokenize(p.src)), tuple(tokenize(p.tgt))) for p in pairs)
        self.best = self._most_probable(self._fit(sentences, iterations))

    @staticmethod
    def _fit(sentences: Counter, iterations: int) -> dict[tuple[str, str], float]:
        """Return t(target | source) after EM from uniform."""
        table: dict[tuple[str, str], float] = defaultdict(lambda: 1.0)
        for _ in range(iterations):
            counts: dict[tuple[str, str], float] = defaultdict(float)
            for (src, tgt), times in sentences.items():
                for target in tgt:
                    total = sum(table[source, target] for source in src)
                    for source in src:
                        counts[source, target] += times * table[source, target] / total
            totals: dict[str, float] = defaultdict(float)
            for (source, _target), count in counts.items():
                totals[source] += count
            table = {(source, target): count / totals[source] for (source, target), count in counts.items()}
        return table

    @staticmethod
    def _most_probable(table: dict[tuple[str, str], float]) -> dict[str, str]:
        best: dict[str, tuple[float, str]] = {}
        for (source, target), probability in table.items():
            best[source] = max(best.get(source, (0.0, "")), (probability, target))
        return {source: target for source, (_, target) in best.items()}

    def translate(self, texts: Sequence[str]) -> list[str]:
        """Return each text with every word replaced by its most probable translation; unknown words stay."""
        return [self._translate(text) for text in texts]

    def _translate(self, text: str) -> str:
        words = [self.best.get(word, word) for word in WordTokenizer.tokenize(text)]
        line = " ".join(words)
        for mark in ".,!?":
            line = line.replace(f" {mark}", mark)
        return line[:1].upper() + line[1:]


class SelfOnlyTransformer(Transformer):
    """A `Transformer` in which every attention sees one token: position i reads position i, in all three places.

    All it knows of a word is the word itself and the target word just before, so it cannot tell senses apart.
    """

    def src_mask(self, src: Tensor) -> Tensor:
        """Each source token sees itself."""
        return _diagonal(src.shape[1], src.shape[1], src.device)

    def tgt_mask(self, tgt_so_far: Tensor, q_len: int) -> Tensor:
        """Each target token sees itself."""
        return _diagonal(tgt_so_far.shape[1], tgt_so_far.shape[1], tgt_so_far.device)[..., -q_len:, :]

    def memory_mask(self, src: Tensor, tgt_so_far: Tensor, q_len: int) -> Tensor:
        """Target position i sees source position i, or nothing past the source's end."""
        diagonal = _diagonal(tgt_so_far.shape[1], src.shape[1], src.device)[..., -q_len:, :]
        return diagonal & super().memory_mask(src, tgt_so_far, q_len)  # the end is where the padding begins


def _diagonal(q_len: int, k_len: int, device: torch.device) -> Tensor:
    return torch.eye(q_len, k_len, dtype=torch.bool, device=device)[None, None]


class GRUTranslator(nn.Module):
    """A GRU encoder-decoder without attention (Cho et al. 2014): the source passes through one vector.

    It has `encode`, `decode` and `forward` like `Transformer`, so training and decoding are the same code.

    Args:
        config: vocabulary sizes, special ids, max_len, n_layers and dropout are used. hidden: the state's width.
    """

    def __init__(self, config: TransformerConfig, hidden: int) -> None:
        super().__init__()
        self.config = config
        sizes = {"num_layers": config.n_layers, "dropout": config.dropout if config.n_layers > 1 else 0.0}
        self.src_embedding = nn.Embedding(config.src_vocab_size, check_int("hidden", hidden), padding_idx=config.pad_id)
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, hidden, padding_idx=config.pad_id)
        self.encoder = nn.GRU(hidden, hidden, batch_first=True, **sizes)
        self.decoder = nn.GRU(hidden, hidden, batch_first=True, **sizes)
        self.dropout = nn.Dropout(config.dropout)
        self.output_head = nn.Linear(hidden, config.tgt_vocab_size)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Return logits [batch, tgt_len, tgt_vocab_size] for src [batch, src_len] and tgt_in [batch, tgt_len]."""
        return self.decode(tgt_in, self.encode(src), src)

    def encode(self, src: Tensor) -> Tensor:
        """Return the final state of every layer, [batch, n_layers, hidden]: all that the decoder will know."""
        check_ids("src", src, self.config.src_vocab_size, max_len=self.config.max_len)
        lengths = (src != self.config.pad_id).sum(dim=1).cpu()
        if not lengths.all():
            row = int(lengths.argmin())
            raise ValueError(f"src must have at least one token in every row, got only padding in row {row}")
        embedded = self.dropout(self.src_embedding(src))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        return self.encoder(packed)[1].transpose(0, 1)  # [n_layers, batch, hidden] -> [batch, n_layers, hidden]

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor) -> Tensor:
        """Return logits; the decoder starts from `memory` and reads tgt_in from its first token."""
        check_ids("tgt_in", tgt_in, self.config.tgt_vocab_size, max_len=self.config.max_len)
        states, _ = self.decoder(self.dropout(self.tgt_embedding(tgt_in)), memory.transpose(0, 1).contiguous())
        return self.output_head(self.dropout(states))

    def new_cache(self) -> None:
        """A GRU keeps no keys and values; decoding re-reads the target."""


def count_parameters(model: nn.Module) -> int:
    """Return the number of trained numbers in `model` (a shared table counts once)."""
    return sum(math.prod(parameter.shape) for parameter in model.parameters() if parameter.requires_grad)
