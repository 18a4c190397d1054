"""Training for the command: the model, the average of its weights, validation, and the best weights."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from tqdm.auto import tqdm

from .._paths import PathName
from ..baselines import TorchTranslator
from ..data.batches import Batches
from ..data.tokenizers import BPETokenizer
from ..model.base import TranslationModel
from ..model.config import TransformerConfig
from ..model.transformer import Transformer
from ..training.checkpoint import load_weights, read_checkpoint, save_checkpoint
from ..training.distributed import rank
from ..training.evaluation import loss_per_token
from ..training.loop import train
from ..training.options import History
from ..training.precision import Precision
from .arguments import begin_folder, training_options
from .preparation import Data

MODELS: dict[str, type[Transformer] | type[TorchTranslator]] = {"ours": Transformer, "torch": TorchTranslator}
RUN, BEST = "run.safetensors", "best.safetensors"  # in the run's folder: to go on from, and to translate with
MAX_LEN = 256  # tokens of the longest sentence, written or read


@dataclass(frozen=True)
class Learned:
    """The model with its best weights, when these were reached, and what training measured."""

    model: TranslationModel
    best: dict[str, float]  # "epoch" and "loss", the validation loss in nats per token
    history: History
    steps_per_epoch: int


def new_model(arguments: argparse.Namespace, vocabulary: int) -> TranslationModel:
    """Return the untrained model; both languages and the output share one table of embeddings."""
    torch.manual_seed(arguments.seed)
    return MODELS[arguments.model](model_config(arguments, vocabulary))


def model_config(arguments: argparse.Namespace, vocabulary: int) -> TransformerConfig:
    """Config of the model for a vocabulary of this size.

    Raises:
        ValueError: the sizes contradict each other.
    """
    return TransformerConfig(
        src_vocab_size=vocabulary,
        tgt_vocab_size=vocabulary,
        d_model=arguments.d_model,
        n_heads=arguments.heads,
        n_layers=arguments.layers,
        d_ff=arguments.d_ff,
        dropout=arguments.dropout,
        max_len=MAX_LEN,
        norm_first=arguments.norm == "pre",
        tie_embeddings=True,
    )


def new_average(model: nn.Module, decay: float) -> AveragedModel | None:
    """Return an exponential moving average of the model's weights, or None for decay 0.

    At first it forgets faster, by (1 + n) / (10 + n) after n updates, so that a short run is not held back by its
    beginning.
    """
    if not decay:
        return None

    def mix(averaged: Iterable[Tensor], current: Iterable[Tensor], n: Tensor | int) -> None:
        updates = torch.as_tensor(n)  # a tensor still, so that a GPU need not wait
        share = 1 - ((1 + updates) / (10 + updates)).clamp(max=decay)
        for average, weight in zip(averaged, current, strict=True):
            average.lerp_(weight, share.to(average.dtype))

    return AveragedModel(model, multi_avg_fn=mix)


class Validation:
    """After each epoch: the validation loss, the best weights kept in a file, and whether to stop.

    Args:
        model, average: what is trained; the average is what counts once there is one.
        batches: of the validation pairs. path: of the best weights.
        precision, computes: precision and path, as `train` takes them.
        patience: epochs in a row without a better loss, after which to stop; 0 for never.
    """

    def __init__(
        self,
        model: TranslationModel,
        average: AveragedModel | None,
        batches: Batches,
        path: Path,
        *,
        patience: int,
        precision: Precision,
        computes: PathName,
        tokenizer: BPETokenizer,
    ) -> None:
        self.model, self.average, self.batches, self.path = model, average, batches, path
        self.patience, self.precision, self.computes, self.tokenizer = patience, precision, computes, tokenizer
        self.best = read_checkpoint(path).extra["best"] if path.exists() else {"epoch": 0, "loss": math.inf}

    def __call__(self, epoch: int) -> dict[str, float]:
        """Return the epoch's validation loss, and "stop" as `train` understands it."""
        model = self.model
        if self.average is not None and self.average.n_averaged > 0:
            model = cast(TranslationModel, self.average.module)
        loss = loss_per_token(model, self.batches, precision=self.precision, path=self.computes)
        if not math.isfinite(loss):
            hint = "a lower --learning-rate may help, in another --out"
            raise FloatingPointError(f"epoch {epoch}: validation loss {loss}; {hint}")
        if loss < self.best["loss"]:
            self.best = {"epoch": epoch, "loss": loss}
            save_checkpoint(self.path, model, extra={"best": self.best, "tokenizer": self.tokenizer.to_string()})
        verdict = "best so far" if self.best["epoch"] == epoch else f"best was epoch {self.best['epoch']}"
        tqdm.write(f"epoch {epoch}: validation loss {loss:.4f} nats per token, {verdict}")
        stop = 0 < self.patience <= epoch - self.best["epoch"]
        return {"validation": loss, "stop": float(stop)}


def saved_steps(folder: Path) -> int:
    """Return after how many steps a run would go on in `folder`; 0 where none are saved."""
    path = folder / RUN
    return int(read_checkpoint(path).extra["step"]) if path.exists() else 0


def learn(arguments: argparse.Namespace, data: Data, device: torch.device) -> Learned:
    """Train to the end, from the folder's checkpoint if there is one; in process 0 the model has its best weights."""
    model = new_model(arguments, len(data.tokenizer)).to(device)
    average = new_average(model, arguments.average)
    batches = data.batches(data.train, arguments.max_tokens, arguments.seed)
    best = arguments.out / BEST
    validation = Validation(
        model,
        average,
        data.batches(data.validation, arguments.max_tokens),
        best,
        patience=arguments.patience,
        precision=arguments.precision,
        computes=arguments.path,
        tokenizer=data.tokenizer,
    )
    if rank() == 0:
        begin_folder(arguments)
    history = train(
        model,
        batches,
        on_epoch=validation,
        average=average,
        checkpoint=arguments.out / RUN,
        **training_options(arguments),
    )
    if rank() == 0 and not history.interrupted:
        load_weights(model, read_checkpoint(best).weights, str(best))
    return Learned(model, validation.best, history, len(batches))
