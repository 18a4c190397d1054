"""A run is a promise: what goes on is the same run, a stop loses nothing, and no good checkpoint is overwritten."""

from __future__ import annotations

import errno
import math
import os
import shutil
import signal
import threading
from dataclasses import MISSING, fields

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import parametrizations, prune
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import transformer_lib as tl
from factories import make_model, randomise
from test_training import (
    EPOCHS,
    STEPS,
    STEPS_PER_EPOCH,
    Stopped,
    learn,
    make_batches,
    make_learner,
    same_weights,
    stop_at,
)
from transformer_lib.baselines import SelfOnlyTransformer
from transformer_lib.training.options import TrainingOptions, may_change
from transformer_lib.training.same_run import DESCRIPTION
from transformer_lib.training.stopping import SIGNALS

pytestmark = pytest.mark.fast

# Another value than `learn` gives, of every option of `train`.
OTHERWISE = {
    "epochs": EPOCHS + 1,
    "time_limit": 1e6,
    "learning_rate": 0.002,
    "schedule": "paper",
    "warmup_steps": 6,
    "label_smoothing": 0.2,
    "clip_norm": None,
    "accumulate": 2,
    "precision": "bfloat16",
    "path": "fast",
    "checkpoint": "elsewhere.safetensors",
    "checkpoint_every": 7,
    "progress": True,
}
OPTIONS = [entry.name for entry in fields(TrainingOptions)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.safetensors"


def begin(path, **options):
    """Begin a run that stops by itself after step 13, whose checkpoint is of step 10."""
    with pytest.raises(Stopped):
        learn(make_learner(dropout=0.0), on_step=stop_at(13), checkpoint=path, checkpoint_every=5, **options)


def rewrite(path, change):
    """Let `change` edit the JSON data of a checkpoint."""
    held = tl.load_checkpoint(path)
    change(held.extra)
    tl.save_checkpoint(path, held.model, state=held.state, extra=held.extra)


# Going on.


def test_every_option_is_tried_with_another_value():
    given = {"epochs": EPOCHS, "warmup_steps": 5, "progress": False}
    assert OTHERWISE.keys() == set(OPTIONS), "a new option of train() needs a value here that is not its default"
    for entry in fields(TrainingOptions):
        assert OTHERWISE[entry.name] != given.get(entry.name, entry.default) and entry.default is not MISSING


@pytest.mark.parametrize("name", sorted(set(OPTIONS) - set(may_change())))
def test_going_on_with_another_option_is_refused(path, name):
    begin(path)
    before, model = path.read_bytes(), randomise(make_learner(dropout=0.0))
    weights = [parameter.clone() for parameter in model.parameters()]
    with pytest.raises(
        ValueError, match=f"checkpoint .* was begun with {name} = .*, got .*; give the same, or another"
    ):
        learn(model, **{"checkpoint": path, name: OTHERWISE[name]})
    assert path.read_bytes() == before
    assert all(torch.equal(a, b) for a, b in zip(weights, model.parameters(), strict=True))


@pytest.mark.parametrize("name", may_change())
def test_what_may_change_is_listed_and_goes_on(path, tmp_path, name):
    begin(path)
    value = shutil.copy(path, tmp_path / OTHERWISE[name]) if name == "checkpoint" else OTHERWISE[name]
    steps, model, whole = [], make_learner(dropout=0.0), make_learner(dropout=0.0)
    history = learn(model, **{"checkpoint": path, "on_step": lambda step, _: steps.append(step), name: value})
    assert steps[0] == 11 and history.steps[-1] == STEPS + (STEPS_PER_EPOCH if name == "epochs" else 0)
    assert name in tl.train.__doc__[tl.train.__doc__.index("What may change") :]
    if name not in ("epochs", "time_limit"):  # these make another schedule
        learn(whole)
        for one, other in zip(whole.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=2e-4 if name in ("path", "accumulate") else 0)


def test_no_option_goes_on_in_fewer_epochs_than_it_began(path):
    begin(path)
    with pytest.raises(ValueError, match=r"epochs must be at least the 2 that checkpoint .* has begun, got 1"):
        learn(make_learner(dropout=0.0), epochs=1, checkpoint=path)
    assert len(learn(make_learner(dropout=0.0), epochs=2, checkpoint=path).steps) == 2 * STEPS_PER_EPOCH


ROWS = [[4, 5]] * 4, [[1, 6, 2]] * 4


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (tl.Batches(ROWS[0], [[1, 7, 2]] * 4, 2), "batches.sha256 = "),  # another corpus
        (tl.Batches([[4, 5]] * 6, [[1, 6, 2]] * 6, 3), "batches.batch_size = 2, got 3"),
        (tl.Batches(*ROWS, max_tokens=12), "batches.batch_size = 2, got None"),
        (tl.Batches(*ROWS, 2, seed=1), "batches.seed = 0, got 1"),
        (tl.Batches([[4, 5]] * 3, [[1, 6, 2]] * 3, 2), "batches.sentences = 4, got 3"),
    ],
)
def test_a_checkpoint_of_other_data_is_no_checkpoint_of_this_run(path, batches, message):
    options = {"epochs": 2, "learning_rate": 0.01, "warmup_steps": 5, "progress": False, "checkpoint": path}
    tl.train(make_learner(), tl.Batches(*ROWS, 2), **options)
    with pytest.raises(ValueError, match=f"checkpoint .* was begun with {message}"):
        tl.train(make_learner(), batches, **options)


