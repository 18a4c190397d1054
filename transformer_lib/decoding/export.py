"""A trained translator for CTranslate2, an engine in C++ that does nothing but translate (Klein et al. 2020).

`to_ctranslate2` writes a folder with weights and vocabularies, and `load_ctranslate2` opens one. The folder can be used
without this library: `ctranslate2.Translator(folder).translate_batch([["the", "man", …]])`.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import Tensor, nn

from .._lists import check_texts
from .._validate import check_choice, check_int, check_not_negative
from ..data.tokenizers import BOS_ID, EOS_ID, PAD_ID, SPECIAL_TOKENS, BPETokenizer
from ..fast.eligibility import TRAINING, obstacle, unlike_config
from ..model.decoder import DecoderLayer
from ..model.encoder import EncoderLayer
from ..model.layers import FeedForward, Residual
from ..model.multihead import MultiHeadAttention
from ..model.transformer import Transformer
from .translator import Tokenizer, Translator, as_data, check_text_pairs, tokenizers_in

QUANTIZATIONS = ("float32", "int8")
_POSITIONS = {
    "rotary": "turns queries and keys inside attention, which this export does not write",
    "relative": "adds a bias of its own to the scores, which CTranslate2 computes from other distances",
}
_ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh"}  # ours, and CTranslate2's names for them
_TOKENIZERS = "tokenizers.json"


def unsupported(model: nn.Module) -> str | None:
    """Return why `model` cannot be written for CTranslate2, or None if it can: a `Transformer` as its config says.

    Positions may be added to the embeddings ("sinusoidal", "learned") or be missing ("none"); norms may come first. All
    feed-forward networks may have another activation, and all norms another ε, as the engine has one of each.
    """
    reason = obstacle(model)
    if reason is not None:
        return reason
    assert isinstance(model, Transformer)
    kind = model.config.position
    if kind in _POSITIONS:
        return f"position={kind!r} {_POSITIONS[kind]}"
    unlike = unlike_config(model, but=TRAINING | {"activation", "eps", "table", "ties"})
    return unlike or _different_ids(model) or _differing_layers(model) or _not_finite(model)


def _different_ids(model: Transformer) -> str | None:
    """Return which special id differs from that of the vocabularies, which are written with their own, or None."""
    wanted = {"pad_id": PAD_ID, "bos_id": BOS_ID, "eos_id": EOS_ID}
    for name, value in wanted.items():
        own = getattr(model.config, name)
        if own != value:
            return f"{name}={own}, which is {value} in the vocabularies"
    return None


def _differing_layers(model: Transformer) -> str | None:
    """Return which two layers differ where the engine has one value for all, or which value it does not know."""
    for attribute in ("activation", "eps"):
        values = {path: getattr(part, attribute) for path, part in model.named_modules() if hasattr(part, attribute)}
        (first, value), *others = values.items()
        for path, other in others:
            if other != value:
                return f"{path}.{attribute} is {other!r} and {first}.{attribute} {value!r}, and CTranslate2 has one"
        if attribute == "activation" and value not in _ACTIVATIONS:
            return f"{first}.activation is {value!r}, and this export knows {', '.join(map(repr, _ACTIVATIONS))}"
    return None


def _not_finite(model: Transformer) -> str | None:
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if not tensor.float().isfinite().all():
            return f"{name} holds numbers that are not finite in float32"
    return None


def to_ctranslate2(translator: Translator, folder: str | os.PathLike[str], *, quantization: str = "float32") -> Path:
    """Write the translator's weights and vocabularies as a CTranslate2 model, and return its folder.

    Args:
        folder: is made; it must not exist, or be empty.
        quantization: "float32" keeps each weight, rounded where the model is in float64; "int8" keeps a byte per weight
            of the matrices, and one number per row to multiply it with.

    Raises:
        ImportError: CTranslate2 is not installed. FileExistsError: the folder holds something.
        ValueError: the model computes something that cannot be written; the message says what.
    """
    check_choice("quantization", quantization, QUANTIZATIONS)
    model = translator.model
    reason = unsupported(model)
    if reason is not None or not isinstance(model, Transformer):
        raise ValueError(f"translator must have a model that CTranslate2 can compute, but {reason}")
    engine, folder = _engine(), Path(folder)
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"folder must be empty or not exist, and {folder} holds something")
    spec = _specification(engine, model)
    for register, tokenizer in (
        (spec.register_source_vocabulary, translator.src_tokenizer),
        (spec.register_target_vocabulary, translator.tgt_tokenizer),
    ):
        register(vocabulary(tokenizer))
    _, spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = SPECIAL_TOKENS
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.layer_norm_epsilon = _first_layer(model).feed_forward_residual.norm.eps  # all have the same
    spec.validate()
    spec.optimize(quantization=quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))
    both = {"src_words": as_data(translator.src_tokenizer), "tgt_words": as_data(translator.tgt_tokenizer)}
    described = {**both, "max_len": model.config.max_len}
    (folder / _TOKENIZERS).write_text(json.dumps(described), encoding="utf-8")
    return folder


def load_ctranslate2(folder: str | os.PathLike[str], *, threads: int = 1, compute_type: str = "default") -> Exported:
    """Open a folder that `to_ctranslate2` wrote.

    Args:
        threads: of the processor. compute_type: "default" computes with the numbers that were written; others as in
            CTranslate2.

    Raises:
        ImportError: CTranslate2 is not installed. FileNotFoundError: the folder is not one of `to_ctranslate2`.
    """
    check_int("threads", threads)
    engine, folder = _engine(), Path(folder)
    for name in ("model.bin", _TOKENIZERS):
        if not (folder / name).is_file():
            raise FileNotFoundError(f"folder must be one that to_ctranslate2 wrote, and {folder} has no {name}")
    data = json.loads((folder / _TOKENIZERS).read_text(encoding="utf-8"))
    opened = engine.Translator(str(folder), compute_type=compute_type, inter_threads=1, intra_threads=threads)
    return Exported(opened, folder, *tokenizers_in(data, str(folder)), max_len=data.get("max_len"))


class Exported:
    """A CTranslate2 translator with this library's tokenizers: text in, text out. `load_ctranslate2` makes it.

    `engine` is the `ctranslate2.Translator`, `folder` where it was read, and `max_len` the model's: how many tokens
    the engine has positions for (None for a folder of version 1.0, which does not tell it).
    """

    def __init__(
        self,
        engine: Any,
        folder: Path,
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        *,
        max_len: int | None = None,
    ) -> None:
        self.engine, self.folder, self.max_len = engine, folder, max_len
        self.src_tokenizer, self.tgt_tokenizer = src_tokenizer, tgt_tokenizer
        self._id_of = {token: i for i, token in enumerate(vocabulary(tgt_tokenizer))}

    @property
    def bytes(self) -> int:
        """The size of the file with the weights."""
        return (self.folder / "model.bin").stat().st_size

    def translate(
        self,
        texts: Iterable[str],
        *,
        beam_size: int = 1,
        max_new_tokens: int = 40,
        length_penalty: float = 0.0,
        batch_size: int = 250,
    ) -> list[str]:
        """Return one translation per text, by greedy decoding or, with beam_size > 1, by beam search.

        A beam stops once beam_size hypotheses have ended; `tl.beam_search` goes on while a better one could still come.

        Args:
            length_penalty: α of length^α, which divides the summed log-probability. (The α of `tl.beam_search` belongs
                to another formula; at 0 the two are the same.)
            max_new_tokens, beam_size: as for `Translator.translate`. batch_size: texts that are decoded together.

        Raises:
            TypeError, ValueError: `texts` is one string, a text is empty, has an unknown word or more than max_len
                tokens.
        """
        sources = [self.tokens(text) for text in check_texts("texts", texts)]
        check_not_negative("length_penalty", length_penalty)
        results = self.engine.translate_batch(
            sources,
            max_batch_size=check_int("batch_size", batch_size),
            beam_size=check_int("beam_size", beam_size),
            max_decoding_length=min(check_int("max_new_tokens", max_new_tokens), self.max_len or max_new_tokens),
            min_decoding_length=0,
            max_input_length=0,
            length_penalty=length_penalty,
        )
        return [self.tgt_tokenizer.decode([self._id_of[t] for t in result.hypotheses[0]]) for result in results]

    def log_probabilities(self, src: Iterable[str], tgt: Iterable[str]) -> list[list[float]]:
        """Return log P(token | earlier ones, source) of each target token and its eos, a list per pair.

        Raises:
            TypeError, ValueError: as for `Translator.log_probabilities`.
        """
        texts, targets = check_text_pairs(src, tgt)
        expected = [self.tgt_tokenizer.tokens(self.tgt_tokenizer.encode(text)) for text in targets]
        for tokens in expected:
            self._check_length("tgt", len(tokens) + 1)  # with bos in front, which the engine adds
        scored = self.engine.score_batch([self.tokens(text) for text in texts], expected, max_input_length=0)
        return [list(result.log_probs) for result in scored]

    def tokens(self, text: str) -> list[str]:
        """Return what the engine reads for a source text."""
        ids = self.src_tokenizer.encode(text)
        if not ids:
            raise ValueError(f"each text must have at least one word, got {text!r}")
        self._check_length("src", len(ids))
        return self.src_tokenizer.tokens(ids)

    def _check_length(self, name: str, length: int) -> None:
        """The engine has no positions for more tokens."""
        if self.max_len is not None and length > self.max_len:
            raise ValueError(f"{name} has {length} tokens, more than max_len = {self.max_len}")


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    """Return the token of each id."""
    if isinstance(tokenizer, BPETokenizer):
        rest = range(len(SPECIAL_TOKENS), len(tokenizer))
        return [*SPECIAL_TOKENS, *(token for i in rest for token in tokenizer.tokens([i]))]
    return list(tokenizer.words)


def _engine() -> ModuleType:
    try:
        return importlib.import_module("ctranslate2")
    except ModuleNotFoundError as error:
        if error.name != "ctranslate2":
            raise
        hint = 'CTranslate2 is not installed: pip install "ctranslate2>=4.5,<5"'
        raise ImportError(hint, name=error.name) from error


def _specification(engine: ModuleType, model: Transformer) -> Any:
    """Return CTranslate2's description of the model, with its weights."""
    config = model.config
    activation = _ACTIVATIONS[_first_layer(model).feed_forward.activation]  # all have the same
    spec = engine.specs.TransformerSpec.from_config(
        config.n_layers, config.n_heads, pre_norm=config.norm_first, activation=engine.specs.Activation[activation]
    )
    places = _position_table(model)
    for theirs, ours, embedding in (
        (spec.encoder, model.encoder, model.src_embedding),
        (spec.decoder, model.decoder, model.tgt_embedding),
    ):
        theirs.position_encodings.encodings = places
        (theirs.embeddings[0] if theirs is spec.encoder else theirs.embeddings).weight = _array(embedding.weight)
        if config.norm_first:
            _copy_norm(theirs.layer_norm, ours.norm)
        for layer, own in zip(theirs.layer, ours.layers, strict=True):
            _copy_layer(layer, cast(EncoderLayer | DecoderLayer, own))
    spec.decoder.projection.weight = _array(model.output_head.weight)
    return spec


