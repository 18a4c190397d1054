from __future__ import annotations

import inspect
import math
import os
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import transformer_lib as tl
from factories import make_model, randomise, targets
from transformer_lib.training.evaluation import loss_per_token
from transformer_lib.training.gradients import count_targets
from transformer_lib.training.loss import TrainingLoss
from transformer_lib.training.options import TrainingOptions
from transformer_lib.training.precision import bfloat16_units, choose_precision
from transformer_lib.training.schedules import make_schedule

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
EPOCHS, STEPS_PER_EPOCH = 3, 8
STEPS = EPOCHS * STEPS_PER_EPOCH


def make_batches(seed=0):
    """Copying: 23 sentences in 8 batches."""
    generator = torch.Generator().manual_seed(1)
    src = [torch.randint(3, 23, (1 + i % 5,), generator=generator).tolist() for i in range(23)]
    return tl.Batches(src, [[1, *ids, 2] for ids in src], 3, seed=seed)


def make_learner(dropout=0.1, dtype=torch.float32, **changes):
    return make_model(3, dropout=dropout, n_layers=1, dtype=dtype, **changes)


def learn(model, **options):
    torch.manual_seed(11)  # of the dropout
    options = {"epochs": EPOCHS, "warmup_steps": 5, "progress": False, **options}
    return tl.train(model, make_batches(), **options)


def same_weights(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


class Stopped(Exception):
    pass


def stop_at(last, error=Stopped):
    def on_step(step, _loss):
        if step == last:
            raise error

    return on_step


# Targets and loss.


def test_the_targets_are_shifted():
    tgt = torch.tensor([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]])
    tgt_in, tgt_out = tl.shift_right(tgt)
    assert tgt_in.tolist() == [[1, 5, 6, 7], [1, 8, 2, 0]]
    assert tgt_out.tolist() == [[5, 6, 7, 2], [8, 2, 0, 0]]


def test_targets_too_short_to_shift_are_refused():
    with pytest.raises(ValueError, match=r"tgt must have at least two tokens, bos and eos, got shape \(2, 1\)"):
        tl.shift_right(torch.ones(2, 1, dtype=torch.long))
    with pytest.raises(ValueError, match="tgt must have 2 axes, got 1"):
        tl.shift_right(torch.ones(5, dtype=torch.long))


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_the_loss_equals_the_numpy_reference(smoothing):
    logits = torch.randn(5, 11, 29, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = targets(padded=True)
    found = tl.translation_loss(logits, labels, pad_id=0, label_smoothing=smoothing)
    wanted = tl.numpy_reference.label_smoothed_loss(logits.numpy(), labels.numpy(), 0, smoothing)
    assert float(found) == pytest.approx(wanted, abs=1e-10)
    summed = tl.translation_loss(logits, labels, pad_id=0, label_smoothing=smoothing, reduction="sum")
    assert float(summed) == pytest.approx(wanted * int((labels != 0).sum()), abs=1e-8)


def test_padding_costs_nothing():
    logits, labels = torch.randn(5, 11, 29, requires_grad=True), targets(padded=True)
    tl.translation_loss(logits, labels, pad_id=0, label_smoothing=0.1).backward()
    assert not logits.grad[labels == 0].any() and logits.grad[labels != 0].any(dim=-1).all()


@pytest.mark.parametrize(
    ("logits", "labels", "options", "message"),
    [
        ((5, 29), (5,), {}, "logits must have 3 axes, got 2"),
        ((2, 5, 29), (10,), {}, "tgt_out must have 2 axes, got 1"),
        ((2, 5, 29), (2, 4), {}, r"tgt_out must have one label per row of logits \(2, 5, 29\), got shape \(2, 4\)"),
        ((2, 5, 29), (2, 5), {"label_smoothing": 1.0}, r"label_smoothing must lie in \[0, 1\), got 1.0"),
        ((2, 5, 29), (2, 5), {"reduction": "none"}, "reduction must be one of 'mean', 'sum', got 'none'"),
    ],
)
def test_a_loss_of_what_does_not_fit_is_refused(logits, labels, options, message):
    with pytest.raises(ValueError, match=message):
        tl.translation_loss(torch.zeros(logits), torch.ones(labels, dtype=torch.long), pad_id=0, **options)


# A run.


def adam_by_hand(model, batches, rate, clip_norm, smoothing):
    """Kingma and Ba's Adam with the paper's constants, number by number in NumPy."""
    beta_1, beta_2, eps = 0.9, 0.98, 1e-9
    moments, losses = {name: (0.0, 0.0) for name, _ in model.named_parameters()}, []
    model.train()
    for step, (src, tgt) in enumerate(batches, start=1):
        model.zero_grad()
        loss = tl.translation_loss(model(src, tgt[:, :-1]), tgt[:, 1:], pad_id=0, label_smoothing=smoothing)
        loss.backward()
        losses.append(loss.item())
        norm = math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters()))
        for name, parameter in model.named_parameters():
            gradient = parameter.grad.numpy() * (1.0 if clip_norm is None else min(1.0, clip_norm / norm))
            first, second = moments[name]
            first = beta_1 * first + (1 - beta_1) * gradient
            second = beta_2 * second + (1 - beta_2) * gradient**2
            moments[name] = (first, second)
            change = (first / (1 - beta_1**step)) / (np.sqrt(second / (1 - beta_2**step)) + eps)
            parameter.data -= rate(step) * torch.from_numpy(np.asarray(change))
    return losses


