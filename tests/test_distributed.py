"""Two real processes train as one does; stopped in the middle, they go on as if they had not been.

The processes are started twice for all tests: the first time one of them dies at the end, the second they go on, also
with runs that a signal to one process has ended.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
import torch

import transformer_lib as tl
from factories import make_model
from transformer_lib.training import distributed, resuming
from transformer_lib.training import loop as training
from transformer_lib.training.checkpoint import save_checkpoint

TESTS = Path(__file__).parent
STEPS_PER_EPOCH, EPOCHS, DIES_AT = 8, 3, 13
PLAIN, CUT, DROPPED, KILLED, STOPPED, TIMED = "plain", "accumulate 2", "dropout", "killed", "stopped", "timed"
SIGNALS = {"SIGINT": (signal.SIGINT, 1, 4), "SIGTERM": (signal.SIGTERM, 0, 19)}  # which process gets it, in which step
SCENARIOS = (PLAIN, CUT, DROPPED, STOPPED, TIMED)
LIMIT = 13  # of TIMED: in process 0 a step takes a second


def make_batches():
    """23 sentences of 1 to 7 words in 8 batches; the last has 2 rows, fewer than two processes with two parts need."""
    generator = torch.Generator().manual_seed(1)
    src = [torch.randint(3, 23, (1 + i * i % 7,), generator=generator).tolist() for i in range(23)]
    return tl.Batches(src, [[1, *ids[::-1], *ids[:3], 2] for ids in src], 3)


class Clock:
    """In process 0 it counts the steps; in others it is always too late."""

    def __init__(self, calls):
        self.calls, self.late = calls, 0.0

    def monotonic(self):
        self.late += 1e6 * distributed.rank()
        return self.late + len([call for call in self.calls if isinstance(call, int)])


def send(model, number, at):
    """Let this process get a signal in the middle of a forward pass, the `at`-th."""
    passes = []

    def hook(*_):
        passes.append(1)
        if len(passes) == at:
            signal.raise_signal(number)

    model.output_head.register_forward_hook(hook)


def learn(name, checkpoint=None, *, dies=False, signalled=False):
    """Run one of the scenarios; return its weights, history, and what it did beside training."""
    dropped = name in (DROPPED, KILLED, *SIGNALS)
    model = make_model(3, n_layers=1, dtype=torch.float64, dropout=0.3 if dropped else 0.0)
    torch.manual_seed(11)
    calls, writers = [], []
    if signalled and SIGNALS[name][1] == distributed.rank():
        send(model, SIGNALS[name][0], SIGNALS[name][2])

    def on_step(step, _loss):
        calls.append(step)
        if dies and step == DIES_AT:
            os._exit(9)

    def save(*args, **kwargs):
        writers.append(distributed.rank())
        return save_checkpoint(*args, **kwargs)

    def on_epoch(epoch):
        calls.append(f"epoch {epoch}")
        return {"score": epoch / 2, "stop": float(name == STOPPED and epoch == 2)}

    options = {"accumulate": 2} if name == CUT else {"time_limit": LIMIT} if name == TIMED else {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(resuming, "save_checkpoint", save)
        if name == TIMED:
            patched.setattr(training, "time", Clock(calls))
        history = tl.train(
            model,
            make_batches(),
            epochs=EPOCHS,
            warmup_steps=5,
            progress=False,
            on_step=on_step,
            on_epoch=on_epoch,
            checkpoint=checkpoint,
            checkpoint_every=5,
            **options,
        )
    weights = torch.nn.utils.parameters_to_vector(model.parameters()).detach()
    found = {"weights": weights, "loss": history.loss, "epochs": history.epochs, "interrupted": history.interrupted}
    return {**found, "calls": calls, "writers": writers}


def be_one_of_two(folder: str, part: str) -> None:
    """Run in each process."""
    folder = Path(folder)
    with distributed.process_group():
        found = {}
        if part == "first":
            for name in SCENARIOS:
                found[name] = learn(name, folder / f"{name}.safetensors")
            rank = distributed.rank()
            first, everyone = distributed.from_first(f"of {rank}"), distributed.gather(rank)
            for name in SIGNALS:
                found[f"{name} came"] = learn(name, folder / f"{name}.safetensors", signalled=True)
            facts = {"sum": distributed.add_up(rank + 1), "first": first, "all": everyone}
            torch.save({**found, "facts": facts}, folder / f"first_{rank}.pt")
        else:
            for name in SIGNALS:
                found[name] = learn(name, folder / f"{name}.safetensors")
        found[KILLED] = learn(KILLED, folder / "killed.safetensors", dies=part == "first")
        torch.save(found, folder / f"second_{distributed.rank()}.pt")


def start(folder, part):
    script = "import sys, test_distributed; test_distributed.be_one_of_two(*sys.argv[1:])"
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    distributed.launch([sys.executable, "-c", script, str(folder), part], 2, environment={"PYTHONPATH": paths})


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """What both processes found, [rank][scenario]."""
    folder = tmp_path_factory.mktemp("group")
    with pytest.raises(RuntimeError, match="a process failed"):  # one died, so the other could not go on
        start(folder, "first")
    assert tl.load_checkpoint(folder / "killed.safetensors").extra["step"] == 10
    start(folder, "second")
    return [{**torch.load(folder / f"first_{n}.pt"), **torch.load(folder / f"second_{n}.pt")} for n in range(2)]


@pytest.mark.parametrize("name", [PLAIN, CUT])
def test_two_processes_end_where_one_does(processes, name):
    alone = learn(PLAIN)
    for process in processes:
        torch.testing.assert_close(process[name]["weights"], alone["weights"], rtol=0, atol=1e-9)
        assert process[name]["loss"] == pytest.approx(alone["loss"], abs=1e-9)
        assert process[name]["epochs"] == alone["epochs"] == [{"score": n / 2, "stop": 0.0} for n in (1, 2, 3)]
    assert torch.equal(processes[0][name]["weights"], processes[1][name]["weights"])


@pytest.mark.parametrize(("name", "steps", "epochs"), [(STOPPED, 2 * STEPS_PER_EPOCH, 2), (TIMED, LIMIT, 2)])
def test_all_end_when_the_first_says_so(processes, name, steps, epochs):
    alone = learn(name)
    for process in processes:
        torch.testing.assert_close(process[name]["weights"], alone["weights"], rtol=0, atol=1e-9)
        assert len(process[name]["loss"]) == len(alone["loss"]) == steps
        assert len(process[name]["epochs"]) == epochs
    assert processes[0][name]["epochs"][-1]["stop"] == (name == STOPPED) and not processes[1][name]["calls"]


def test_a_killed_group_goes_on_as_if_it_had_not_been(processes):
    for process in processes:
        assert torch.equal(process[KILLED]["weights"], process[DROPPED]["weights"])
        assert process[KILLED]["loss"] == process[DROPPED]["loss"]
        assert process[KILLED]["epochs"] == process[DROPPED]["epochs"]
    assert [step for step in processes[0][KILLED]["calls"] if step != "epoch 2" and step != "epoch 3"] == list(
        range(11, STEPS_PER_EPOCH * EPOCHS + 1)
    )


@pytest.mark.parametrize("name", SIGNALS)
def test_a_signal_to_one_process_ends_all_after_its_step_and_nothing_is_lost(processes, name):
    step = SIGNALS[name][2]
    for process in processes:
        came, again, whole = process[f"{name} came"], process[name], process[DROPPED]
        assert came["interrupted"] and len(came["loss"]) == step
        assert not again["interrupted"] and again["loss"] == whole["loss"] and again["epochs"] == whole["epochs"]
        assert torch.equal(again["weights"], whole["weights"])
    went_on = [call for call in processes[0][name]["calls"] if isinstance(call, int)]
    assert went_on == list(range(step + 1, STEPS_PER_EPOCH * EPOCHS + 1))
    assert processes[1][name]["calls"] == []


def test_each_process_drops_out_for_itself_but_all_keep_the_same_weights(processes):
    first, second = (process[DROPPED] for process in processes)
    assert torch.equal(first["weights"], second["weights"])
    assert not torch.allclose(first["weights"], processes[0][PLAIN]["weights"], atol=1e-3)


def test_the_first_process_alone_writes_and_reports(processes):
    first, second = (process[PLAIN] for process in processes)
    assert first["writers"] == [0] * 5 and second["writers"] == []
    assert second["calls"] == []
    assert first["calls"][-2:] == [24, "epoch 3"] and len(first["calls"]) == 24 + 3


def test_what_processes_tell_each_other(processes):
    for process in processes:
        assert process["facts"] == {"sum": 3.0, "first": "of 0", "all": [0, 1]}


def test_alone_there_is_nobody_to_tell():
    assert not distributed.together()
    assert (distributed.rank(), distributed.world_size()) == (0, 1)
    assert (distributed.add_up(0.5), distributed.from_first("a"), distributed.gather("b")) == (0.5, "a", ["b"])


def test_without_a_launcher_a_group_is_one_process(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with distributed.process_group():
        assert not distributed.together()


def test_each_process_must_see_the_same_checkpoint(monkeypatch, tmp_path):
    monkeypatch.setattr(resuming, "gather", lambda steps: [steps, 5])
    with pytest.raises(ValueError, match=r"must be the same file for every process, got the steps \[0, 5\] in it"):
        resuming.read_run(tmp_path / "none", None, None, None, {})


def test_a_process_that_fails_is_named(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(distributed, "STORE", "SOMEWHERE_ELSE")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(RuntimeError, match="a process failed: .*MASTER_ADDR"):
        distributed.launch([sys.executable, "-m", "studies.parallel", "unused"], 1)


def test_processes_may_complain_at_length():
    script = "import sys; sys.stderr.write(200_000 * 'x'); sys.stderr.flush()"
    distributed.launch([sys.executable, "-c", script], 2, timeout=60)


def test_a_process_that_takes_too_long_is_ended():
    script = "import sys, time; print('ValueError: first', file=sys.stderr, flush=True); time.sleep(60)"
    with pytest.raises(RuntimeError, match=r"a process failed \(not done after 5 seconds\): ValueError: first"):
        distributed.launch([sys.executable, "-c", script], 1, timeout=5)


def test_the_cause_is_not_the_process_that_lost_another():
    lost, cause = "RuntimeError: Connection closed by peer", "Traceback\nValueError: parts must be at most 6"
    assert distributed._cause([lost, "", cause]) == "ValueError: parts must be at most 6"
    assert distributed._cause([lost]) == lost and distributed._cause([""]) == "no message"


def test_the_cause_is_not_how_the_process_died_of_it():
    died = "terminate called without an active exception"
    assert distributed._cause([f"torch.distributed.DistStoreError: timed out\n{died}\n"]).endswith("timed out")
    assert distributed._cause([f"{died}\n"]) == died
