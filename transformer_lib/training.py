"""Training with teacher forcing: shifted targets, label smoothing, warm-up, clipping, exact resumption."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm.auto import tqdm

from ._validate import check_fraction, check_int, check_tensor
from .batching import Batches
from .checkpoint import load_weights, read_checkpoint, save_checkpoint
from .schedules import make_schedule


@dataclass
class History:
    """What a training run measured, one entry per step (and per epoch in `epochs`)."""

    steps: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)  # smoothed cross-entropy per target token, in nats
    rate: list[float] = field(default_factory=list)  # learning rate
    epochs: list[dict[str, float]] = field(default_factory=list)  # what `on_epoch` returned
    interrupted: bool = False  # by the keyboard (JupyterLab's stop button)


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """Everything `train` can be told; see there."""

    epochs: int = 1
    learning_rate: float = 1e-3
    schedule: str = "onecycle"
    warmup_steps: int = 100
    label_smoothing: float = 0.1
    clip_norm: float = 1.0
    checkpoint: str | os.PathLike[str] | None = None
    checkpoint_every: int = 100
    progress: bool = True

    def __post_init__(self) -> None:
        check_int("epochs", self.epochs)
        check_int("checkpoint_every", self.checkpoint_every)
        check_fraction("label_smoothing", self.label_smoothing)
        if not self.clip_norm > 0:
            raise ValueError(f"clip_norm must be positive, got {self.clip_norm}")


def shift_right(tgt: Tensor) -> tuple[Tensor, Tensor]:
    """Return (tgt_in, tgt_out), each [batch, tgt_len − 1]: what the decoder reads, and what it must say there.

    Args:
        tgt: ids [batch, tgt_len] from bos to eos: "<bos> a b <eos>" -> "<bos> a b" and "a b <eos>".
    """
    check_tensor("tgt", tgt, rank=2)
    if tgt.shape[1] < 2:
        raise ValueError(f"tgt must have at least two tokens, bos and eos, got shape {tuple(tgt.shape)}")
    return tgt[:, :-1], tgt[:, 1:]


def translation_loss(logits: Tensor, tgt_out: Tensor, *, pad_id: int, label_smoothing: float = 0.0) -> Tensor:
    """Return the mean cross-entropy per real target token, in nats.

    Args:
        logits: [batch, tgt_len, vocab_size]. tgt_out: ids [batch, tgt_len]; pad_id entries do not count.
        label_smoothing: ε of Vaswani et al. §5.4: the target is (1 − ε) on the right token and ε spread over all.

    Raises:
        TypeError, ValueError: the shapes do not fit, or ε is not in [0, 1).
    """
    check_tensor("logits", logits, rank=3)
    check_tensor("tgt_out", tgt_out, rank=2)
    if tgt_out.shape != logits.shape[:2]:
        raise ValueError(
            f"tgt_out must have one label per row of logits {tuple(logits.shape)}, got shape {tuple(tgt_out.shape)}"
        )
    check_fraction("label_smoothing", label_smoothing)
    return F.cross_entropy(
        logits.flatten(0, 1), tgt_out.flatten(), ignore_index=pad_id, label_smoothing=label_smoothing
    )


def train(
    model: nn.Module, batches: Batches, *, on_step: Callable[[int, float], None] | None = None,
    on_epoch: Callable[[int], dict[str, float]] | None = None, **options,
) -> History:
    """Train `model` in place with Adam (β 0.9, 0.98; ε 1e-9, as in the paper) and return its history.

    Args:
        model: called as model(src, tgt_in) -> logits; has `config` with pad_id and d_model.
        batches: one epoch after another is taken from `batches.epoch(number)`.
        on_step: called with (step, loss) after every step. on_epoch: called with the epoch's number after it; what
            it returns is kept in `history.epochs`.
        epochs, learning_rate, schedule, warmup_steps: see `make_schedule`; the rate peaks at learning_rate.
        label_smoothing, clip_norm: ε of the loss; the gradient's norm is cut to clip_norm.
        checkpoint: a file written every `checkpoint_every` steps. If it exists, training goes on from it and ends
            with the weights of a run that was never stopped (on a CPU with the same number of threads).
        progress: show a progress bar.

    Returns:
        The history. Interrupting from the keyboard ends the run early and keeps it.
    """
    run = _Run(model, batches, TrainingOptions(**options))
    run.resume()
    try:
        run.go(on_step, on_epoch)
    except KeyboardInterrupt:
        run.history.interrupted = True
    return run.history


class _Run:
    """One training run: the optimizer, the schedule, the step count, and the history."""

    def __init__(self, model: nn.Module, batches: Batches, options: TrainingOptions) -> None:
        self.model, self.batches, self.options = model, batches, options
        self.parameters = dict(model.named_parameters())
        self.optimizer = torch.optim.Adam(self.parameters.values(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.total_steps = options.epochs * len(batches)
        self.rate = make_schedule(
            options.schedule, total_steps=self.total_steps, learning_rate=options.learning_rate,
            warmup_steps=options.warmup_steps, d_model=model.config.d_model,
        )
        self.step = 0
        self.history = History()
        self.device = next(iter(self.parameters.values())).device

    def go(
        self, on_step: Callable[[int, float], None] | None, on_epoch: Callable[[int], dict[str, float]] | None
    ) -> None:
        """Train from the current step to the last."""
        with tqdm(total=self.total_steps, initial=self.step, unit="step", disable=not self.options.progress) as bar:
            first = self.step // len(self.batches)
            if on_epoch is not None and first > len(self.history.epochs):
                first -= 1  # stopped between an epoch's last step and its evaluation
            for epoch in range(first, self.options.epochs):
                self.model.train()
                for number, (src, tgt) in enumerate(self.batches.epoch(epoch), start=epoch * len(self.batches)):
                    if number < self.step:
                        continue  # already done before the interruption
                    loss = self._train_step(src.to(self.device), tgt.to(self.device))
                    bar.update()
                    bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
                    if on_step is not None:
                        on_step(self.step, loss)
                    self._save_if_due()
                if on_epoch is not None:
                    self.history.epochs.append(on_epoch(epoch + 1))
        self._save_if_due(last=True)

    def _train_step(self, src: Tensor, tgt: Tensor) -> float:
        self.step += 1
        rate = self.rate(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        tgt_in, tgt_out = shift_right(tgt)
        loss = translation_loss(
            self.model(src, tgt_in), tgt_out, pad_id=self.model.config.pad_id,
            label_smoothing=self.options.label_smoothing,
        )
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters.values(), self.options.clip_norm)
        self.optimizer.step()
        value = loss.item()
        self.history.steps.append(self.step)
        self.history.loss.append(value)
        self.history.rate.append(rate)
        return value

    def _save_if_due(self, last: bool = False) -> None:
        path = self.options.checkpoint
        if path is None or not (last or self.step % self.options.checkpoint_every == 0):
            return
        state = {"rng": torch.get_rng_state()}
        for name, parameter in self.parameters.items():
            state |= {f"{key}.{name}": value for key, value in self.optimizer.state[parameter].items()}
        save_checkpoint(path, self.model, state=state, extra={"step": self.step, "history": asdict(self.history)})

    def resume(self) -> None:
        """Go back to the checkpoint's step, if there is a checkpoint: weights, optimizer, history, random numbers."""
        path = self.options.checkpoint
        if path is None or not Path(path).exists():
            return
        config, weights, state, extra = read_checkpoint(path)
        if config != self.model.config:
            raise ValueError(f"checkpoint {path} must be of this model, got config {config}")
        if "rng" not in state:
            raise ValueError(f"checkpoint {path} must be one that `train` wrote, got one without an optimizer")
        load_weights(self.model, weights, str(path))
        for name, parameter in self.parameters.items():
            if f"step.{name}" in state:  # absent for a frozen parameter
                self.optimizer.state[parameter] = {
                    key: state[f"{key}.{name}"].to(parameter.device) for key in ("step", "exp_avg", "exp_avg_sq")
                }
        self.step, self.history = extra["step"], History(**extra["history"])
        torch.set_rng_state(state["rng"])