@pytest.mark.parametrize(("schedule", "clip_norm"), [("cosine", 0.3), ("paper", 1e9), ("constant", None)])
def test_a_run_equals_adam_by_hand(schedule, clip_norm):
    ours, by_hand = (make_learner(dropout=0.0, dtype=torch.float64) for _ in range(2))
    options = {"learning_rate": 0.01, "schedule": schedule, "warmup_steps": 5}
    history = learn(ours, epochs=1, clip_norm=clip_norm, label_smoothing=0.2, **options)
    rate = make_schedule(options.pop("schedule"), total_steps=8, d_model=30, **options)
    assert history.loss == pytest.approx(adam_by_hand(by_hand, make_batches(), rate, clip_norm, 0.2), abs=1e-7)
    for one, other in zip(ours.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-7)
    assert history.rate == [rate(step) for step in range(1, 9)]


def test_what_a_history_holds():
    losses = []
    history = learn(make_learner(), on_step=lambda step, loss: losses.append((step, loss)))
    assert history.steps == list(range(1, STEPS + 1)) and not history.interrupted and history.epochs == []
    assert list(zip(history.steps, history.loss, strict=True)) == losses
    assert len(history.rate) == STEPS


def test_epochs_are_evaluated():
    model, modes = make_learner(), []

    def on_epoch(number):
        model.eval()
        return {"number": float(number)}

    history = learn(model, on_epoch=on_epoch, on_step=lambda *_: modes.append(model.training))
    assert history.epochs == [{"number": 1.0}, {"number": 2.0}, {"number": 3.0}]
    assert modes == [True] * STEPS  # the model trains again after an evaluation


def test_a_frozen_parameter_stays(tmp_path):
    models = [make_learner() for _ in range(2)]
    for model in models:
        model.src_embedding.weight.requires_grad_(False)
    before = models[0].src_embedding.weight.clone()
    learn(models[0])
    assert torch.equal(models[0].src_embedding.weight, before)
    options = {"checkpoint": tmp_path / "run.safetensors", "checkpoint_every": 5}
    with pytest.raises(Stopped):
        learn(models[1], on_step=stop_at(7), **options)
    learn(models[1], **options)
    assert same_weights(*models)


