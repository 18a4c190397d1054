"""The check keeps its word where a learner's function misbehaves, and claims nothing that is not true throughout."""

from __future__ import annotations

import math
import os
import re
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from small_exercises import SCORES, use
from transformer_lib.course import exercises
from transformer_lib.course.exercises import Case, Exercise, Mistake, check_solution, examine, worker
from transformer_lib.course.exercises.errors import error_text, explained
from transformer_lib.course.exercises.patterns import shared_claim
from transformer_lib.course.exercises.plain import MOST_ENTRIES, MOST_PRINTED, Stranger, plain
from transformer_lib.course.exercises.report import show
from transformer_lib.course.exercises.sandbox import run_guarded

pytestmark = pytest.mark.fast

PATIENT = 60.0
copies = pytest.mark.skipif(not worker.can_copy_a_process(), reason="a process is copied on Linux only")


@pytest.fixture(params=["process", "thread"])
def place(request, monkeypatch):
    """Run learners' functions in a process, and again in a thread, as where no process can be copied."""
    if request.param == "thread":
        monkeypatch.setattr(worker, "can_copy_a_process", lambda: False)
    elif not worker.can_copy_a_process():
        pytest.skip("a process is copied on Linux only")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Find the small exercises by their ids."""
    use(monkeypatch)


def right(query, key):
    return query @ key.mT / query.shape[-1] ** 0.5


# Claims ---------------------------------------------------------------------------------------------------------------


def doubled(values):
    """Return twice the values."""
    return 2 * values


ROWS = [Case("one", (torch.tensor([3.0]),)), Case("two", (torch.tensor([1.0, 4.0]),)), Case("three", (torch.eye(3),))]
DOUBLED = Exercise("99.2", "Doubled", 1, 1, doubled, lambda: ROWS, ())


@pytest.mark.parametrize(
    ("function", "diagnosis"),
    [
        (lambda v: 6 * v, "Every value is 3 times the right one."),
        (lambda v: 2 * v * len(v) * 2, "The values differ."),  # 2, 4 and 6 times the right one
        (lambda v: 2 * v + 5, "Every value is off by the same amount, +5."),
        (lambda v: 2 * v + v.numel(), "The values differ."),
        (lambda v: 0 * v, "The result is all zeros."),
        (lambda v: 0 * v if len(v) < 2 else 3 * v, "The values differ."),
        (lambda v: 2.001 * v, "Nearly right: off by 4e-03 at most"),
        (lambda v: 2.001 * v if len(v) < 2 else v, "The values differ."),
        (lambda v: None, "Your function returned None: is there a `return` in every branch?"),
        (lambda v: None if len(v) < 2 else v, "In the case “one”: Your function returned None"),
        (
            lambda v: (2 * v)[None],
            "The values are right but arranged along other axes: expected shape [1], got [1, 1].",
        ),
        (lambda v: (2 * v)[None] if len(v) < 2 else v, "In the case “one”: The result has the wrong shape"),
    ],
)
def test_a_claim_holds_in_every_failing_case(function, diagnosis):
    assert examine(DOUBLED, function).diagnosis.startswith(diagnosis)


def test_a_single_number_is_no_factor():
    assert shared_claim([(2.0, 6.0)]) is None
    assert shared_claim([(2.0, 6.0), (5.0, 15.0)]) == "The result is 3 times the right one."
    assert shared_claim([(2.0, 6.0), (5.0, 10.0)]) is None
    assert shared_claim([(torch.ones(2), torch.ones(2).long())]) is None
    assert shared_claim([((torch.ones(2), torch.ones(2)), (torch.ones(2),))], [], ("one", "other")) is None


def test_what_is_right_may_speak_against_a_claim():
    wrong = [(2.0, 6.0), (5.0, 15.0)]
    assert shared_claim(wrong, [(0.0, 0.0)]) == "The result is 3 times the right one."
    assert shared_claim(wrong, [(1.0, 1.0)]) is None


def test_a_transpose_is_only_spoken_of_where_one_would_fit():
    query, key, odd = (torch.ones(shape) for shape in ((2, 3), (5, 3), (7, 4)))
    exercise = Exercise("99.3", "Products", 1, 1, lambda a, b: a @ b.T, lambda: [Case("2 and 5", (query, key))], ())
    assert "is a transpose missing, or one too many?" in examine(exercise, lambda a, b: a @ b).diagnosis
    diagnosis = examine(exercise, lambda a, b: a @ odd).diagnosis
    assert diagnosis.endswith("the last axis of A and the last but one of B must be equal.")


def test_small_numbers_are_compared_by_their_own_measure():
    rates = Exercise("99.4", "A rate", 1, 1, lambda step: step * 1e-7, lambda: [Case("step 3", (3,))], ())
    assert "not the right one" in examine(rates, lambda step: 1e-6).diagnosis


def test_two_mistakes_that_fit_name_neither():
    first, second = (Mistake(name, lambda v: 3 * v, f"You are {name}.") for name in ("first", "second"))
    exercise = Exercise("99.2", "Doubled", 1, 1, doubled, lambda: ROWS, (first, second))
    assert examine(exercise, lambda v: 3 * v).diagnosis == "Every value is 1.5 times the right one."
    one = Exercise("99.2", "Doubled", 1, 1, doubled, lambda: ROWS, (first,))
    assert examine(one, lambda v: 3 * v).diagnosis == "You are first."


def test_an_error_alone_names_a_mistake_only_if_it_is_the_same():
    mistake = Mistake("no axis", lambda v: v.sum(7), "You summed over an axis that is not there.")
    exercise = Exercise("99.2", "Doubled", 1, 1, doubled, lambda: ROWS, (mistake,))
    assert examine(exercise, lambda v: v.sum(7)).diagnosis == mistake.diagnosis
    assert "IndexError" in examine(exercise, lambda v: v.amax(9)).diagnosis


def test_an_index_says_from_where_it_counts():
    diagnosis = examine(exercises.get("05.3"), lambda word, merges: ["?"] * 99).diagnosis
    assert not re.search(r"place \d", diagnosis)
    listed = Exercise("99.4", "List", 1, 1, lambda v: [1, 2], lambda: [Case("list", (torch.ones(1),))], ())
    assert examine(listed, lambda v: [1, 3]).diagnosis == "The entries differ from index 1 on (counted from 0)."


# dtypes ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


IN_FLOAT64 = [one for one in exercises.all_exercises() if one.notebook in ("06", "09", "12")]


@pytest.mark.parametrize("exercise", IN_FLOAT64, ids=lambda exercise: exercise.id)
def test_where_a_notebook_computes_in_float64_its_checks_do_too(exercise, in_float64):
    assert examine(exercise, exercise.reference, time_limit=PATIENT)
    for mistake in exercise.mistakes:
        verdict = examine(exercise, mistake.function, time_limit=PATIENT)
        assert (verdict.status, verdict.diagnosis) == ("failed", mistake.diagnosis)
    assert torch.get_default_dtype() == torch.float64


def test_code_that_is_right_in_the_notebook_is_right_in_its_check(in_float64):
    def layer_norm(x, gain, bias, eps):
        mean = x @ torch.ones(x.shape[-1], 1) / x.shape[-1]  # in the default dtype
        variance = (x - mean) ** 2 @ torch.ones(x.shape[-1], 1) / x.shape[-1]
        return gain * (x - mean) / (variance + eps).sqrt() + bias

    verdict = examine(exercises.get("09.3"), layer_norm)
    assert verdict, verdict.text


def test_an_error_about_dtypes_says_what_to_do():
    def normed(x, gain, bias, eps):
        return x @ torch.ones(x.shape[-1], 1)

    diagnosis = examine(exercises.get("09.3"), normed).diagnosis
    assert "create new tensors with the dtype of the inputs, as in torch.zeros(3, dtype=x.dtype)" in diagnosis


def test_any_float_will_do_where_no_gradient_is_compared():
    table = exercises.get("06.1")
    assert not table.gradients
    assert examine(table, lambda *args: table.reference(*args).float())
    assert examine(table, lambda *args: table.reference(*args).double())


# NumPy ----------------------------------------------------------------------------------------------------------------


CELL = """
def softmax(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)
"""
names = {"np": np}
exec(compile(CELL, "another cell", "exec"), names)  # as notebooks 01 to 03 define it, for arrays
softmax = names["softmax"]


def test_the_numpy_softmax_of_the_notebook_is_translated():
    diagnosis = examine(exercises.get("01.3"), lambda q, k, v, t: softmax(q @ k.T / t) @ v).diagnosis
    assert "use torch.softmax(scores, dim=-1)" in diagnosis
    diagnosis = examine(exercises.get("03.2"), lambda *args: np.ones((2, 2)) @ args[0]).diagnosis
    assert "use torch's functions" in diagnosis


def test_the_way_through_numpy_is_closed_at_once():
    cosines = exercises.get("02.2")
    assert cosines.gradients

    def scores(X, T):
        unit = torch.nn.functional.normalize(X, dim=-1)
        return unit @ unit.mT / T

    diagnosis = examine(cosines, lambda X, T: torch.from_numpy(softmax(scores(X, T).numpy()))).diagnosis
    assert "do every step with torch, and detach nothing" in diagnosis
    assert "Use tensor.detach" not in diagnosis
    diagnosis = examine(cosines, lambda X, T: torch.softmax(scores(X, T), -1).detach()).diagnosis
    assert "detach nothing" in diagnosis or "gradient" in diagnosis
    diagnosis = examine(cosines, lambda X, T: softmax(scores(X, T).detach().numpy())).diagnosis
    assert "It also compares gradients, which end at NumPy: compute with torch." in diagnosis


# Stubs ----------------------------------------------------------------------------------------------------------------


def test_a_line_left_over_from_the_stub_is_named():
    def scores(query, key):
        found = query @ key.mT
        found = found / query.shape[-1] ** 0.5
        raise NotImplementedError

    def shown(query, key):
        print(query.shape)
        raise NotImplementedError

    def returned(query, key):
        if len(query) < 3:
            return right(query, key)
        raise NotImplementedError

    for function in (scores, shown, returned):
        verdict = examine(SCORES, function)
        assert verdict.status == "failed"
        assert "reached the line `raise NotImplementedError`" in verdict.diagnosis

    def commented(query, key):
        """Say what is to be done."""
        # query @ key.mT
        raise NotImplementedError("write your code here")

    assert examine(SCORES, commented).status == "unattempted"


# What misbehaves ------------------------------------------------------------------------------------------------------


@copies
@pytest.mark.parametrize(
    "stuck", [lambda: sum(range(10**12)), lambda: re.match("(a+)+b", "a" * 40)], ids=["sum", "regex"]
)
def test_the_time_limit_holds_where_c_keeps_the_interpreter(stuck):
    def scores(query, key):
        return stuck() if len(query) == 3 else right(query, key)

    verdict = examine(SCORES, scores, time_limit=1.0)
    assert "did not come to an end" in verdict.diagnosis


def test_nothing_is_printed_after_an_endless_loop(place, capfd):
    def stubborn(query, key):
        for _ in range(2):
            try:
                while True:
                    pass
            except BaseException:
                continue

    examine(SCORES, stubborn, time_limit=0.2)
    time.sleep(1)
    assert capfd.readouterr() == ("", "")


@copies
def test_memory_is_bounded():
    def grows(query, key):
        found = [query]
        for one in found:
            found.extend([one] * 1_000_000)

    assert "does a list grow in the loop that runs over it?" in examine(SCORES, grows, time_limit=PATIENT).diagnosis
    assert "far more memory" in examine(SCORES, lambda q, k: torch.zeros(2**40)).diagnosis


def test_prints_are_shown_once_and_cut(place, capsys):
    def scores(query, key):
        print("shape", list(query.shape))
        return right(query, key)

    check_solution("04.1", scores)
    printed = capsys.readouterr().out
    assert printed.count("shape [1, 3]") == 1
    assert printed.index("shape") < printed.index("✓")

    def loud(query, key):
        print("x" * 5_000_000)
        return right(query, key)

    check_solution("04.1", loud)
    printed = capsys.readouterr().out
    assert MOST_PRINTED <= len(printed) < MOST_PRINTED + 200
    assert "… and" in printed


@pytest.mark.parametrize(
    ("value", "described"),
    [
        (torch.zeros(1).expand(200_000_000), "The result has the wrong shape: expected shape [1, 1], got [200000000]."),
        (range(200_000_000), "Return a torch.Tensor; you returned a range."),
        (np.broadcast_to(np.zeros(1), (200_000_000,)), "a NumPy array of shape [200000000]"),
        ("x" * 2_000_000, "Return a torch.Tensor; you returned a str of 2000000 characters."),
    ],
    ids=["tensor", "range", "array", "text"],
)
def test_large_results_are_described_without_being_looked_through(value, described, place):
    one = Exercise("99.1", "scores", 1, 1, right, lambda: SCORES.cases()[-1:], ())
    label = "expected shape [1, 1]" in described
    exercise = one if not label else Exercise("99.1", "scores", 1, 1, right, _one_query, ())
    verdict = examine(exercise, lambda query, key: value)
    assert described in verdict.diagnosis
    assert len(verdict.text) < 2000


def _one_query():
    return [case for case in SCORES.cases() if case.label.startswith("one query")]


class Pretended:
    __class__ = torch.Tensor

    def __getattr__(self, name):
        raise RuntimeError(name)


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no")


def test_what_only_pretends_does_no_harm(place):
    def fails(query, key):
        raise Silent

    assert examine(SCORES, lambda q, k: Pretended()).diagnosis.startswith("Return a torch.Tensor; you returned a Pre")
    assert "Silent" in examine(SCORES, fails).diagnosis
    assert examine(SCORES, lambda q, k: torch.nn.Parameter(right(q, k))).status == "failed"  # its gradients end there


@copies
def test_a_function_that_ends_the_process_ends_only_its_own():
    verdict = examine(SCORES, lambda query, key: os._exit(1))
    assert "it ended the whole Python process" in verdict.diagnosis


@copies
def test_a_function_that_sleeps_is_tried_in_a_thread_and_given_up():
    verdict = examine(SCORES, lambda query, key: time.sleep(1), time_limit=0.1)
    assert "did not come to an end" in verdict.diagnosis


@copies
def test_on_a_busy_machine_a_function_gets_the_time_that_it_computes(monkeypatch):
    """Here it hardly got the processor: when its limit is over by the clock, it has computed for no time at all."""
    monkeypatch.setattr(worker, "_asleep", lambda process: False)
    monkeypatch.setattr(worker, "_seconds_computed", lambda process: 0.0)

    def slow(query, key):
        time.sleep(0.7 if query.shape == (3, 7) else 0)
        return right(query, key)

    assert examine(SCORES, slow, time_limit=0.5).status == "passed"
    monkeypatch.setattr(worker, "_seconds_computed", lambda process: time.monotonic())
    assert "did not come to an end" in examine(SCORES, slow, time_limit=0.5).diagnosis


def test_torch_does_not_warn_above_a_diagnosis(place, capsys):
    check_solution("02.1", lambda query, key: query @ key.T, time_limit=PATIENT)
    printed = capsys.readouterr()
    assert "swap the last two only" in printed.out
    assert "Warning" not in printed.out + printed.err


def test_plain_data_stays_and_the_rest_becomes_a_stranger():
    kept = [None, True, 2, 2.5, 1j, "text", (1, [2]), np.float64(3), ...]
    assert plain(kept) == kept
    assert plain({}) == Stranger("dict", "a dict")
    assert show(plain({})) == "<dict>"
    assert plain(torch.zeros(1).expand(MOST_ENTRIES + 1)).is_meta
    endless = []
    endless.append(endless)
    assert "list" in str(plain(endless))
    assert plain(torch.ones(2).max(0)) == (torch.tensor(1.0), torch.tensor(0))


def test_a_thread_that_is_stopped_twice_is_silent(capfd):
    def catches():
        try:
            while True:
                pass
        except SystemExit:
            while True:
                pass

    assert run_guarded(catches, (), (), time_limit=0.1).kind == "endless"
    time.sleep(0.5)
    assert capfd.readouterr().err == ""


# Slips that were once taken for another mistake -----------------------------------------------------------------------


def _shifted_by_the_smallest(scores):
    e = (scores - scores.amin(-1, keepdim=True)).exp()
    return e / e.sum(-1, keepdim=True)


def _replaced(word, merges):
    text = " ".join(word)
    for left, right_part in merges:
        text = text.replace(f"{left} {right_part}", left + right_part)
    return text.split()


def _first_query(queries, keys, values, temperature):
    return torch.softmax(queries[0] @ keys.T / temperature, 0) @ values


def _causal(X, temperature):
    unit = torch.nn.functional.normalize(X, dim=-1)
    may = torch.ones(X.shape[-2], X.shape[-2]).tril().bool()
    return torch.softmax((unit @ unit.mT / temperature).masked_fill(~may, -1e9), -1)


def _finite_fill(x, memory, W_Q, W_K, W_V, memory_mask):
    scores = x @ W_Q @ (memory @ W_K).mT / W_K.shape[1] ** 0.5
    return scores.masked_fill(~memory_mask, -10.0).softmax(-1) @ memory @ W_V


def _called_once(forward, x, times):
    outputs = [forward(x, False)]
    return "same" if all(torch.equal(outputs[0], output) for output in outputs) else "random"


def _by_identity(forward, x, times):
    first = forward(x, False)
    return "same" if all(forward(x, False) is first for _ in range(times - 1)) else "random"


def _turned_without_sign(offset, d_model):
    angles = abs(offset) / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.block_diag(*(torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angles))


@pytest.mark.parametrize(
    ("exercise_id", "function", "right_word", "wrong_word"),
    [
        ("17.1", _called_once, "you returned 'same'", "seed"),
        ("17.1", _by_identity, "compare the numbers", "input"),
        ("06.3", _turned_without_sign, "sign of the offset", "order"),
        ("11.1", _finite_fill, "differ", "Nearly"),
        ("04.3", _shifted_by_the_smallest, "NaN", "mean"),
        ("05.3", _replaced, "in one text", "longest"),
        ("01.3", _first_query, "wrong shape", "other axes"),
        ("02.2", _causal, "differ", "Nearly"),
    ],
)
def test_a_slip_is_not_taken_for_another(exercise_id, function, right_word, wrong_word):
    verdict = examine(exercises.get(exercise_id), function, time_limit=PATIENT)
    assert verdict.status == "failed"
    assert right_word in verdict.diagnosis
    assert wrong_word not in verdict.diagnosis


# What will do as well ---------------------------------------------------------------------------------------------


def test_tuples_will_do_for_lists_and_numbers_for_tensors_without_gradients():
    def prune(score, heads, n):
        return tuple(exercises.get("15.4").reference(score, heads, n))

    def merged(first, second):
        largest = max(float(first[0]), float(second[0]))
        shares = [math.exp(float(part[0]) - largest) for part in (first, second)]
        total = shares[0] * float(first[1]) + shares[1] * float(second[1])
        return largest, total, shares[0] * first[2] + shares[1] * second[2]

    assert examine(exercises.get("15.4"), prune, time_limit=PATIENT)
    assert examine(exercises.get("16.3"), merged, time_limit=PATIENT)
    assert not examine(exercises.get("16.3"), lambda *parts: (*merged(*parts)[:1], 0.0, merged(*parts)[2]))


def test_gradients_reach_every_tensor_of_a_list():
    def detached(at):
        def function(query, key_blocks, value_blocks):
            keys = torch.cat([key.detach() if i == at else key for i, key in enumerate(key_blocks)])
            return torch.softmax(query @ keys.T / query.shape[1] ** 0.5, -1) @ torch.cat(value_blocks)

        return function

    blocks = replace(exercises.get("16.4"), demands=())  # which would refuse the grid of scores
    assert examine(blocks, detached(-1), time_limit=PATIENT)
    verdict = examine(blocks, detached(1), time_limit=PATIENT)
    assert "The values are right, but not the gradients" in verdict.diagnosis
    assert "key_blocks" in verdict.diagnosis
    none = examine(blocks, lambda q, k, v: detached(-1)(q, [key.detach() for key in k], v), time_limit=PATIENT)
    assert "No gradient reaches key_blocks" in none.diagnosis


def test_none_for_one_of_several_results_is_named():
    verdict = examine(
        exercises.get("16.3"), lambda first, second: (torch.maximum(first[0], second[0]), None, second[2])
    )
    assert "None came in its place" in verdict.diagnosis


def test_no_line_of_torch_is_called_the_learners(capsys):
    def overwritten(query, key):
        copy = 1 * query
        scores = copy @ key.mT / query.shape[-1] ** 0.5
        copy.zero_()  # which the backward pass of the product still needs
        return scores

    check_solution("04.1", overwritten)
    said = capsys.readouterr().out
    assert "The values are right, but not the gradients." in said and "e = e / …" in said
    assert "_engine_run_backward" not in said and "in your line" not in said


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        (
            "one of the variables needed for gradient computation has been modified by an inplace operation: [x]",
            "e / …",
        ),
        ("a leaf Variable that requires grad is being used in an in-place operation.", "torch.no_grad()"),
        ("grad can be implicitly created only for scalar outputs", "take the mean"),
        ("\"addmm_impl_cpu_\" not implemented for 'Bool'", "needs numbers"),
        ("element 0 of tensors does not require grad and does not have a grad_fn", "requires_grad_()"),
    ],
)
def test_what_autograd_says_comes_with_advice(message, advice):
    told = explained(RuntimeError(message), "", ("values",))
    assert advice in told and "NumPy" not in told


def test_a_long_message_is_cut_between_words():
    told = error_text(RuntimeError("word " * 99))
    assert told.endswith("word …") and len(told) < 200


# NumPy's arrays -------------------------------------------------------------------------------------------------------

ARRAYS = exercises.get("18.3")  # embedding_backward(g_x, ids, vocab_size), whose arrays are NumPy's


def of_array(change):
    return lambda g_x, ids, vocab_size: change(ARRAYS.reference(g_x, ids, vocab_size))


@pytest.mark.parametrize(
    ("change", "diagnosis"),
    [
        (torch.from_numpy, "Return a NumPy array; you returned a tensor of shape "),
        (lambda g: g.tolist(), "Return a NumPy array; you returned a list of "),
        (lambda g: g.astype(int), "The result must hold floating-point numbers; yours holds integers (int64)."),
        (
            lambda g: g.astype(object),
            "The result must hold floating-point numbers; yours holds objects, or far too many numbers.",
        ),
        (lambda g: g.astype(np.longdouble), "The result must hold floating-point numbers; yours holds float128."),
        (lambda g: g[None], "The values are right but arranged along other axes: expected shape "),
        (lambda g: 3 * g, "Every value is 3 times the right one."),
        (lambda g: g * np.nan, "The result contains NaN (not a number) in "),
        (lambda g: torch.softmax(g, -1), "Your function stopped with TypeError: softmax(): argument"),
        (
            lambda g: np.einsum("...v,...d->vd", g, g),
            "Your function stopped with ValueError: output has more dimensions",
        ),
    ],
)
def test_what_is_returned_for_an_array(change, diagnosis):
    verdict = examine(ARRAYS, of_array(change))
    assert verdict.status == "failed" and verdict.diagnosis.startswith(diagnosis), verdict.diagnosis


def test_advice_speaks_of_arrays_where_there_are_arrays():
    assert (
        "This exercise works with NumPy arrays" in examine(ARRAYS, of_array(lambda g: torch.softmax(g, -1))).diagnosis
    )
    said = examine(ARRAYS, of_array(lambda g: np.einsum("...v,...d->vd", g, g))).diagnosis
    assert said.endswith("NumPy's einsum does not add up over '…': make a table with a row for each token first.")
    product = examine(ARRAYS, lambda g_x, ids, vocab_size: g_x @ g_x).diagnosis
    assert product.endswith("In A @ B the last axis of A and the last but one of B must be equal.")


@pytest.mark.parametrize("change", [np.float32, np.asfortranarray, lambda g: g[::-1][::-1], lambda g: g.copy()])
def test_right_arrays_of_any_make_are_right(change):
    assert examine(ARRAYS, of_array(change))


def test_an_array_that_is_changed_in_place_is_noticed():
    def overwrites(g_x, ids, vocab_size):
        g_table = ARRAYS.reference(g_x, ids, vocab_size)
        g_x[:] = 0
        return g_table

    assert examine(ARRAYS, overwrites).diagnosis.endswith(
        "your function changes its input g_x in place: work on a copy."
    )
