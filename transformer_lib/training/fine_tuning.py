"""Fine-tuning: a language model learns to answer as examples do, under the same promises as `train`."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from .._files import check_writable
from .._tensor_files import read_tensors, write_tensors
from .._validate import check_id_range
from ..data.batches import Batches
from ..model import modern
from . import distributed
from .answers import AnswerLoss, Example, answer_batches
from .epochs import epoch_of
from .finite import check_finite, check_step
from .gradients import BatchGradient
from .options import FineTuningOptions, History, read_options, takes_options
from .precision import Chosen, choose_precision
from .resuming import random_state, set_random_state
from .same_run import check_same_run, describe_run
from .schedules import make_schedule
from .stopping import StopRequest


@takes_options(FineTuningOptions)
def fine_tune(
    model: modern.LanguageModel,
    examples: Iterable[Example],
    *,
    pad_id: int,
    batch_size: int = 4,
    seed: int = 0,
    on_step: Callable[[int, float], None] | None = None,
    **options: Any,
) -> History:
    """Teach `model`, in place, to say the answers of the examples after their prompts; return the history.

    The loss is the cross-entropy of the answers' tokens; prompts are only read. Adam (β 0.9, 0.999) moves the
    parameters that are not frozen: all of them, or after `tl.lora.add` the adapter's.

    Args:
        examples: pairs (prompt, answer) of ids; the answer has the token that ends it. pad_id: an id that no answer
            has. batch_size, seed: of the batches, whose rows are of similar length, as in `tl.Batches`.
        on_step: called with (step, loss) after every step.
        {options}

    Returns:
        The history; history.loss is in nats per answer token. Ctrl-C, a notebook's stop button and SIGTERM end it after
        the current step; the checkpoint is written, `history.interrupted` is True, and the same call goes on from
        there.

    Raises:
        TypeError, ValueError: an option is unknown or out of range; the model is no `tl.modern.LanguageModel`, is all
            frozen, or lacks an id of the examples; an example is wrong (see `answer_batches`); the checkpoint is of
            another run, or has taken more steps; several processes would train together, as with `train` they can.
        FloatingPointError: the loss or the gradient of a step is not a number; that step is not taken, and no
            checkpoint overwritten.
        OSError: a checkpoint cannot be written; the last one stays.

    A resumed run ends with the weights of a run that was never stopped (on a CPU with the same number of threads). A
    checkpoint holds what is trained, and a digest of the frozen weights, the options and the examples; it goes on with
    the same alone. What may change: {may_change}.
    """
    chosen = read_options(FineTuningOptions, options)
    _check_model(model)
    batches = answer_batches(examples, batch_size, pad_id=pad_id, seed=seed)
    run = _Run(model, batches, chosen)
    with run.stop:
        run.go(on_step)
    return run.history


def _check_model(model: modern.LanguageModel) -> None:
    """Raise unless `model` can be fine-tuned here."""
    if not isinstance(model, modern.LanguageModel):
        raise TypeError(f"model must be a tl.modern.LanguageModel, got {type(model).__name__}")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("model must have a parameter to train, got one whose parameters are all frozen")
    if distributed.together():
        raise ValueError("fine_tune must run in one process, got a group of them")


class _Run:
    """One run: what is trained, the optimizer, the schedule, and the history."""

    def __init__(self, model: modern.LanguageModel, batches: Batches, options: FineTuningOptions) -> None:
        self.model, self.batches, self.options = model, batches, options
        self.trained = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
        self.optimizer = torch.optim.Adam(self.trained.values(), lr=0.0, fused=True)
        self.last = len(batches) if options.steps is None else options.steps
        self.rate = make_schedule(
            options.schedule,
            total_steps=self.last,
            learning_rate=options.learning_rate,
            warmup_steps=options.warmup_steps,
            d_model=model.config.d_model,
        )
        self.path = None if options.checkpoint is None else Path(options.checkpoint).absolute()  # whatever chdir does
        self.history, self.description = History(), {}
        if self.path is not None:
            check_writable(self.path)
            self.description = self._describe()
            if self.path.exists():
                self._resume(self.path)
        self.history.precision = self._precision()
        self.gradient = BatchGradient(
            AnswerLoss(model, batches.pad_id),
            pad_id=batches.pad_id,
            accumulate=options.accumulate,
            precision=self.history.precision,
        )
        self.started = time.monotonic() - self.history.seconds
        self.stop = StopRequest()

    @property
    def step(self) -> int:
        """Steps taken so far."""
        return len(self.history.steps)

    def _precision(self) -> Chosen:
        if self.options.precision == "auto" and self.step > 0:
            return self.history.precision  # as it was begun
        return choose_precision(self.options.precision, self.device)

    @property
    def device(self) -> torch.device:
        """The device that the model is on."""
        return self.model.embedding.weight.device

    def go(self, on_step: Callable[[int, float], None] | None) -> None:
        """Train from the current step to the last, or until asked to stop, and save."""
        self.model.train()
        with tqdm(total=self.last, initial=self.step, unit="step", disable=not self.options.progress) as bar:
            while self.step < self.last and not self.stop.made:
                self._train_epoch(self.step // len(self.batches), bar, on_step)
        self._save_if_due(last=True)
        self.history.interrupted = self.stop.made

    def _train_epoch(self, epoch: int, bar: tqdm, on_step: Callable[[int, float], None] | None) -> None:
        """Train on the rest of an epoch, up to the last step, or until asked to stop."""
        for number, (ids, labels) in enumerate(epoch_of(self.batches, epoch), epoch * len(self.batches)):
            if number < self.step:
                continue  # already done before the interruption
            loss = self._train_step(check_id_range("examples", ids, self.model.config.vocab_size), labels)
            bar.update()
            bar.set_postfix(loss=f"{loss:.3f}", refresh=False)
            if on_step is not None:
                self.stop.at_once(on_step, self.step, loss)
            self._save_if_due()
            if self.stop.made or self.step == self.last:
                return

    def _train_step(self, ids: Tensor, labels: Tensor) -> float:
        step, rate = self.step + 1, self.rate(self.step + 1)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.gradient.add(ids, labels)
        if self.options.clip_norm is not None:
            norm = nn.utils.clip_grad_norm_(self.trained.values(), self.options.clip_norm)
        else:
            norm = nn.utils.get_total_norm([weight.grad for weight in self.trained.values() if weight.grad is not None])
        check_step(step, rate, loss, norm.item(), self.model)
        self.optimizer.step()
        self.history.steps.append(step)
        self.history.loss.append(loss)
        self.history.rate.append(rate)
        return loss

    def _describe(self) -> dict[str, Any]:
        """Return what has to stay the same when the run goes on: also the weights that no checkpoint holds."""
        description, digest = describe_run(self.model, self.batches, self.options), hashlib.sha256()
        trained = set(map(id, self.trained.values()))  # a tied table has two names
        for name, weight in self.model.state_dict(keep_vars=True).items():
            if id(weight) not in trained:
                digest.update(name.encode())
                digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        description["model"]["frozen weights"] = digest.hexdigest()
        return description

    def _save_if_due(self, last: bool = False) -> None:
        self.history.seconds = time.monotonic() - self.started
        if self.path is None and last:
            check_finite(self.trained, f"step {self.step}")
        elif self.path is not None and (last or self.step % self.options.checkpoint_every == 0):
            self._save(self.path)

    def _save(self, path: Path) -> None:
        tensors: dict[str, Tensor] = {f"weight.{name}": weight for name, weight in self.trained.items()}
        for name, weight in self.trained.items():
            tensors |= {f"{key}.{name}": value for key, value in self.optimizer.state[weight].items()}
        tensors |= random_state(self.device)
        check_finite(tensors, f"step {self.step}: checkpoint {path} is not overwritten")
        self.description["options"]["precision"] = self.history.precision
        write_tensors(path, tensors, {"kind": "fine-tuning", "history": asdict(self.history), "run": self.description})

    @torch.no_grad()
    def _resume(self, path: Path) -> None:
        """Go on from the checkpoint; refuse one of another run."""
        tensors, header = read_tensors(path, "checkpoint")
        if header.get("kind") != "fine-tuning":
            raise ValueError(f"checkpoint {path} must be one that `fine_tune` wrote, got a {header.get('kind')}")
        check_same_run(str(path), header["run"], self.description)
        taken = len(header["history"]["steps"])
        if taken > self.last:
            raise ValueError(f"steps must be at least the {taken} that checkpoint {path} has taken, got {self.last}")
        self.history = History(**header["history"])
        for name, weight in self.trained.items():
            weight.copy_(tensors[f"weight.{name}"])
            state = {
                key: tensors[f"{key}.{name}"] for key in ("step", "exp_avg", "exp_avg_sq") if f"step.{name}" in tensors
            }
            self.optimizer.state[weight] = {key: value.to(weight.device) for key, value in state.items()}
        set_random_state(tensors, self.device)