def test_progress_is_shown_when_asked_for(capsys):
    learn(make_learner(), epochs=1)
    assert capsys.readouterr().err == ""
    learn(make_learner(), epochs=1, progress=True)
    assert "8/8" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs must be at least 1, got 0"),
        ({"checkpoint_every": 0}, ValueError, "checkpoint_every must be at least 1, got 0"),
        ({"label_smoothing": 1.0}, ValueError, r"label_smoothing must lie in \[0, 1\), got 1.0"),
        ({"clip_norm": 0.0}, ValueError, "clip_norm must be positive, got 0.0"),
        ({"schedule": "linear"}, ValueError, "schedule must be one of 'cosine', .*, got 'linear'"),
        ({"learning_rate": -1.0}, ValueError, "learning_rate must be positive, got -1.0"),
        ({"warmup_steps": 0}, ValueError, "warmup_steps must be at least 1, got 0"),
        ({"accumulate": 0}, ValueError, "accumulate must be at least 1, got 0"),
        ({"precision": "float16"}, ValueError, "precision must be one of 'float32', 'bfloat16', 'auto', got 'float16'"),
        ({"time_limit": 0.0}, ValueError, "time_limit must be positive, got 0.0"),
        ({"speed": 3}, TypeError, "options must be among epochs, time_limit, .*, got speed"),
        ({"learning_rate": None}, TypeError, "learning_rate must be a number, got None"),
        ({"clip_norm": "1"}, TypeError, "clip_norm must be a number, got '1'"),
        ({"progress": "no"}, TypeError, "progress must be True or False, got 'no'"),
        ({"time_limit": float("nan")}, ValueError, "time_limit must be positive, got nan"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        learn(make_learner(), **options)


def test_options_are_keyword_only():
    with pytest.raises(TypeError, match="positional argument"):
        TrainingOptions(3)


def test_a_run_can_be_told_to_stop(tmp_path):
    options = {"on_epoch": lambda number: {"stop": float(number == 2)}, "checkpoint": tmp_path / "run.safetensors"}
    history = learn(make_learner(), **options)
    assert len(history.epochs) == 2 and len(history.steps) == 2 * STEPS_PER_EPOCH
    assert learn(make_learner(), **options) == history  # and it stays stopped


# The same step in other ways.


def test_the_summed_loss_is_the_mean_times_the_tokens():
    model = make_learner(dropout=0.0, dtype=torch.float64)
    src, tgt = next(make_batches().epoch(0))
    mean = tl.translation_loss(model(src, tgt[:, :-1]), tgt[:, 1:], pad_id=0, label_smoothing=0.3)
    tokens = count_targets(tgt, 0)
    assert tokens == sum(len([i for i in row[1:] if i]) for row in tgt.tolist())
    torch.testing.assert_close(TrainingLoss(model, 0.3)(src, tgt), mean * tokens, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match="label_smoothing must lie in"):
        TrainingLoss(model, 1.0)


@pytest.mark.parametrize("accumulate", [2, 7])
def test_parts_of_a_batch_make_the_step_of_the_whole(accumulate):
    whole, cut = (make_learner(dropout=0.0, dtype=torch.float64) for _ in range(2))
    wanted, found = learn(whole), learn(cut, accumulate=accumulate)
    assert found.loss == pytest.approx(wanted.loss, abs=1e-10)
    for one, other in zip(whole.parameters(), cut.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-8)


def test_parts_are_computed_one_after_the_other():
    model, rows = make_learner(dropout=0.0), []
    model.register_forward_pre_hook(lambda _model, inputs: rows.append(len(inputs[0])))
    learn(model, epochs=1, accumulate=2)
    assert sorted(rows) == [1] * 9 + [2] * 7 and sum(rows) == 23


def test_in_bfloat16_the_weights_stay_in_float32_and_learn_alike():
    models = [make_learner(dropout=0.0) for _ in range(2)]
    wanted, found = (
        learn(model, epochs=12, learning_rate=0.01, precision=precision)
        for model, precision in zip(models, ("float32", "bfloat16"), strict=True)
    )
    assert {parameter.dtype for parameter in models[1].parameters()} == {torch.float32}
    assert found.loss[0] != wanted.loss[0] and found.loss[0] == pytest.approx(wanted.loss[0], rel=0.01)
    assert np.mean(found.loss[-8:]) < 0.6 * np.mean(found.loss[:8])


def with_units(monkeypatch, **found: bool) -> None:
    """Let the processor have just these capabilities."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found, raising=False)


def test_units_for_bfloat16_are_looked_up(monkeypatch):
    for found, wanted in (
        ({"avx2": True}, None),
        ({"amx_bf16": False, "avx512_bf16": True}, True),
        ({"amx_bf16": False, "avx512_bf16": False}, False),
        ({"bf16": True}, True),
    ):
        with_units(monkeypatch, **found)
        assert bfloat16_units() is wanted
        assert choose_precision("auto") == ("bfloat16" if wanted else "float32")
        assert [choose_precision(asked) for asked in ("float32", "bfloat16")] == ["float32", "bfloat16"]
    monkeypatch.delattr(torch.cpu, "get_capabilities")  # an older torch
    assert bfloat16_units() is None and choose_precision("auto") == "float32"


@pytest.mark.parametrize(("units", "wanted"), [(True, "bfloat16"), (False, "float32")])
def test_auto_computes_as_what_it_chose_and_says_so(units, wanted, monkeypatch, capsys):
    with_units(monkeypatch, avx512_bf16=units)
    chosen, asked = (
        learn(make_learner(), epochs=1, precision=precision, progress=precision == "auto")
        for precision in ("auto", wanted)
    )
    assert chosen == asked and chosen.precision == wanted
    assert f"{wanted}: 100%" in capsys.readouterr().err


def test_a_run_goes_on_in_the_precision_that_auto_chose_when_it_began(tmp_path, monkeypatch):
    options = {"precision": "auto", "checkpoint": tmp_path / "run.safetensors"}
    with_units(monkeypatch, avx512_bf16=True)
    learn(make_learner(), epochs=1, **options)
    with_units(monkeypatch, avx512_bf16=False)  # now on another machine
    model = make_learner()
    assert learn(model, epochs=2, **options).precision == "bfloat16"
    assert learn(model, epochs=3, **options | {"precision": "bfloat16"}).precision == "bfloat16"
    with pytest.raises(ValueError, match="was begun with precision = 'bfloat16', got 'float32'"):
        learn(model, epochs=3, **options | {"precision": "float32"})


# The average of the weights.


def make_average(model, decay=0.9):
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))


def test_the_average_follows_the_weights_after_the_warm_up(tmp_path):
    model = make_learner()
    average = make_average(model)
    seen = []
    learn(model, average=average, on_step=lambda *_: seen.append(model.output_head.weight.detach().clone()))
    assert average.n_averaged == STEPS - 5
    by_hand = seen[5]
    for weight in seen[6:]:
        by_hand = 0.9 * by_hand + 0.1 * weight
    torch.testing.assert_close(average.module.output_head.weight.detach(), by_hand, rtol=0, atol=1e-6)


def test_the_average_is_resumed(tmp_path):
    whole, stopped, options = make_learner(), make_learner(), {"checkpoint": tmp_path / "run.safetensors"}
    wanted = make_average(whole)
    learn(whole, average=wanted)
    with pytest.raises(Stopped):
        learn(stopped, average=make_average(stopped), on_step=stop_at(13), checkpoint_every=5, **options)
    found = make_average(randomise(stopped))
    learn(stopped, average=found, **options)
    assert same_weights(found, wanted) and found.n_averaged == wanted.n_averaged


# By the clock.


class Clock:
    """Every step takes a second, an evaluation four: the clock only moves when something is done."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def on_step(self, _step, _loss):
        self.now += 1

    def on_epoch(self, number):
        self.now += 4
        return {"number": float(number)}


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("transformer_lib.training.loop.time", clock)
    return clock


def learn_by_clock(clock, **options):
    options = {"epochs": None, "on_step": clock.on_step, "on_epoch": clock.on_epoch, **options}
    return learn(make_learner(), **options)


def test_a_run_ends_with_its_time_and_is_evaluated_then(clock):
    history = learn_by_clock(clock, time_limit=27.0, learning_rate=0.01, warmup_steps=1)
    assert len(history.steps) == 19  # 8 steps, 4 s, 8 steps, 4 s, 3 steps
    assert history.epochs == [{"number": 1.0}, {"number": 2.0}, {"number": 3.0}]
    assert history.seconds == 19 + 3 * 4
    spent = [*range(8), *range(12, 20), *range(24, 27)]
    assert history.rate == pytest.approx([0.005 * (1 + math.cos(math.pi * seconds / 27)) for seconds in spent])


def test_the_time_counts_on_after_a_stop(clock, tmp_path):
    options = {"checkpoint": tmp_path / "run.safetensors", "checkpoint_every": 1, "time_limit": 27.0}
    seconds = []

    def stop(step, loss):
        clock.on_step(step, loss)
        if step == 10:
            raise Stopped

    with pytest.raises(Stopped):
        learn_by_clock(clock, on_step=stop, **options)
    clock.now += 3600  # nobody trains
    again = learn_by_clock(clock, **options)
    assert len(again.steps) == 19  # the lost step took its second with it
    assert again.epochs == [{"number": 1.0}, {"number": 2.0}, {"number": 3.0}]
    done = learn_by_clock(clock, on_step=lambda *_: seconds.append(1), **options)
    assert done == again and seconds == []  # a run whose time is up has nothing left to do, nor to evaluate


def test_an_epoch_cut_by_the_clock_is_finished_when_there_is_more_time(clock, tmp_path):
    options = {"checkpoint": tmp_path / "run.safetensors"}
    learn_by_clock(clock, time_limit=5.0, **options)
    history = learn_by_clock(clock, time_limit=500.0, epochs=2, **options)
    assert history.steps == list(range(1, 17)) and history.epochs == [{"number": 1.0}, {"number": 2.0}]


def test_an_epoch_that_never_began_is_not_evaluated(clock, tmp_path):
    options = {"checkpoint": tmp_path / "run.safetensors", "time_limit": 22.0}
    history = learn_by_clock(clock, **options)
    assert len(history.steps) == 16 and history.epochs == [{"number": 1.0}, {"number": 2.0}]  # 8 + 4 + 8 + 4 s
    assert learn_by_clock(clock, **options) == history


def test_at_least_one_step_is_taken(clock):
    history = learn_by_clock(clock, time_limit=1e-9)
    assert history.steps == [1] and history.epochs == [{"number": 1.0}]


def test_a_batch_without_targets_is_refused():
    with pytest.raises(ValueError, match=r"tgt must have a real token after bos, got none .* \(1, 2\)"):
        tl.train(make_learner(), tl.Batches([[3]], [[1, 0]], 1), progress=False)


def test_batches_padded_with_another_id_are_refused():
    src = [[3, 4], [5]]
    other = tl.Batches(src, [[1, *ids, 2] for ids in src], 2, pad_id=6)
    with pytest.raises(ValueError, match="batches must be padded with the model's pad_id 0, got 6"):
        tl.train(make_learner(), other, progress=False)


def test_time_and_epochs_together_end_with_what_comes_first(clock):
    assert len(learn_by_clock(clock, time_limit=500.0, epochs=2).steps) == 16
    assert len(learn_by_clock(clock, time_limit=6.0, epochs=2).steps) == 6


# Resuming.


@pytest.mark.parametrize(
    ("stops", "every", "dtype"),
    [
        ((3,), 5, torch.float32),  # before the first checkpoint
        ((13,), 5, torch.float32),  # within an epoch
        ((9,), 8, torch.float32),  # just after a checkpoint that was written before an epoch's evaluation
        ((6, 11, 23), 4, torch.float64),  # three times
    ],
)
def test_a_stopped_run_goes_on_where_it_was(tmp_path, stops, every, dtype):
    def on_epoch(number):
        return {"number": number, "chance": float(torch.rand(()))}  # an evaluation may draw random numbers

    whole, stopped = make_learner(dtype=dtype), make_learner(dtype=dtype)
    wanted = learn(whole, on_epoch=on_epoch)
    options = {"checkpoint": tmp_path / "run.safetensors", "checkpoint_every": every, "on_epoch": on_epoch}
    for last in stops:
        with pytest.raises(Stopped):
            learn(stopped, on_step=stop_at(last), **options)
        stopped = make_learner(dtype=dtype)  # a new process begins with the same weights,
        if options["checkpoint"].exists():
            randomise(stopped)  # and needs none where there is a checkpoint
    assert learn(stopped, **options) == wanted
    assert same_weights(whole, stopped)


def test_a_run_stopped_during_an_evaluation_evaluates_again(tmp_path):
    options = {"checkpoint": tmp_path / "run.safetensors", "checkpoint_every": 4}

    def stop(number):
        if number == 2:
            raise Stopped
        return {"number": float(number)}

    model = make_learner()
    with pytest.raises(Stopped):
        learn(model, on_epoch=stop, **options)
    history = learn(make_learner(), on_epoch=lambda number: {"number": float(number)}, **options)
    assert history.epochs == [{"number": 1.0}, {"number": 2.0}, {"number": 3.0}] and history.steps[-1] == STEPS


def test_a_finished_run_has_nothing_left_to_do(tmp_path):
    options = {"checkpoint": tmp_path / "run.safetensors", "checkpoint_every": 100}
    model, again, steps = make_learner(), make_learner(dropout=0.1), []
    history = learn(model, **options)
    assert learn(randomise(again), on_step=lambda *_: steps.append(1), **options) == history
    assert steps == [] and same_weights(model, again)
    assert same_weights(tl.load_checkpoint(options["checkpoint"]).model, model)


def test_a_finished_run_can_be_made_longer(tmp_path):
    options = {"checkpoint": tmp_path / "run.safetensors", "schedule": "constant"}
    longer, whole = make_learner(), make_learner()
    learn(longer, epochs=1, **options)
    learn(longer, epochs=2, **options)
    learn(whole, epochs=2, schedule="constant")
    assert same_weights(longer, whole)


def test_what_is_no_checkpoint_of_this_run_is_refused_and_stays(tmp_path):
    path, model = tmp_path / "run.safetensors", make_learner()
    learn(model, epochs=1, checkpoint=path)
    whole = path.read_bytes()
    with pytest.raises(ValueError, match=r"checkpoint .* must be of this model, got config .*dropout=0.1"):
        learn(make_learner(dropout=0.2), checkpoint=path)
    with pytest.raises(ValueError, match="must be of a run with an average, got one without"):
        learn(model, average=make_average(model), checkpoint=path)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:-100])
    with pytest.raises(ValueError, match="must be a complete safetensors file"):
        learn(model, checkpoint=path)
    assert path.read_bytes() == whole[:-100]
    tl.save_checkpoint(path, model)
    with pytest.raises(ValueError, match=r"must be one that `train` wrote, got one without an optimizer"):
        learn(model, checkpoint=path)