class Loader:
    """Batches of somebody else's: no more than `train` asks for."""

    def __init__(self, first):
        self.pairs = [(torch.tensor([[first, 4]]), torch.tensor([[1, n, 2]])) for n in (5, 7, 11)]

    def __len__(self):
        return 3

    def epoch(self, number):
        torch.rand(7)  # what it draws does not change the run
        return iter(self.pairs)


def test_any_loader_is_compared_by_what_it_gives(path):
    whole, model = make_learner(), make_learner()
    torch.manual_seed(5)
    wanted = tl.train(whole, Loader(3), progress=False)
    torch.manual_seed(5)
    assert tl.train(model, Loader(3), progress=False, checkpoint=path) == wanted and same_weights(whole, model)
    with pytest.raises(ValueError, match=r"was begun with batches.sha256 = '[0-9a-f]{64}', got '[0-9a-f]{64}'"):
        tl.train(make_learner(), Loader(5), epochs=2, progress=False, checkpoint=path)


def frozen(model):
    model.src_embedding.weight.requires_grad_(False)
    return model


def dropping(model, p):
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = p
    return model


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: SelfOnlyTransformer(make_learner().config), "model.kind = 'Transformer', got 'SelfOnlyTransformer'"),
        (lambda: make_learner(dropout=0.0).double(), "model.src_embedding.weight.dtype = .*32', got 'torch.float64'"),
        (lambda: dropping(make_learner(dropout=0.0), 0.7), "model.dropout.p = 0.0, got 0.7"),
        (lambda: frozen(make_learner(dropout=0.0)), r"model.frozen = \[\], got \['src_embedding.weight'\]"),
    ],
)
def test_going_on_with_another_model_is_refused(path, other, message):
    learn(make_learner(dropout=other().config.dropout), epochs=1, checkpoint=path)
    with pytest.raises(ValueError, match=f"was begun with {message}"):
        learn(other(), checkpoint=path)


def test_a_model_of_another_class_is_compared_by_what_it_was_made_with(path):
    def model(mask):
        torch.manual_seed(3)
        return tl.DecoderOnlyTranslator(make_learner(position="rotary").config, mask=mask)

    learn(model("prefix"), epochs=1, checkpoint=path)
    with pytest.raises(ValueError, match="was begun with model.mask = 'prefix', got 'causal'"):
        learn(model("causal"), checkpoint=path)
    learn(model("prefix"), checkpoint=path)