def _first_layer(model: Transformer) -> EncoderLayer:
    return cast(EncoderLayer, model.encoder.layers[0])


def _position_table(model: Transformer) -> Any:
    """Return what the model adds to its embeddings, [max_len, d_model]."""
    config = model.config
    empty = torch.zeros(1, config.max_len, config.d_model)
    return _array(model.position(empty.to(model.output_head.weight))[0])


def _copy_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    own = layer.self_attention
    _copy_attention(spec.self_attention, [(own.w_q, own.w_k, own.w_v), (own.w_o,)], layer.self_attention_residual)
    if isinstance(layer, DecoderLayer):
        cross: MultiHeadAttention = layer.cross_attention
        maps: list[tuple[nn.Linear, ...]] = [(cross.w_q,), (cross.w_k, cross.w_v), (cross.w_o,)]
        _copy_attention(spec.attention, maps, layer.cross_attention_residual)
    feed_forward: FeedForward = layer.feed_forward
    for linear, ours in ((spec.ffn.linear_0, feed_forward.expand), (spec.ffn.linear_1, feed_forward.contract)):
        linear.weight, linear.bias = _array(ours.weight), _array(ours.bias)
    _copy_norm(spec.ffn.layer_norm, layer.feed_forward_residual.norm)


def _copy_attention(spec: Any, maps: Sequence[tuple[nn.Linear, ...]], residual: Residual) -> None:
    """Copy projections, those of one tuple below each other: the engine multiplies them at once."""
    for linear, parts in zip(spec.linear, maps, strict=True):
        linear.weight = _array(torch.cat([part.weight for part in parts]))
    _copy_norm(spec.layer_norm, residual.norm)


def _copy_norm(spec: Any, norm: nn.Module) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _array(values: Tensor | nn.Module) -> Any:
    assert isinstance(values, Tensor)
    return values.detach().float().cpu().numpy().copy()