# Being killed: the child below is a separate process.


def be_killed(folder: str, threads: str) -> None:
    """Train and wait to be killed with half a checkpoint on the disk."""
    torch.set_num_threads(int(threads))
    folder = Path(folder)
    fsync, writes = os.fsync, []

    def hang_in_the_third_write(handle):
        writes.append(handle)
        if len(writes) == 3:
            (folder / "ready").touch()
            time.sleep(600)
        fsync(handle)

    os.fsync = hang_in_the_third_write
    learn(make_learner(), checkpoint=folder / "run.safetensors", checkpoint_every=5)


def test_a_killed_run_ends_with_the_weights_of_one_never_killed(tmp_path):
    script = "import sys, test_training; test_training.be_killed(*sys.argv[1:])"
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path), str(torch.get_num_threads())],
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    try:
        while not (tmp_path / "ready").exists():
            assert child.poll() is None, child.stderr.read()
            time.sleep(0.01)
    finally:
        child.kill()  # SIGKILL, or TerminateProcess on Windows: nothing in the child can answer
        child.communicate()
    assert child.returncode != 0
    checkpoint = tmp_path / "run.safetensors"
    assert tl.load_checkpoint(checkpoint).extra["step"] == 10
    whole, resumed, steps = make_learner(), randomise(make_learner()), []
    wanted = learn(whole)
    found = learn(resumed, checkpoint=checkpoint, checkpoint_every=5, on_step=lambda step, _: steps.append(step))
    assert steps == list(range(11, STEPS + 1))
    assert same_weights(resumed, whole) and found == wanted
    learn(other := make_learner(), on_step=lambda *_: torch.rand(()))
    assert not same_weights(whole, other)  # the random numbers of the dropout do matter


