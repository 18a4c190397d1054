"""What a Transformer must beat: a dictionary, attention cut to the token itself, a GRU; and PyTorch's own."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ._lists import check_texts
from ._validate import check_ids, check_int
from .data.corpora import Pair
from .data.tokenizers import WordTokenizer
from .model.base import TranslationModel
from .model.cache import DecoderCache
from .model.config import TransformerConfig
from .model.masks import causal_mask
from .model.positional import SinusoidalPosition
from .model.transformer import Transformer


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
    def _fit(
        sentences: Counter[tuple[tuple[str, ...], tuple[str, ...]]], iterations: int
    ) -> dict[tuple[str, str], float]:
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
        return [self._translate(text) for text in check_texts("texts", texts)]

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
        """Let each source token see itself alone."""
        return _diagonal(src.shape[1], src.shape[1], src.device)

    def tgt_mask(self, tgt_so_far: Tensor, q_len: int) -> Tensor:
        """Let each target token see itself alone."""
        return _diagonal(tgt_so_far.shape[1], tgt_so_far.shape[1], tgt_so_far.device)[..., -q_len:, :]

    def memory_mask(self, src: Tensor, tgt_so_far: Tensor, q_len: int) -> Tensor:
        """Let target position i see source position i, or nothing past the source's end."""
        diagonal = _diagonal(tgt_so_far.shape[1], src.shape[1], src.device)[..., -q_len:, :]
        return diagonal & super().memory_mask(src, tgt_so_far, q_len)  # the end is where the padding begins


def _diagonal(q_len: int, k_len: int, device: torch.device) -> Tensor:
    return torch.eye(q_len, k_len, dtype=torch.bool, device=device)[None, None]


class GRUTranslator(TranslationModel):
    """A GRU encoder-decoder without attention (Cho et al. 2014): the source passes through one vector.

    Args:
        config: vocabulary sizes, special ids, max_len, n_layers and dropout are used, the fields in `UNUSED` are not.
        hidden: the state's width.
    """

    UNUSED = frozenset({"d_model", "n_heads", "d_ff", "norm_first", "position", "tie_embeddings"})

    def __init__(self, config: TransformerConfig, hidden: int) -> None:
        super().__init__()
        self.config = config
        dropout = config.dropout if config.n_layers > 1 else 0.0  # between layers: a single one has nowhere to drop
        self.src_embedding = nn.Embedding(config.src_vocab_size, check_int("hidden", hidden), padding_idx=config.pad_id)
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, hidden, padding_idx=config.pad_id)
        self.encoder = nn.GRU(hidden, hidden, config.n_layers, batch_first=True, dropout=dropout)
        self.decoder = nn.GRU(hidden, hidden, config.n_layers, batch_first=True, dropout=dropout)
        self.dropout = nn.Dropout(config.dropout)
        self.output_head = nn.Linear(hidden, config.tgt_vocab_size)

    def encode(self, src: Tensor) -> Tensor:
        """Return the final state of every layer, [batch, n_layers, hidden]: all that the decoder will know."""
        src = check_ids("src", src, self.config.src_vocab_size, max_len=self.config.max_len)
        lengths = (src != self.config.pad_id).sum(dim=1).cpu()
        if not lengths.all():
            row = int(lengths.argmin())
            raise ValueError(f"src must have at least one token in every row, got only padding in row {row}")
        embedded = self.dropout(self.src_embedding(src))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        return self.encoder(packed)[1].transpose(0, 1)  # [n_layers, batch, hidden] -> [batch, n_layers, hidden]

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return logits; the decoder starts from `memory` and reads tgt_in from its first token."""
        tgt_in = check_ids("tgt_in", tgt_in, self.config.tgt_vocab_size, max_len=self.config.max_len)
        states, _ = self.decoder(self.dropout(self.tgt_embedding(tgt_in)), memory.transpose(0, 1).contiguous())
        return self.output_head(self.dropout(states))


class TorchTranslator(TranslationModel):
    """`torch.nn.Transformer` with embeddings, sinusoids and output head like those of `Transformer`.

    Decoding reads the whole target again at each step, as PyTorch's layers keep no keys and values. Unlike ours, its
    attention has biases, dropout acts within attention and feed-forward too, and its stacks end in a LayerNorm with
    post-norm as well.

    Args:
        config: as for `Transformer`, every field of it; the position must be sinusoidal.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        if config.position != "sinusoidal":
            raise ValueError(f"config must have sinusoidal positions, got position={config.position!r}")
        self.config = config
        self.src_embedding = nn.Embedding(config.src_vocab_size, config.d_model)
        self.tgt_embedding = nn.Embedding(config.tgt_vocab_size, config.d_model)
        self.position = SinusoidalPosition(config.max_len, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        options: dict[str, Any] = {"dropout": config.dropout, "batch_first": True, "norm_first": config.norm_first}
        layer = nn.TransformerEncoderLayer(config.d_model, config.n_heads, config.d_ff, **options)
        norm = nn.LayerNorm(config.d_model)
        # Given, not left to nn.Transformer: its own turns padded batches into nested tensors, a prototype that warns.
        encoder = nn.TransformerEncoder(layer, config.n_layers, norm, enable_nested_tensor=False)
        self.transformer = nn.Transformer(
            config.d_model,
            config.n_heads,
            num_decoder_layers=config.n_layers,
            dim_feedforward=config.d_ff,
            custom_encoder=encoder,
            **options,
        )
        self.output_head = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
        nn.init.xavier_uniform_(self.output_head.weight)
        for embedding in (self.src_embedding, self.tgt_embedding):
            nn.init.normal_(embedding.weight, std=config.d_model**-0.5)
        if config.tie_embeddings:
            self.tgt_embedding.weight = self.output_head.weight = self.src_embedding.weight

    def encode(self, src: Tensor) -> Tensor:
        """Return the memory [batch, src_len, d_model]."""
        src = check_ids("src", src, self.config.src_vocab_size, max_len=self.config.max_len)
        embedded = self._embed(self.src_embedding, src)
        return self.transformer.encoder(embedded, src_key_padding_mask=self._padding(src))

    def decode(self, tgt_in: Tensor, memory: Tensor, src: Tensor, *, cache: DecoderCache | None = None) -> Tensor:
        """Return logits for all of tgt_in."""
        return self.output_head(self.states(tgt_in, memory, src))

    def states(self, tgt_in: Tensor, memory: Tensor, src: Tensor) -> Tensor:
        """Return the decoder's states [batch, tgt_len, d_model]; PyTorch's masks say where one may not attend."""
        tgt_in = check_ids("tgt_in", tgt_in, self.config.tgt_vocab_size, max_len=self.config.max_len)
        return self.transformer.decoder(
            self._embed(self.tgt_embedding, tgt_in),
            memory,
            tgt_mask=~causal_mask(tgt_in.shape[1], device=tgt_in.device)[0, 0],
            tgt_is_causal=True,
            tgt_key_padding_mask=self._padding(tgt_in),
            memory_key_padding_mask=self._padding(src),
        )

    def _padding(self, ids: Tensor) -> Tensor:
        return ids == self.config.pad_id

    def _embed(self, embedding: nn.Embedding, ids: Tensor) -> Tensor:
        return self.dropout(self.position(embedding(ids) * math.sqrt(self.config.d_model)))


def count_parameters(model: nn.Module) -> int:
    """Return the number of trained numbers in `model` (a shared table counts once)."""
    return sum(math.prod(parameter.shape) for parameter in model.parameters() if parameter.requires_grad)
