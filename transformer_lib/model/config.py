"""The one description of a model's size and shape."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from .._validate import check_choice, check_flag, check_fraction, check_int
from .positional import POSITIONS


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes and choices of an encoder-decoder Transformer; the defaults are the base model of Vaswani et al. (2017).

    Raises:
        TypeError, ValueError: a field has the wrong type, is out of range, or contradicts another.
    """

    src_vocab_size: int  # rows of the source embedding table
    tgt_vocab_size: int  # rows of the target embedding table, and width of the logits
    d_model: int = 512  # width of every token vector between sub-layers
    n_heads: int = 8  # heads per attention sub-layer; each is d_model / n_heads wide
    n_layers: int = 6  # layers in the encoder, and again in the decoder
    d_ff: int = 2048  # hidden width of the feed-forward sub-layer
    dropout: float = 0.1  # on sub-layer outputs and on the summed embeddings (paper §5.4)
    max_len: int = 512  # longest sequence, in tokens
    norm_first: bool = False  # False: LayerNorm after the residual sum, as in the paper (post-norm)
    position: str = "sinusoidal"  # one of POSITIONS
    tie_embeddings: bool = False  # share one table between source, target and output (paper §3.4)
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        for name in ("src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "n_layers", "d_ff", "max_len"):
            check_int(name, getattr(self, name))
        check_fraction("dropout", self.dropout)
        check_choice("position", self.position, POSITIONS)
        for name in ("norm_first", "tie_embeddings"):
            check_flag(name, getattr(self, name))
        self._check_heads()
        self._check_vocabulary()

    def _check_heads(self) -> None:
        if self.d_model % self.n_heads:
            raise ValueError(
                f"d_model must be divisible by n_heads, got d_model={self.d_model}, n_heads={self.n_heads}"
            )
        if self.position == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions (sine-cosine pairs), got {self.d_model}")
        if self.position == "rotary" and (self.d_model // self.n_heads) % 2:
            raise ValueError(f"d_model / n_heads must be even for rotary positions, got {self.d_model // self.n_heads}")

    def _check_vocabulary(self) -> None:
        smallest = min(self.src_vocab_size, self.tgt_vocab_size)
        ids = {name: getattr(self, name) for name in ("pad_id", "bos_id", "eos_id")}
        for name, value in ids.items():
            check_int(name, value, minimum=0)
            if value >= smallest:
                raise ValueError(f"{name} must be below both vocabulary sizes ({smallest}), got {value}")
        if len(set(ids.values())) < 3:
            raise ValueError(f"pad_id, bos_id and eos_id must differ, got {ids}")
        if self.tie_embeddings and self.src_vocab_size != self.tgt_vocab_size:
            raise ValueError(
                "tie_embeddings needs one shared vocabulary, got "
                f"src_vocab_size={self.src_vocab_size}, tgt_vocab_size={self.tgt_vocab_size}"
            )

    def to_dict(self) -> dict[str, int | float | bool | str]:
        """Return the fields as a plain dictionary, for example for a checkpoint."""
        return asdict(self)
