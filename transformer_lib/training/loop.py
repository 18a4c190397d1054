"""The training loop: Adam, a schedule, gradient clipping, checkpoints, and exact resumption."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from tqdm.auto import tqdm

from .._files import check_writable
from .._validate import check_id_range
from ..data.batches import Batches
from ..model.base import TranslationModel, check_has_config
from . import distributed
from .checkpoint import check_readable
from .epochs import check_batches, epoch_of
from .finite import check_finite, check_step
from .gradients import BatchGradient
from .loss import TrainingLoss
from .options import History, TrainingOptions, read_options, takes_options
from .precision import Chosen, choose_precision
from .resuming import random_state, read_run, set_random_state, write_run
from .same_run import as_json, describe_run
from .schedules import make_schedule, make_timed_schedule
from .stopping import StopRequest

OnStep = Callable[[int, float], None]
OnEpoch = Callable[[int], dict[str, float] | None]


@takes_options(TrainingOptions)
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
        batches: one epoch after another is taken from `batches.epoch(number)`, numbered from 0; len(batches) is how
            many batches each has.
        on_step: called with (step, loss) after every step.
        on_epoch: called after each epoch with its number, counted from 1; what it returns is kept in
            `history.epochs`. A true entry "stop" in it ends the run.
        average: PyTorch's running average of the model's weights, updated after every step past the warm-up.
        {options}

    Returns:
        The history. Ctrl-C, a notebook's stop button and SIGTERM end training after the current step, or at once in
        on_step or on_epoch; the checkpoint is written, `history.interrupted` is True, and the same call goes on from
        there. (A second Ctrl-C within a step raises KeyboardInterrupt, and the last checkpoint stays as it is.)

    Raises:
        TypeError, ValueError: an option is unknown, has the wrong type, or is out of range; path="fast" for a model
            that cannot take it; ids outside the model's vocabularies; a model whose checkpoint could not be read; a
            checkpoint of another model or another run.
        FloatingPointError: the loss or the gradient of a step is not a number; that step is not taken, and no
            checkpoint overwritten.
        OSError: a checkpoint cannot be written; the last one stays.

    A resumed run ends with the weights of a run that was never stopped (on a CPU with the same number of threads, and
    without a time_limit). So a checkpoint holds the options and a digest of the first epoch's batches, and goes on with
    the same alone. What may change: {may_change}; the number of threads and processes, the device; and `epochs` may not
    fall below those begun. (With schedule="cosine" the rate then follows the curve of the new length.) An option of a
    later version counts as given with its default. What on_step and on_epoch do is not compared.

    In a group of processes (`torch.distributed`, any backend) each takes its rows of every batch, and the step is that
    of the whole batch: losses are weighted by tokens. Each calls `train` with the same arguments and ends with the same
    weights and history; processes past the first begin with another random seed, so that each drops out for itself. A
    signal to one of them ends all after the same step.
    Process 0 alone shows progress, calls on_step and on_epoch, and writes the checkpoint, which
    all must be able to read; with the same number of processes, dropout too goes on as it would have. On several
    machines, with the same command on each:

        torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST:29400 program.py
    """
    chosen = read_options(TrainingOptions, options)
    _check_model(model)
    check_batches(batches, model.config.pad_id)
    if average is not None and not isinstance(average, AveragedModel):
        raise TypeError(f"average must be an AveragedModel of torch.optim.swa_utils, got {type(average).__name__}")
    run = _Run(model, batches, chosen, average)
    with run.stop:
        run.go(on_step, on_epoch)
    return run.history


def _check_model(model: TranslationModel) -> None:
    """Raise unless `model` can be trained."""
    check_has_config("model", model)
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model must have a parameter to train, got one whose parameters are all frozen")


