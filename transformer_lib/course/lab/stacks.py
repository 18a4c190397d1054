"""Can one translate without an encoder? One stack that reads source and target, beside two (notebook 19)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...model.base import TranslationModel
from ...model.config import TransformerConfig
from ...model.decoder_only import DecoderOnlyTranslator
from ...model.transformer import Transformer
from . import stored

load_results = stored.loader("stacks.json")
PASSES = (1, 4)


@dataclass(frozen=True)
class Arm:
    """One way to translate: how the model is made, how many layers each stack has, which words the loss is of."""

    new: Callable[[TransformerConfig], TranslationModel]
    n_layers: int
    source_loss: bool = False


def with_prefix(config: TransformerConfig) -> TranslationModel:
    """Return one stack in which every token sees the whole source."""
    return DecoderOnlyTranslator(config, mask="prefix")


def causal(config: TransformerConfig) -> TranslationModel:
    """Return one stack in which every token sees itself and what comes before it."""
    return DecoderOnlyTranslator(config, mask="causal")


ARMS = {
    "encoder-decoder": Arm(Transformer, 2),  # two layers in each of its two stacks
    "causal": Arm(causal, 5),  # as many parameters
    "prefix": Arm(with_prefix, 5),
    "prefix, 3 layers": Arm(with_prefix, 3),  # about as many operations
    "causal, loss on the source too": Arm(causal, 5, source_loss=True),
}
