"""Fine-tuning: the loss is that of the answers alone, and a run is a promise, as those of `train` are."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import transformer_lib as tl
from factories import default_dtype, randomise
from transformer_lib.training import answers
from transformer_lib.training.options import FineTuningOptions, may_change

pytestmark = pytest.mark.fast

PAD = 0
CONFIG = tl.modern.Config(vocab_size=23, d_model=20, n_heads=5, n_layers=2, d_ff=17, n_kv_heads=1)
# Prompts of 1 to 4 ids, answers of 1 to 3; 13 of them are four batches of 3 and one of 1
EXAMPLES = [([3 + i % 5 + j for j in range(1 + i % 4)], [9 + i % 7 + j for j in range(i % 3)] + [2]) for i in range(13)]
STEPS = 13


def writer(config=CONFIG, seed=0, dtype=torch.float32):
    torch.manual_seed(seed)
    with default_dtype(dtype):
        return randomise(tl.modern.LanguageModel(config)).eval()


def tune(model, examples=EXAMPLES, **options):
    options = {"pad_id": PAD, "batch_size": 3, "steps": STEPS, "learning_rate": 0.01, "progress": False, **options}
    return tl.fine_tune(model, examples, **options)


def same_weights(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


def loss_by_hand(model, examples):
    """Sum −log p of each answer token, one example after the other, without padding."""
    summed, tokens = 0.0, 0
    for prompt, answer in examples:
        logits = model(torch.tensor([[*prompt, *answer]]))[0]
        for i, token in enumerate(answer):
            summed = summed - logits[len(prompt) + i - 1].log_softmax(-1)[token]
        tokens += len(answer)
    return summed, tokens


# The loss ---------------------------------------------------------------------------------------------------


def test_the_loss_and_its_gradient_are_those_of_the_answers_alone():
    model, other = writer(dtype=torch.float64), writer(dtype=torch.float64)
    [(ids, labels)] = answers.answer_batches(EXAMPLES, 13, pad_id=PAD)
    loss = answers.AnswerLoss(model, PAD)(ids, labels)
    wanted, tokens = loss_by_hand(other, EXAMPLES)
    torch.testing.assert_close(loss, wanted)
    assert tokens == (labels != PAD).sum() == sum(len(answer) for _, answer in EXAMPLES)
    loss.backward(), wanted.backward()
    for weight, same in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(weight.grad, same.grad)


def test_the_head_reads_only_where_labels_are(monkeypatch):
    model, read = writer(), []
    model.head.register_forward_pre_hook(lambda _, args: read.append(args[0].shape))
    tl.answer_loss(model, EXAMPLES, pad_id=PAD, batch_size=13)
    assert read == [(sum(len(answer) for _, answer in EXAMPLES), 20)]


def test_the_mean_loss_does_not_depend_on_the_batches():
    model = writer(dtype=torch.float64)
    wanted, tokens = loss_by_hand(model, EXAMPLES)
    for size in (1, 5, 13):
        assert tl.answer_loss(model, EXAMPLES, pad_id=PAD, batch_size=size) == pytest.approx(wanted.item() / tokens)


def test_the_batches_are_of_similar_length_and_differ_between_epochs():
    batches = answers.answer_batches(EXAMPLES, 3, pad_id=PAD, seed=5)
    rows = {tuple([*prompt, *answer]) for prompt, answer in EXAMPLES}
    orders = []
    for epoch in range(2):
        ids = [row for batch, _ in batches.epoch(epoch) for row in batch.tolist()]
        assert {tuple(i for i in row if i != PAD) for row in ids} == rows
        orders.append(ids)
    assert orders[0] != orders[1]
    assert sum(ids.numel() for ids, _ in batches) < 13 * 7 * 0.9  # of the longest, 7 tokens


# Learning ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lora", [False, True])
def test_it_learns_the_answers(lora):
    model = writer()
    if lora:
        tl.lora.add(model, rank=3, targets=["w_?", "gate", "up", "down"])
    before = tl.answer_loss(model, EXAMPLES, pad_id=PAD)
    seen = []
    history = tune(model, steps=40, learning_rate=0.03, on_step=lambda step, loss: seen.append((step, loss)))
    assert tl.answer_loss(model, EXAMPLES, pad_id=PAD) < before / 2
    assert history.steps == list(range(1, 41)) and seen == list(zip(history.steps, history.loss, strict=True))
    assert not history.interrupted and history.precision == "float32"


def test_one_step_is_one_of_adam():
    model, other = writer(dtype=torch.float64), writer(dtype=torch.float64)
    history = tune(model, batch_size=13, steps=1, warmup_steps=1, clip_norm=None)
    loss, tokens = loss_by_hand(other, EXAMPLES)
    (loss / tokens).backward()
    torch.optim.Adam(other.parameters(), lr=0.01).step()
    for weight, same in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(weight, same)
    assert history.loss == [pytest.approx((loss / tokens).item())] and history.rate == [0.01]


def test_a_clipped_step_is_that_of_the_clipped_gradient():
    model, other = writer(dtype=torch.float64), writer(dtype=torch.float64)
    tune(model, batch_size=13, steps=1, clip_norm=1e-9)  # about as large as Adam's ε, so that it shows
    loss, tokens = loss_by_hand(other, EXAMPLES)
    (loss / tokens).backward()
    torch.nn.utils.clip_grad_norm_(other.parameters(), 1e-9)
    torch.optim.Adam(other.parameters(), lr=0.01 / 5).step()
    for weight, same in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(weight, same, rtol=0, atol=1e-8)
    assert not same_weights(other, writer(dtype=torch.float64))


def test_in_parts_it_takes_the_same_steps():
    whole, parts = writer(dtype=torch.float64), writer(dtype=torch.float64)
    assert tune(parts, accumulate=2).loss == pytest.approx(tune(whole).loss)
    for weight, same in zip(parts.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(weight, same)


def test_one_pass_over_the_examples_is_the_default():
    assert len(tune(writer(), steps=None).steps) == 5


def test_in_bfloat16_it_is_nearly_the_same():
    model, other = writer(), writer()
    history = tune(model, precision="bfloat16")
    wanted = tune(other).loss
    assert history.precision == "bfloat16" and model.embedding.weight.dtype == torch.float32
    assert history.loss == pytest.approx(wanted, rel=0.05) and history.loss != wanted


# A run is a promise -----------------------------------------------------------------------------------------


class Stopped(Exception):
    pass


def stop_at(last, act):
    def on_step(step, _loss):
        if step == last:
            act()

    return on_step


def raise_it():
    raise Stopped


@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("last", [1, 5, 7])
def test_a_stopped_run_ends_as_one_that_was_not(lora, last, tmp_path):
    def start():
        model = writer()
        if lora:
            torch.manual_seed(1)
            tl.lora.add(model, rank=3)
        return model

    whole, stopped, resumed = start(), start(), start()
    wanted = tune(whole)
    options = {"checkpoint": tmp_path / "run", "checkpoint_every": 1}
    with pytest.raises(Stopped):
        tune(stopped, on_step=stop_at(last + 1, raise_it), **options)
    history = tune(resumed, **options)
    assert same_weights(resumed, whole)
    assert (history.steps, history.loss, history.rate) == (wanted.steps, wanted.loss, wanted.rate)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_after_the_step_and_the_same_call_goes_on(number, tmp_path):
    whole, model = writer(), writer()
    tune(whole)
    options = {"checkpoint": tmp_path / "run"}
    history = tune(model, on_step=stop_at(4, lambda: os.kill(os.getpid(), number)), **options)
    assert history.interrupted and history.steps == [1, 2, 3, 4]
    resumed = writer()
    history = tune(resumed, **options)
    assert not history.interrupted and len(history.steps) == STEPS and same_weights(resumed, whole)


@pytest.mark.parametrize("after", [1, 7])
def test_a_loss_that_is_no_number_stops_before_anything_good_is_overwritten(after, tmp_path):
    model, path = writer(), tmp_path / "run"
    tune(model, steps=after, schedule="constant", checkpoint=path)
    before, good = path.read_bytes(), [weight.clone() for weight in model.parameters()]

    def spoil(step, _loss):
        raise AssertionError("no step is taken")

    model.norm.register_forward_hook(lambda *_: _[2] * float("nan"))
    with pytest.raises(
        FloatingPointError, match=f"step {after + 1}, .* the loss is nan, .* after step {after} are intact"
    ):
        tune(model, checkpoint=path, schedule="constant", on_step=spoil)
    assert path.read_bytes() == before
    assert all(torch.equal(weight, number) for weight, number in zip(model.parameters(), good, strict=True))


def test_the_checkpoint_of_an_adapter_is_small_and_holds_nothing_of_the_base(tmp_path):
    model = writer(replace(CONFIG, vocab_size=1009))
    tl.lora.add(model, rank=1)
    tune(model, checkpoint=tmp_path / "run")
    numbers = tl.lora.count(model)
    assert (tmp_path / "run").stat().st_size < 3 * 4 * numbers + 20_000 < 1009 * 20 * 4


OTHER_OPTIONS = {
    "learning_rate": 0.02,
    "schedule": "constant",
    "warmup_steps": 6,
    "clip_norm": None,
    "precision": "bfloat16",
}
MAY_CHANGE = {"steps": STEPS + 2, "accumulate": 2, "checkpoint_every": 3, "progress": True, "checkpoint": "elsewhere"}


def test_every_option_is_tried():
    names = {name for name in FineTuningOptions.__dataclass_fields__}
    assert names == OTHER_OPTIONS.keys() | MAY_CHANGE.keys() and set(may_change(FineTuningOptions)) == set(MAY_CHANGE)


@pytest.mark.parametrize("name", OTHER_OPTIONS)
def test_another_option_is_another_run(name, tmp_path):
    path = tmp_path / "run"
    tune(writer(), steps=3, checkpoint=path)
    with pytest.raises(ValueError, match=f"was begun with {name} = .*, got .*; give the same"):
        tune(writer(), checkpoint=path, **{name: OTHER_OPTIONS[name]})


@pytest.mark.parametrize("name", MAY_CHANGE)
def test_what_may_change(name, tmp_path):
    path = tmp_path / "run"
    tune(writer(), steps=3, checkpoint=path)
    value = tmp_path / MAY_CHANGE[name] if name == "checkpoint" else MAY_CHANGE[name]
    history = tune(writer(), **{"checkpoint": path, name: value})
    assert len(history.steps) == (STEPS + 2 if name == "steps" else STEPS)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda: (writer(), {"seed": 1}), "batches.seed = 0, got 1"),
        (lambda: (writer(), {"batch_size": 4}), "batches.batch_size = 3, got 4"),
        (lambda: (writer(), {"examples": [*EXAMPLES[1:], ([3], [4])]}), "batches.sha256"),
        (lambda: (writer(seed=1), {}), "model.frozen weights"),
        (lambda: (writer(), {"rank": 4}), "model.layers.0.attention.w_q.rank = 3, got 4"),
        (lambda: (writer(), {"alpha": 8.0}), "model.layers.0.attention.w_q.alpha = 16.0, got 8.0"),
    ],
)
def test_another_model_or_other_examples_are_another_run(change, said, tmp_path):
    path = tmp_path / "run"
    model = writer()
    tl.lora.add(model, rank=3)
    tune(model, steps=3, checkpoint=path)
    other, options = change()
    tl.lora.add(other, rank=options.pop("rank", 3), alpha=options.pop("alpha", 16.0))
    with pytest.raises(ValueError, match=f"checkpoint .* was begun with {said}"):
        tune(other, checkpoint=path, **options)


def test_fewer_steps_than_taken_and_other_files_are_refused(tmp_path):
    path = tmp_path / "run"
    tune(writer(), checkpoint=path)
    with pytest.raises(ValueError, match=f"steps must be at least the {STEPS} that checkpoint .* has taken, got 3"):
        tune(writer(), checkpoint=path, steps=3)
    model = writer()
    tl.lora.add(model)
    tl.lora.save(model, path)
    with pytest.raises(ValueError, match="checkpoint .* must be one that `fine_tune` wrote, got a lora"):
        tune(writer(), checkpoint=path)


def test_a_finished_run_takes_no_step(tmp_path):
    model, again = writer(), writer()
    tune(model, checkpoint=tmp_path / "run")
    history = tune(again, checkpoint=tmp_path / "run", on_step=lambda *_: pytest.fail("a step"))
    assert same_weights(model, again) and len(history.steps) == STEPS


def test_the_same_run_writes_the_same_file_but_for_its_time(tmp_path):
    from safetensors import safe_open

    headers = []
    for name in ("one", "two"):
        tune(writer(), checkpoint=tmp_path / name)
        with safe_open(tmp_path / name, framework="pt") as file:
            header = json.loads(file.metadata()["transformer_lib"])
        header["history"].pop("seconds"), header.pop("sha256")
        headers.append(header)
    assert headers[0] == headers[1]


# Refusals ---------------------------------------------------------------------------------------------------


def frozen():
    return writer().requires_grad_(False)


REFUSED = {
    "model": (
        {"model": lambda: tl.LanguageModel(23, 1, 20, 5, 17)},
        TypeError,
        "model must be a tl.modern.LanguageModel",
    ),
    "frozen": ({"model": frozen}, ValueError, "model must have a parameter to train"),
    "unknown option": ({"epochs": 3}, TypeError, "options must be among steps, .*, got epochs"),
    "steps": ({"steps": 0}, ValueError, "steps must be at least 1"),
    "rate": ({"learning_rate": float("inf")}, ValueError, "learning_rate must be finite"),
    "progress": ({"progress": 1}, TypeError, "progress must be True or False"),
    "pad_id": ({"pad_id": 2}, ValueError, "pad_id must be no token of an answer, got 2, which is in example 0"),
    "vocabulary": ({"examples": [([3], [23])]}, ValueError, r"examples must hold ids in \[0, 23\)"),
    "pairs": (
        {"examples": [[3, 4, 5]]},
        TypeError,
        r"examples must be pairs \(prompt, answer\) of ids, got .* at index 0",
    ),
    "no prompt": ({"examples": [([], [3])]}, ValueError, "prompt must have an id in every sentence"),
    "no answer": ({"examples": [([3], [])]}, ValueError, "answer must have an id in every sentence"),
    "none": ({"examples": []}, ValueError, "must not be empty"),
    "batch_size": ({"batch_size": 0}, ValueError, "batch_size must be at least 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_it_cannot_use_it_refuses(case):
    change, kind, message = REFUSED[case]
    make = change.get("model", writer)
    with pytest.raises(kind, match=message):
        tune(make(), **{name: value for name, value in change.items() if name != "model"})


def test_what_is_counted_is_checked():
    ids, counted = torch.tensor([[3, 4, 5]]), torch.tensor([[False, True, True]])
    for wrong, message in (
        (counted.logical_not(), "counted must be False in its first column"),
        (counted[:, :2], r"counted must have the shape of ids \(1, 3\), got \(1, 2\)"),
    ):
        with pytest.raises(ValueError, match=message):
            answers.logits_before(writer(), ids, wrong)
    wanted = F.log_softmax(writer()(ids), -1)[0, :2]
    torch.testing.assert_close(answers.logits_before(writer(), ids, counted).log_softmax(-1), wanted)