class _Run:
    """One training run: the gradient, the optimizer, the schedule, and the history."""

    def __init__(
        self, model: TranslationModel, batches: Batches, options: TrainingOptions, average: AveragedModel | None
    ) -> None:
        self.model, self.batches, self.options, self.average = model, batches, options, average
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.Adam(self.parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.total_steps = None if options.time_limit is not None else (options.epochs or 1) * len(batches)
        self.rate = self._schedule()
        if distributed.rank() > 0:
            torch.manual_seed(torch.initial_seed() + distributed.rank())  # each drops out for itself
        self.path = None if options.checkpoint is None else Path(options.checkpoint).absolute()  # whatever chdir does
        self.history = History()
        self.description: dict[str, Any] = {}  # of the run, where there is a checkpoint
        if self.path is not None:
            self._resume(self.path)
        self.step = len(self.history.steps)
        self.history.precision = self._precision()
        self.gradient = BatchGradient(
            TrainingLoss(model, options.label_smoothing, path=options.path),
            pad_id=model.config.pad_id,
            accumulate=options.accumulate,
            precision=self.history.precision,
        )
        self.started = time.monotonic() - self.history.seconds
        self.stop = StopRequest()

    def _resume(self, path: Path) -> None:
        """Go on from the checkpoint, if there is one; refuse a run whose checkpoints could not be written or read."""
        check_readable(self.model)
        check_writable(path)
        self.description = describe_run(self.model, self.batches, self.options, self.average)
        self.history = read_run(path, self.model, self.optimizer, self.average, self.description)
        begun = -(-len(self.history.steps) // len(self.batches))  # epochs, rounded up
        if begun > self.options.most_epochs:
            raise ValueError(
                f"epochs must be at least the {begun} that checkpoint {path} has begun, got {self.options.most_epochs}"
            )

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
        """Train from the current step to the last, or until asked to stop, and save."""
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
            in_time, stopped = True, False
            while in_time and not stopped and epoch < self.options.most_epochs and not self._asked_to_stop():
                before = self.step
                in_time = self._train_epoch(epoch, bar, on_step if first else None)
                stopped = distributed.any_of(self.stop.made)
                begun = self.step > epoch * len(self.batches)  # the time may end before an epoch's first step
                new = self.step > before or len(self.history.epochs) <= epoch
                if on_epoch is not None and begun and new and not stopped:
                    stopped = self._evaluate(epoch, on_epoch)
                epoch += 1
        self._save_if_due(last=True)
        self.history.interrupted = distributed.any_of(stopped or self.stop.made)  # it may also come while this is saved

    def _evaluate(self, epoch: int, on_epoch: OnEpoch) -> bool:
        """Keep what process 0 measures after an epoch; return whether that was stopped, to be done again."""
        device = next(self.model.parameters()).device
        measured, random = None, random_state(device)
        try:
            if distributed.rank() == 0:
                measured = as_json("what on_epoch returns", self.stop.at_once(on_epoch, epoch + 1))
        except Exception:
            set_random_state(random, device)
            if not distributed.together():  # the others would have to save, too, and wait for what was measured
                self._save_if_due(last=True)
            raise
        measured, stopped = distributed.from_first((measured, self.stop.made))
        if stopped:
            set_random_state(random, device)
        else:
            epochs = self.history.epochs
            epochs[epoch:] = [*[None] * (epoch - len(epochs)), measured]  # None for those that nobody evaluated
        return stopped

    def _asked_to_stop(self) -> bool:
        last = self.history.epochs[-1] if self.history.epochs else None
        return isinstance(last, dict) and bool(last.get("stop"))  # an `on_epoch` may also only look, and return nothing

    def _train_epoch(self, epoch: int, bar: tqdm, on_step: OnStep | None) -> bool:
        """Train on the rest of an epoch, or until asked to stop; return whether there was enough time."""
        self.model.train()
        start = epoch * len(self.batches)
        for number, (src, tgt) in enumerate(epoch_of(self.batches, epoch), start):
            if number < self.step:
                continue  # already done before the interruption
            check_id_range("src", src, self.model.config.src_vocab_size)
            check_id_range("tgt", tgt, self.model.config.tgt_vocab_size)
            fraction = self._time_spent()
            if fraction >= 1 and self.step > 0:  # one step at least, so that there is something to evaluate
                return False
            loss = self._train_step(src, tgt, self.rate(number + 1, fraction))
            self._show(bar, loss, fraction)
            if on_step is not None:
                self.stop.at_once(on_step, self.step, loss)
            self._save_if_due()
            if distributed.any_of(self.stop.made):
                break
        return True

    def _show(self, bar: tqdm, loss: float, fraction: float) -> None:
        bar.update()
        time_spent = {"time": f"{fraction:.0%}"} if self.options.time_limit else {}
        bar.set_postfix(loss=f"{loss:.3f}", **time_spent, refresh=False)

    def _time_spent(self) -> float:
        """Return the spent fraction of the time limit by the clock of process 0, so that all agree; 0 without one."""
        if self.options.time_limit is None:
            return 0.0
        seconds = time.monotonic() - self.started
        return distributed.add_up(seconds if distributed.rank() == 0 else 0.0) / self.options.time_limit

    def _train_step(self, src: Tensor, tgt: Tensor, rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.gradient.add(src, tgt)
        if self.options.clip_norm is not None:
            norm = nn.utils.clip_grad_norm_(self.parameters, self.options.clip_norm)
        else:
            norm = nn.utils.get_total_norm([weight.grad for weight in self.parameters if weight.grad is not None])
        check_step(self.step + 1, rate, loss, norm.item(), self.model)
        self.optimizer.step()
        self.step += 1
        if self.average is not None and self.step > self.options.warmup_steps:
            self.average.update_parameters(self.model)
        self.history.steps.append(self.step)
        self.history.loss.append(loss)
        self.history.rate.append(rate)
        return loss

    def _save_if_due(self, last: bool = False) -> None:
        self.history.seconds = time.monotonic() - self.started
        path = self.path
        if path is None and last:
            check_finite(dict(self.model.named_parameters()), f"step {self.step}")
        elif path is not None and (last or self.step % self.options.checkpoint_every == 0):
            self.description["options"]["precision"] = self.history.precision
            write_run(path, self.model, self.optimizer, self.average, self.history, self.description)