def test_help_shows_every_option_with_its_default():
    """As an editor completes it, and as help() prints it."""
    parameters = inspect.signature(tl.train).parameters
    for entry in fields(TrainingOptions):
        assert parameters[entry.name].default == entry.default
        assert f"\n    {entry.name}: " in tl.train.__doc__  # among the arguments, with their indentation
    assert parameters["batches"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def test_ids_outside_the_vocabularies_are_named_before_the_first_step():
    src, tgt = [[3, 4]], [[1, 29, 2]]
    with pytest.raises(ValueError, match=r"tgt must hold ids in \[0, 29\), got values from 1 to 29"):
        tl.train(make_learner(), tl.Batches(src, tgt, 1), progress=False)
    with pytest.raises(ValueError, match=r"src must hold ids in \[0, 23\), got values from 4 to 23"):
        tl.train(make_learner(), tl.Batches([[23, 4]], [[1, 2]], 1), progress=False, path="fast")


def test_a_loss_is_of_some_token_and_of_a_known_precision():
    model, src = make_learner(), torch.tensor([[3, 4]])
    with pytest.raises(ValueError, match="batches must have a real target token, got none"):
        loss_per_token(model, [(src, torch.tensor([[1, 0]]))])
    with pytest.raises(ValueError, match="precision must be one of 'float32', 'bfloat16', 'auto', got 'bf16'"):
        loss_per_token(model, [(src, torch.tensor([[1, 3, 2]]))], precision="bf16")