@pytest.mark.parametrize("other", [get_ema_multi_avg_fn(0.8), None])
def test_going_on_with_another_average_is_refused(path, other):
    model = make_learner()
    learn(model, epochs=1, average=AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)), checkpoint=path)
    with pytest.raises(ValueError, match="was begun with an average of another rule"):
        learn(model, average=AveragedModel(model, multi_avg_fn=other), checkpoint=path)
    learn(model, average=AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)), checkpoint=path)


def test_an_option_of_a_later_version_counts_as_given_with_its_default(path):
    begin(path)
    rewrite(path, lambda extra: extra[DESCRIPTION]["options"].pop("clip_norm"))
    with pytest.raises(ValueError, match=r"was begun with clip_norm = 1.0, got 2.0"):
        learn(make_learner(dropout=0.0), checkpoint=path, clip_norm=2.0)
    assert len(learn(make_learner(dropout=0.0), checkpoint=path).steps) == STEPS


def test_a_checkpoint_of_a_later_version_is_named(path):
    begin(path)
    rewrite(path, lambda extra: extra[DESCRIPTION]["options"].update(warm_restarts=3))
    with pytest.raises(ValueError, match="was begun with warm_restarts = 3, got 'nothing"):
        learn(make_learner(dropout=0.0), checkpoint=path)
    rewrite(path, lambda extra: extra["history"].update(energy=3))
    with pytest.raises(ValueError, match="must be of this version, got a history with energy"):
        learn(make_learner(dropout=0.0), checkpoint=path)


def test_a_checkpoint_of_version_1_0_goes_on_with_a_warning(path):
    begin(path)
    rewrite(path, lambda extra: extra.pop(DESCRIPTION))
    with pytest.warns(UserWarning, match="does not hold the options and data of its run to compare"):
        learn(model := make_learner(dropout=0.0), checkpoint=path)
    learn(whole := make_learner(dropout=0.0))
    assert same_weights(model, whole)
    learn(model, checkpoint=path)  # from now on it does


# Stopping.


def signalled(model, number, at):
    """Let the process get a signal in the middle of these forward passes, counted from 1."""
    calls = []

    def hook(*_):
        calls.append(1)
        if len(calls) in at:
            signal.raise_signal(number)

    model.output_head.register_forward_hook(hook)
    return model


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(("last", "every"), [(3, 100), (13, 5), (STEPS_PER_EPOCH, 5), (STEPS, 5)])
def test_a_signal_ends_the_run_after_the_step_and_nothing_is_lost(path, number, last, every):
    def on_epoch(epoch):
        return {"epoch": epoch, "chance": float(torch.rand(()))}

    options = {"checkpoint": path, "checkpoint_every": every, "on_epoch": on_epoch}
    before = [signal.getsignal(each) for each in SIGNALS]
    history = learn(signalled(make_learner(), number, [last]), **options)
    assert history.interrupted and history.steps == list(range(1, last + 1))
    assert tl.load_checkpoint(path).extra["step"] == last
    assert [signal.getsignal(each) for each in SIGNALS] == before
    whole, again = make_learner(), randomise(make_learner())
    assert learn(again, **options) == learn(whole, on_epoch=on_epoch) and same_weights(again, whole)


@pytest.mark.parametrize("number", SIGNALS)
def test_an_evaluation_ends_at_once_and_is_done_again(path, number):
    def on_epoch(epoch, signals=()):
        chance = float(torch.rand(()))
        if epoch in signals:
            signal.raise_signal(number)
            raise AssertionError("it went on")
        return {"epoch": epoch, "chance": chance}

    history = learn(make_learner(), on_epoch=lambda epoch: on_epoch(epoch, [2]), checkpoint=path)
    assert history.interrupted and len(history.steps) == 2 * STEPS_PER_EPOCH and len(history.epochs) == 1
    whole, again = make_learner(), randomise(make_learner())
    assert learn(again, on_epoch=on_epoch, checkpoint=path) == learn(whole, on_epoch=on_epoch)
    assert same_weights(again, whole)


