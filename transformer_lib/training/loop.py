"""The training loop: Adam, a schedule, gradient clipping, checkpoints, and exact resumption."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from tqdm.auto import tqdm

from .._validate import check_id_range
from ..data.batches import Batches
from ..model.base import TranslationModel
from . import distributed
from .gradients import BatchGradient
from .loss import TrainingLoss
from .options import History, TrainingOptions, takes_options
from .precision import Chosen, choose_precision
from .resuming import read_run, write_run
from .schedules import make_schedule, make_timed_schedule

OnStep = Callable[[int, float], None]
OnEpoch = Callable[[int], dict[str, float] | None]


@takes_options
def train(
    model: TranslationModel,
    batches: Batches,
    *,
    on_step: OnStep | None = None,
    on_epoch: OnEpoch | None = None,
    average: AveragedModel | None = None,
    **options: Any,
) -> History:
    """Train `model` in place with Adam (β 0.9, 0.98; ε 1e-9, as in the paper) and return its history.

    Args:
        model: called as model(src, tgt_in) -> logits; its `config` is a `TransformerConfig`.
        batches: one epoch after another is taken from `batches.epoch(number)`, numbered from 0.
        on_step: called with (step, loss) after every step.
        on_epoch: called after each epoch with its number, counted from 1; what it returns is kept in
            `history.epochs`. A true entry "stop" in it ends the run.
        average: PyTorch's running average of the model's weights, updated after every step past the warm-up.
        {options}

    Returns:
        The history. Interrupting from the keyboard stops training, and the history so far is returned; in a group of
        processes the interrupt is raised, so that all end.

    Raises:
        TypeError, ValueError: an option is unknown, has the wrong type, or is out of range; path="fast" for a model
            that cannot take it; ids outside the model's vocabularies; a checkpoint of another model.

    A resumed run ends with the weights of a run that was never stopped (on a CPU with the same number of threads, and
    without a time_limit).

    In a group of processes (`torch.distributed`, any backend) each takes its rows of every batch, and the step is that
    of the whole batch: losses are weighted by tokens. Each calls `train` with the same arguments and ends with the same
    weights and history; processes past the first begin with another random seed, so that each drops out for itself.
    Process 0 alone shows progress, calls on_step and on_epoch, and writes the checkpoint, which
    all must be able to read; with the same number of processes, dropout too goes on as it would have. On several
    machines, with the same command on each:

        torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400 program.py
    """
    unknown = sorted(options.keys() - {entry.name for entry in fields(TrainingOptions)})
    if unknown:
        known = ", ".join(entry.name for entry in fields(TrainingOptions))
        raise TypeError(f"options must be among {known}, got {', '.join(unknown)}")
    run = _Run(model, batches, TrainingOptions(**options), average)
    try:
        run.go(on_step, on_epoch)
    except KeyboardInterrupt:
        if distributed.together():
            raise  # the others wait for this process: it must leave the group, so that they notice
        run.history.interrupted = True
    return run.history


class _Run:
    """One training run: the gradient, the optimizer, the schedule, and the history."""

    def __init__(
        self, model: TranslationModel, batches: Batches, options: TrainingOptions, average: AveragedModel | None
    ) -> None:
        padding = getattr(batches, "pad_id", model.config.pad_id)  # other loaders may have none to tell
        if padding != model.config.pad_id:
            raise ValueError(f"batches must be padded with the model's pad_id {model.config.pad_id}, got {padding}")
        self.model, self.batches, self.options, self.average = model, batches, options, average
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.total_steps = None if options.time_limit is not None else (options.epochs or 1) * len(batches)
        self.rate = self._schedule()
        if distributed.rank() > 0:
            torch.manual_seed(torch.initial_seed() + distributed.rank())  # each drops out for itself
        self.history = History()
        if options.checkpoint is not None:
            self.history = read_run(options.checkpoint, model, self.optimizer, average)
        self.step = len(self.history.steps)
        self.history.precision = self._precision()
        self.gradient = BatchGradient(
            TrainingLoss(model, options.label_smoothing, path=options.path),
            pad_id=model.config.pad_id,
            accumulate=options.accumulate,
            precision=self.history.precision,
        )
        self.started = time.monotonic() - self.history.seconds

    def _precision(self) -> Chosen:
        """Return what all processes compute in; a run that was begun with "auto" goes on as it began."""
        if self.options.precision == "auto" and self.step > 0:
            return self.history.precision
        device = next(self.model.parameters()).device
        chosen = distributed.gather(choose_precision(self.options.precision, device))
        return "float32" if "float32" in chosen else "bfloat16"  # auto: every process has to have the units

    def _schedule(self) -> Callable[[int, float], float]:
        """Return (step, fraction of the time) -> rate."""
        options = self.options
        shape: dict[str, Any] = {
            "learning_rate": options.learning_rate,
            "warmup_steps": options.warmup_steps,
            "d_model": self.model.config.d_model,
        }
        if self.total_steps is None:
            return make_timed_schedule(options.schedule, **shape)
        by_step = make_schedule(options.schedule, total_steps=self.total_steps, **shape)
        return lambda step, _fraction: by_step(step)

    def go(self, on_step: OnStep | None, on_epoch: OnEpoch | None) -> None:
        """Train from the current step to the last."""
        first = distributed.rank() == 0
        with tqdm(
            total=self.total_steps,
            initial=self.step,
            unit="step",
            desc=self.history.precision if self.options.precision == "auto" else None,
            disable=not (first and self.options.progress),
        ) as bar:
            epoch = self.step // len(self.batches)
            if on_epoch is not None and epoch > len(self.history.epochs):
                epoch -= 1  # stopped between an epoch's last step and its evaluation
            in_time = True
            while in_time and epoch < self.options.most_epochs and not self._told_to_stop():
                before = self.step
                in_time = self._train_epoch(epoch, bar, on_step if first else None)
                begun = self.step > epoch * len(self.batches)  # the time may end before an epoch's first step
                if on_epoch is not None and begun and (self.step > before or len(self.history.epochs) <= epoch):
                    self.history.epochs[epoch:] = [distributed.from_first(on_epoch(epoch + 1) if first else None)]
                epoch += 1
        self._save_if_due(last=True)

    def _told_to_stop(self) -> bool:
        last = self.history.epochs[-1] if self.history.epochs else None
        return isinstance(last, dict) and bool(last.get("stop"))  # an `on_epoch` may also only look, and return nothing

    def _train_epoch(self, epoch: int, bar: tqdm, on_step: OnStep | None) -> bool:
        """Train on what is left of an epoch; return whether the time sufficed."""
        self.model.train()
        for number, (src, tgt) in enumerate(self.batches.epoch(epoch), start=epoch * len(self.batches)):
            if number < self.step:
                continue  # already done before the interruption
            check_id_range("src", src, self.model.config.src_vocab_size)
            check_id_range("tgt", tgt, self.model.config.tgt_vocab_size)
            fraction = self._time_spent()
            if fraction >= 1 and self.step > 0:  # one step at least, so that there is something to evaluate
                return False
            loss = self._train_step(src, tgt, self.rate(number + 1, fraction))
            bar.update()
            time_spent = {"time": f"{fraction:.0%}"} if self.options.time_limit else {}
            bar.set_postfix(loss=f"{loss:.3f}", **time_spent, refresh=False)
            if on_step is not None:
                on_step(self.step, loss)
            self._save_if_due()
        return True

    def _time_spent(self) -> float:
        """Return the spent fraction of the time limit by the clock of process 0, so that all agree; 0 without one."""
        if self.options.time_limit is None:
            return 0.0
        seconds = time.monotonic() - self.started
        return distributed.add_up(seconds if distributed.rank() == 0 else 0.0) / self.options.time_limit

    def _train_step(self, src: Tensor, tgt: Tensor, rate: float) -> float:
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.gradient.add(src, tgt)
        if self.options.clip_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.options.clip_norm)
        self.optimizer.step()
        if self.average is not None and self.step > self.options.warmup_steps:
            self.average.update_parameters(self.model)
        self.history.steps.append(self.step)
        self.history.loss.append(loss)
        self.history.rate.append(rate)
        return loss

    def _save_if_due(self, last: bool = False) -> None:
        self.history.seconds = time.monotonic() - self.started
        if self.options.checkpoint is not None and (last or self.step % self.options.checkpoint_every == 0):
            write_run(self.options.checkpoint, self.model, self.optimizer, self.average, self.history)