@pytest.mark.parametrize("raised", [AssertionError("it went on"), KeyboardInterrupt()], ids=["signal", "its own"])
def test_what_watches_the_steps_ends_at_once(path, raised):
    def on_step(step, _loss):
        if step == 7:
            if not isinstance(raised, KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            raise raised

    history = learn(make_learner(), on_step=on_step, checkpoint=path)
    assert history.interrupted and tl.load_checkpoint(path).extra["step"] == len(history.steps) == 7


def test_a_second_interrupt_does_not_wait_for_the_step(path):
    model = make_learner()

    def hook(*_):
        signal.raise_signal(signal.SIGINT)

    def on_step(step, _loss):
        if step == 7:
            model.encoder.register_forward_hook(hook)
            model.output_head.register_forward_hook(hook)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        learn(model, on_step=on_step, checkpoint=path, checkpoint_every=5)
    assert tl.load_checkpoint(path).extra["step"] == 5 and signal.getsignal(signal.SIGINT) is before


def test_a_signal_during_another_run_within_an_evaluation_ends_both():
    inner = []

    def on_epoch(epoch):
        inner.append(learn(signalled(make_learner(), signal.SIGTERM, [3]), epochs=1))

    history = learn(make_learner(), on_epoch=on_epoch)
    assert inner[0].interrupted and len(inner) == 1 and len(inner[0].steps) == 3
    assert history.interrupted and len(history.steps) == STEPS_PER_EPOCH


def test_a_signal_while_the_last_checkpoint_is_written_is_told(path, monkeypatch):
    fsync = os.fsync

    def signalled_fsync(handle):
        signal.raise_signal(signal.SIGTERM)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", signalled_fsync)
    history = learn(make_learner(), epochs=1, checkpoint=path)
    assert history.interrupted and tl.load_checkpoint(path).extra["step"] == STEPS_PER_EPOCH


def test_an_evaluation_that_fails_loses_no_step(path):
    with pytest.raises(ZeroDivisionError):
        learn(make_learner(), on_epoch=lambda epoch: {"share": 1 / (2 - epoch)}, checkpoint=path)
    assert tl.load_checkpoint(path).extra["step"] == 2 * STEPS_PER_EPOCH
    whole, again = make_learner(), randomise(make_learner())
    assert learn(again, checkpoint=path).loss == learn(whole).loss and same_weights(again, whole)


def test_an_evaluation_may_return_numbers_of_torch_and_numpy_and_nothing_that_no_file_holds(path):
    found = {"torch": torch.tensor(0.5), "numpy": np.float32(0.25), "stop": np.bool_(False)}
    history = learn(make_learner(), epochs=1, on_epoch=lambda _: found, checkpoint=path)
    assert history.epochs == [{"torch": 0.5, "numpy": 0.25, "stop": False}]
    assert learn(make_learner(), epochs=1, on_epoch=lambda _: found, checkpoint=path) == history
    with pytest.raises(TypeError, match="what on_epoch returns must be JSON data, got {'set'}"):
        learn(make_learner(), on_epoch=lambda _: {"set"})


def test_epochs_that_nobody_evaluated_keep_their_places(path):
    learn(make_learner(), epochs=2, checkpoint=path)
    options = {"on_epoch": lambda epoch: {"epoch": epoch}, "checkpoint": path}
    assert learn(make_learner(), **options).epochs == [None, {"epoch": 2}, {"epoch": 3}]
    assert learn(make_learner(), **options).epochs == [None, {"epoch": 2}, {"epoch": 3}]


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a shell's background
    try:
        history = learn(signalled(make_learner(), signal.SIGINT, [3]))
    finally:
        signal.signal(signal.SIGINT, before)
    assert not history.interrupted and len(history.steps) == STEPS


def test_a_run_in_another_thread_leaves_signals_alone():
    found = []
    thread = threading.Thread(target=lambda: found.append(learn(make_learner(), epochs=1)))
    thread.start()
    thread.join()
    assert len(found[0].steps) == STEPS_PER_EPOCH


def failing_write(monkeypatch, number, error):
    """Let the `number`-th checkpoint fail when its bytes are to reach the disk."""
    fsync, writes = os.fsync, []

    def fail(handle):
        writes.append(handle)
        if len(writes) == number:
            raise error
        fsync(handle)

    monkeypatch.setattr(os, "fsync", fail)


def test_a_full_disk_ends_the_run_and_the_last_checkpoint_stays(path, monkeypatch):
    failing_write(monkeypatch, 3, OSError(errno.ENOSPC, "No space left on device"))
    message = r"No space left on device; step 15 is not saved, and .*run.safetensors is as it was"
    with pytest.raises(OSError, match=message) as caught:
        learn(make_learner(), checkpoint=path, checkpoint_every=5)
    assert caught.value.errno == errno.ENOSPC
    assert os.listdir(path.parent) == [path.name] and tl.load_checkpoint(path).extra["step"] == 10
    learn(again := make_learner(), checkpoint=path)
    learn(whole := make_learner())
    assert same_weights(again, whole)


def test_a_folder_that_vanished_is_made_again(path):
    folder = path.parent / "runs"

    def on_step(step, _loss):
        if step == 13:
            shutil.rmtree(folder)

    learn(model := make_learner(), on_step=on_step, checkpoint=folder / "run.safetensors", checkpoint_every=5)
    assert same_weights(tl.load_checkpoint(folder / "run.safetensors").model, model)


# Numbers that are not finite.


def spoilt(model, step, value):
    """Let a gradient have this value from a step on."""
    calls = []

    def hook(gradient):
        calls.append(1)
        return torch.full_like(gradient, value) if len(calls) >= step else gradient

    model.output_head.weight.register_hook(hook)
    return model


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_the_run_before_it_is_saved(path, value):
    model = make_learner()

    def on_step(step, _loss):
        if step == 9:
            model.output_head.weight.data[5, 7] = value

    message = r"step 10, learning rate 0\.000\d+: the loss is nan, output_head.weight is not finite already; a lower"
    with pytest.raises(FloatingPointError, match=message):
        learn(model, on_step=on_step, checkpoint=path, checkpoint_every=5)
    assert tl.load_checkpoint(path).extra["step"] == 5


def test_a_rate_that_is_too_high_is_named(path):
    with pytest.raises(
        FloatingPointError, match=r"step \d+, learning rate 1e\+30: the (loss|norm of the gradient) is "
    ):
        learn(make_learner(), learning_rate=1e30, warmup_steps=1, schedule="constant", checkpoint=path)
    assert not path.exists()


@pytest.mark.parametrize("clip_norm", [1.0, None])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_no_number_is_not_taken(value, clip_norm):
    model, weights = spoilt(make_learner(), 7, value), []
    message = "step 7, .*: the norm of the gradient is (nan|inf), the weights after step 6 are intact"
    with pytest.raises(FloatingPointError, match=message):
        learn(model, clip_norm=clip_norm, on_step=lambda *_: weights.append(model.output_head.weight.detach().clone()))
    assert torch.equal(model.output_head.weight, weights[5])


def test_no_good_checkpoint_is_overwritten_by_weights_that_are_no_numbers(path):
    model = make_learner()

    def on_step(step, _loss):
        if step == 10:
            model.output_head.weight.data[5, 7] = math.nan

    message = r"step 10: checkpoint .* is not overwritten: output_head.weight holds numbers that are not finite"
    with pytest.raises(FloatingPointError, match=message):
        learn(model, on_step=on_step, checkpoint=path, checkpoint_every=5)
    assert tl.load_checkpoint(path).extra["step"] == 5


# What is written can be read.


@pytest.mark.slow
def test_a_compiled_model_is_written_as_what_was_compiled(path):
    model = make_learner()
    compiled = torch.compile(model, backend="eager")
    tl.save_checkpoint(path, compiled)
    assert same_weights(tl.load_checkpoint(path).model, model)
    whole = make_learner()
    learn(whole)
    other = path.with_name("other.safetensors")
    with pytest.raises(Stopped):
        learn(compiled, on_step=stop_at(13), checkpoint=other, checkpoint_every=5)
    learn(plain := make_learner(), checkpoint=shutil.copy(other, path))
    learn(torch.compile(again := make_learner(), backend="eager"), checkpoint=other)
    for found in (plain, again):
        for one, wanted in zip(found.parameters(), whole.parameters(), strict=True):
            torch.testing.assert_close(one, wanted, rtol=0, atol=1e-5)


def test_a_model_with_a_compiled_part_is_written_without_it(path):
    model = make_learner()
    wanted = [weight.detach().clone() for weight in model.parameters()]
    model.encoder = torch.compile(model.encoder, backend="eager")
    tl.save_checkpoint(path, model)
    assert all(map(torch.equal, wanted, tl.load_checkpoint(path).model.parameters()))


def untied(model):
    model.output_head.weight = nn.Parameter(model.output_head.weight.detach().clone())
    return model


def tied(model):
    model.output_head.weight = model.tgt_embedding.weight
    return model


EXPAND = "encoder.layers.0.feed_forward.expand"
UNREADABLE = {
    "weight norm": (lambda model: parametrizations.weight_norm(model.get_submodule(EXPAND)), f"{EXPAND} computes"),
    "spectral norm": (lambda model: nn.utils.spectral_norm(model.get_submodule(EXPAND)), f"{EXPAND} computes"),
    "pruned": (lambda model: prune.random_unstructured(model.get_submodule(EXPAND), "weight", 0.3), f"{EXPAND} comp"),
    "wider": (lambda model: setattr(model, "output_head", nn.Linear(30, 31)), "output_head is a Linear"),
    "no numbers": (lambda model: model.to("meta"), "is not a whole tensor of numbers"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_model_that_could_not_be_read_is_refused_before_it_is_trained(path, kind):
    model, steps = make_learner(), []
    change, message = UNREADABLE[kind]
    change(model)
    with pytest.raises(ValueError, match=f"model must be one that a checkpoint gives back, but .*{message}"):
        tl.save_checkpoint(path, model)
    with pytest.raises(ValueError, match=f"model must be one that a checkpoint gives back, but .*{message}"):
        learn(model, checkpoint=path, on_step=lambda *_: steps.append(1))
    assert not steps and not path.exists()


def test_ties_that_the_config_does_not_know_are_refused(path):
    sizes = {"tgt_vocab_size": 23}
    for model in (untied(make_model(tie_embeddings=True, **sizes)), tied(make_model(**sizes))):
        with pytest.raises(ValueError, match="model must be one that a checkpoint gives back, but "):
            tl.save_checkpoint(path, model)
    tl.save_checkpoint(path, model := make_model(tie_embeddings=True, **sizes))
    found = tl.load_checkpoint(path).model
    assert same_weights(found, model) and found.output_head.weight is found.src_embedding.weight


def test_parameters_that_share_their_numbers_are_refused_and_state_that_does_is_copied(path):
    model = make_learner(tgt_vocab_size=23)
    model.output_head.weight = nn.Parameter(model.tgt_embedding.weight.data)
    with pytest.raises(ValueError, match="tgt_embedding.weight and output_head.weight are two parameters that share"):
        learn(model, checkpoint=path)
    plain = make_learner()
    tl.save_checkpoint(path, plain, state={"copy": plain.src_embedding.weight})
    assert torch.equal(tl.load_checkpoint(path).state["copy"], plain.src_embedding.weight)


def test_what_was_read_stays_when_the_file_changes(path):
    tl.save_checkpoint(path, make_learner(), state={"x": torch.arange(7.0)})
    held = tl.load_checkpoint(path)
    with path.open("r+b") as file:
        file.write(b"0" * path.stat().st_size)
    assert held.state["x"].tolist() == list(range(7))


def test_a_quantised_model_is_refused(path):
    with pytest.raises(ValueError, match="model must be one that a checkpoint gives back, but .*Int8"):
        tl.save_checkpoint(path, tl.int8.quantized(make_learner()))


def test_a_sharded_model_is_refused(path):
    model = make_learner()
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
        with pytest.raises(ValueError, match="is not a whole tensor of numbers but sharded"):
            tl.save_checkpoint(path, model)
    finally:
        torch.distributed.destroy_process_group()


def test_each_weight_is_read_in_its_own_type(path):
    model = make_learner()
    model.encoder.to(torch.bfloat16)
    tl.save_checkpoint(path, model)
    found = tl.load_checkpoint(path).model
    assert [p.dtype for p in found.parameters()] == [p.dtype for p in model.parameters()]
    assert same_weights(found, model)


def test_a_checkpoint_says_which_class_it_is_of(path):
    tl.save_checkpoint(path, SelfOnlyTransformer(make_learner().config))
    with pytest.raises(ValueError, match="must hold a Transformer, got a SelfOnlyTransformer"):
        tl.load_checkpoint(path)


# Before the first step.


class Odd(Loader):
    """Gives other batches than its length says, or something else."""

    def __init__(self, pairs):
        super().__init__(3)
        self.pairs = pairs(self.pairs)


@pytest.mark.parametrize(
    ("pairs", "error", "message"),
    [
        (lambda given: given[:2], ValueError, "batches must give 3 pairs .* in epoch 0, as its length says"),
        (lambda given: given * 2, ValueError, "batches must give 3 pairs .* in epoch 0, as its length says"),
        (lambda given: [(*pair, 0) for pair in given], ValueError, "or what is no pair, at batch 1"),
        (lambda given: [([[3]], [[1, 2]])] * 3, TypeError, "src must be a torch.Tensor, got list"),
        (lambda given: [(torch.ones(0, 2).long(), given[0][1])] * 3, ValueError, "src must not be empty"),
    ],
)
@pytest.mark.parametrize("kept", [True, False])
def test_a_loader_that_does_not_keep_its_word_is_named(path, pairs, error, message, kept):
    with pytest.raises(error, match=message):
        tl.train(make_learner(), Odd(pairs), progress=False, epochs=2, checkpoint=path if kept else None)


def test_what_cannot_be_used_is_refused_before_the_first_step(path):
    model, steps = make_learner(), []
    watch = {"on_step": lambda *_: steps.append(1)}
    with pytest.raises(TypeError, match="average must be an AveragedModel .*, got float"):
        learn(model, average=0.999, **watch)
    with pytest.raises(TypeError, match="checkpoint must be a path, got 3"):
        learn(model, checkpoint=3, **watch)
    with pytest.raises(OSError, match="a file cannot be written where a folder is"):
        learn(model, checkpoint=path.parent, **watch)
    path.write_text("a file", encoding="utf-8")
    with pytest.raises(OSError, match="run.safetensors"):
        learn(model, checkpoint=path / "run", **watch)
    assert not steps


def test_a_relative_checkpoint_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def on_step(step, _loss):
        if step == 7:
            (tmp_path / "elsewhere").mkdir()
            os.chdir(tmp_path / "elsewhere")

    learn(make_learner(), on_step=on_step, checkpoint="run.safetensors", checkpoint_every=5)
    assert tl.load_checkpoint(tmp_path / "run.safetensors").extra["step"] == STEPS
    assert os.listdir(tmp_path / "elsewhere") == []


def test_a_model_with_nothing_to_train_is_refused():
    with pytest.raises(ValueError, match="model must have a parameter to train, got one .* all frozen"):
        learn(make_learner().requires_grad_(False))


def test_what_is_no_model_and_what_gives_no_epochs_is_refused():
    with pytest.raises(TypeError, match="model must be a module with a TransformerConfig as its config, got Linear"):
        learn(nn.Linear(2, 3))
    with pytest.raises(TypeError, match="as its config, got Translator; take its .model"):
        learn(tl.load_trained())
    with pytest.raises(TypeError, match=r"batches must be tl.Batches, or have a method epoch\(number\) .*, got list"):
        tl.train(make_learner(), list(make_batches()), progress=False)
    with pytest.raises(ValueError, match="learning_rate must be finite, got inf"):
        learn(make_learner(), learning_rate=math.inf)
