"""The machinery of the exercises: it survives whatever a learner returns, and says what is wrong."""

from __future__ import annotations

import functools
import operator
import random
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch

from small_exercises import SCORES, SOFTMAX, use
from transformer_lib.course import exercises, progress
from transformer_lib.course.exercises import (
    Case,
    CheckFailed,
    Exercise,
    Mistake,
    check,
    check_solution,
    examine,
    yours,
)
from transformer_lib.course.exercises.model import normal
from transformer_lib.course.exercises.report import show
from transformer_lib.course.exercises.sandbox import copy_of, run_guarded

pytestmark = pytest.mark.fast

ATTENTION = exercises.get("04.4")


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Find the small exercises by their ids."""
    use(monkeypatch)


def right(query, key):
    return query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5


def of(change):
    """Return a learner's function that computes the right scores and then does something to them."""
    return lambda query, key: change(right(query, key))


# What a learner may return ------------------------------------------------------------------------------


ONE, TWO, THREE = "one query, one key", "2 queries", "3 queries"


@pytest.mark.parametrize(
    ("label", "change", "diagnosis"),
    [
        (ONE, lambda s: None, "Your function returned None: is there a `return` in every branch?"),
        (ONE, lambda s: "scores", "Return a torch.Tensor; you returned a str."),
        (ONE, lambda s: s.numpy(), "Return a torch.Tensor; you returned a NumPy array of shape [1, 1]."),
        (ONE, lambda s: s.tolist(), "Return a torch.Tensor; you returned a list of 1 items."),
        (ONE, lambda s: {}, "Return a torch.Tensor; you returned a dict."),
        (ONE, lambda s: 1, "Return a torch.Tensor; you returned an int."),
        (ONE, lambda s: s.long(), "The result must hold floating-point numbers; yours holds integers (int64)."),
        (ONE, lambda s: s > 0, "The result must hold floating-point numbers; yours holds booleans (bool)."),
        (ONE, lambda s: s + 0j, "The result must hold floating-point numbers; yours holds complex numbers"),
        (ONE, lambda s: s[..., None], "The values are right but arranged along other axes: expected shape [1, 1]"),
        (TWO, lambda s: s.sum(-1), "The result has the wrong shape: expected shape [2, 2], got [2]."),
        (ONE, lambda s: s * float("nan"), "The result contains NaN (not a number) in 1 of 1 entries."),
        (THREE, lambda s: s + 2.5, "Every value is off by the same amount, +2.5."),
        (THREE, lambda s: s * 3, "Every value is 3 times the right one."),
        (THREE, lambda s: -s, "Every value is the right one with its sign flipped."),
        (THREE, lambda s: s * 0, "The result is all zeros."),
        (THREE, lambda s: s.flip(-1), "The values are right but in another order."),
        (ONE, lambda s: s**2, "The values differ."),
        (ONE, lambda s: s.to_sparse(), "Return a torch.Tensor; you returned a sparse tensor."),
    ],
)
def test_anything_returned_gets_a_diagnosis(label, change, diagnosis):
    verdict = examine(_only(SCORES, label), lambda query, key: change(right(query, key)))
    assert verdict.status == "failed"
    assert verdict.diagnosis.startswith(diagnosis)


def test_the_dtype_counts_where_gradients_do():
    double = of(lambda s: s.double())
    diagnosis = examine(_only(SCORES, ONE, gradients=("query", "key")), double).diagnosis
    assert diagnosis.startswith("Right values, but as float64 where the inputs are float32: create new tensors")
    assert examine(_only(SCORES, ONE), double)


def _only(exercise, label, **more):
    """Return the exercise with the one case that begins with this label."""
    cases = [case for case in exercise.cases() if case.label.startswith(label)]
    return Exercise("99.1", "scores", 1, 1, exercise.reference, lambda: cases, exercise.mistakes, **more)


def test_the_transposed_result_is_recognised_without_a_known_mistake():
    verdict = examine(replace(SCORES, mistakes=()), of(lambda s: s.mT))
    assert "The result has the right values transposed" in verdict.diagnosis


def test_an_exception_is_shown_with_the_learners_own_line():
    def scores(query, key):
        broken = query @ key  # the keys are not transposed
        return broken.nonsense

    unknown = replace(SCORES, mistakes=())
    verdict = examine(_only(unknown, THREE), scores)
    assert "shapes cannot be multiplied (3x7 and 5x7). In A @ B the last axis" in verdict.diagnosis
    assert "in your line: broken = query @ key  # the keys are not transposed" in verdict.text
    assert __file__ not in verdict.text
    assert "In A @ B the last axis" in examine(_only(unknown, "a batch of 2"), scores).diagnosis

    def fails(query, key):
        raise ValueError(f"object at {hex(id(query))}\nsecond line")

    verdict = examine(SCORES, fails)
    assert verdict.diagnosis == "Your function stopped with ValueError: object at 0x…."
    assert 'raise ValueError(f"object at' in verdict.text


def test_the_line_of_a_callable_object_and_of_code_without_a_file():
    class Scores:
        def __call__(self, query, key):
            return query.nothing

    assert "in your line: return query.nothing" in examine(SCORES, Scores()).text
    assert "in your line: return query.nothing" in examine(SCORES, functools.partial(Scores())).text
    space = {}
    exec("def scores(query, key):\n    return query.nothing", space)
    verdict = examine(SCORES, space["scores"])
    assert "AttributeError" in verdict.diagnosis
    assert "in your line" not in verdict.text
    verdict = examine(_only(SCORES, THREE), operator.truediv)  # not one line of it is Python
    assert "in your line" not in verdict.text


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, RecursionError, MemoryError, StopIteration])
def test_any_exception_is_caught(error):
    def fails(query, key):
        raise error

    assert f"Your function stopped with {error.__name__}." in examine(SCORES, fails).diagnosis


def test_endless_recursion_is_caught():
    def scores(query, key):
        return scores(query, key)

    assert "RecursionError" in examine(SCORES, scores).diagnosis


def test_an_endless_loop_is_stopped():
    ended = []

    def endless():
        try:
            while True:
                pass
        finally:
            ended.append(True)

    assert run_guarded(endless, (), (), time_limit=0.2).kind == "endless"
    deadline = time.monotonic() + 60
    while not ended and time.monotonic() < deadline:
        time.sleep(0.01)
    assert ended == [True]


def test_a_call_that_cannot_be_stopped_is_given_up():
    outcome = run_guarded(lambda: time.sleep(1.5), (), (), time_limit=0.05)
    assert outcome.kind == "endless"


def test_a_known_mistake_may_be_endless():
    def never(next_logits, bos_id, eos_id, max_new_tokens):
        ids = [bos_id]
        while ids[-1] != eos_id:
            ids.append(int(next_logits(ids).argmax()))
        return ids

    verdict = examine(exercises.get("14.1"), never, time_limit=2.0)
    assert "ends only at eos" in verdict.diagnosis


def test_in_place_changes_of_inputs_are_found():
    def softmax(scores):
        scores -= scores.amax(-1, keepdim=True)
        return scores.exp() / scores.exp().sum(-1, keepdim=True)

    verdict = examine(SOFTMAX, softmax)
    assert verdict.diagnosis == "Right values, but your function changes its input scores in place: work on a copy."


def test_in_place_changes_cannot_spoil_later_cases():
    case = SCORES.cases()[0]
    run_guarded(lambda query, key: query.zero_(), case.args, SCORES.arguments, 5.0)
    assert case.args[0].abs().sum() > 0


@pytest.mark.parametrize("item", [None, torch.zeros(3), torch.zeros(2).long(), [0.0, 0.0]])
def test_an_item_replaced_in_place_is_noticed(item):
    outcome = run_guarded(lambda rows: rows.__setitem__(0, item), ([torch.zeros(2)],), ("rows",), 5.0)
    assert (outcome.kind, outcome.changed) == ("returned", ("rows",))


@pytest.mark.parametrize(
    ("function", "diagnosis"),
    [
        (None, "Pass the function itself, without calling it: check('04.1', scaled_scores)."),
        (torch.ones(2), "Pass the function itself"),
        (lambda query: query, "Your function must take these arguments: (query, key)."),
        (lambda query, key, mask: query, "Your function must take these arguments: (query, key)."),
    ],
)
def test_what_cannot_be_called_as_asked(function, diagnosis):
    assert diagnosis in examine(SCORES, function).text


def test_other_names_and_further_defaults_are_fine():
    assert examine(SCORES, lambda q, k, scale=True: right(q, k))
    assert examine(SCORES, lambda *args: right(*args))
    products = replace(_only(SCORES, "2 queries"), mistakes=(), reference=lambda query, key: query @ key.T)
    assert examine(products, torch.nn.functional.linear)
    assert not examine(SCORES, torch.add)  # built in; it does not say what it takes


# Not attempted ------------------------------------------------------------------------------------------


def test_a_stub_counts_as_not_attempted(capsys):
    def raises(query, key):
        raise NotImplementedError

    def says(query, key):
        raise NotImplementedError("write your code here")

    for stub in (raises, says, lambda query, key: ...):
        verdict = check("04.1", stub)
        assert (verdict.status, bool(verdict)) == ("unattempted", False)
        assert capsys.readouterr().out == "○ 04.1 not attempted yet\n"


def test_torchs_own_not_implemented_error_is_an_attempt():
    def scores(query, key):
        return torch.softmax(query.long(), -1)

    verdict = examine(SCORES, scores)
    assert verdict.status == "failed"
    assert "torch.softmax(query.long(), -1)" in verdict.text

    def half(query, key):
        if len(query) == 3:
            raise NotImplementedError
        return right(query, key)

    assert examine(SCORES, half).status == "failed"


# Gradients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "diagnosis"),
    [
        (lambda q, k: right(q.detach(), k), "No gradient reaches query"),
        (lambda q, k: right(q, k.detach()), "No gradient reaches key"),
        (lambda q, k: right(q.detach(), k.detach()), "No gradient reaches query"),
        (lambda q, k: right(2 * q.detach() - q, k), "gradient of query: Every value is the right one with its sign"),
        (lambda q, k: torch.from_numpy(right(q, k).numpy()), "gradients, which end at NumPy: do every step with torch"),
    ],
)
def test_wrong_gradients_are_found_where_values_are_right(function, diagnosis):
    verdict = examine(_only(SCORES, THREE, gradients=("query", "key")), function)
    assert verdict.status == "failed"
    assert verdict.diagnosis.startswith("The values are right, but not the gradients.")
    assert diagnosis in verdict.diagnosis


def test_a_check_inside_no_grad_works_like_any_other():
    with torch.no_grad():
        assert examine(SCORES, right)
        assert not torch.is_grad_enabled()


# Surroundings -------------------------------------------------------------------------------------------


def test_random_numbers_and_the_default_dtype_are_left_alone():
    def scores(query, key):
        torch.manual_seed(99)
        torch.rand(3)
        np.random.rand(3)
        random.random()
        torch.set_default_dtype(torch.float64)
        return right(query, key)

    torch.manual_seed(5)
    states = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    assert examine(SCORES, scores)
    assert torch.equal(torch.get_rng_state(), states[0])
    assert (np.random.get_state()[1] == states[1]).all()
    assert random.getstate() == states[2]
    assert torch.get_default_dtype() == torch.float32


def test_copies_share_nothing():
    array, tensor = np.zeros(3), torch.zeros(3)
    copied = copy_of([array, (tensor, 1.5)])
    copied[0][0] = copied[1][0][0] = 1.0
    assert array[0] == tensor[0] == 0


def test_the_text_is_the_same_every_time():
    texts = {examine(SCORES, of(lambda s: s + torch.rand(()))).text for _ in range(3)}
    assert len(texts) == 1


# The report ---------------------------------------------------------------------------------------------


def test_the_smallest_failing_example_is_printed_in_full():
    verdict = examine(SCORES, lambda q, k: q @ k.mT)
    assert verdict.text.splitlines() == [
        "✗ 04.1 Scaled scores: not right yet.",
        "  The scores are not scaled: divide by √d_k.",
        "  smallest example that fails (one query, one key):",
        "    query     [[ -1.874, -0.9937,  0.7185]]",
        "    key       [[-0.6985,  -1.472,  0.1777]]",
        "    expected  [[1.674]]",
        "    got       [[2.899]]",
    ]


def test_the_report_says_which_cases_are_right():
    verdict = examine(SOFTMAX, lambda s: s.exp() / s.exp().sum(-1, keepdim=True))
    assert "5 of 9 cases are right; wrong: very negative scores; scores in the thousands" in verdict.text


def test_large_arrays_are_shown_by_shape_and_first_difference():
    def scores(query, key):
        result = right(query, key)
        if result.numel() > 25:
            result[..., -1, 2] += 7
        return result

    text = examine(SCORES, scores).text
    assert "query     array of shape [2, 3, 5]" in text
    assert "got       array of shape [2, 3, 7]" in text
    assert "first difference at [0, 2, 2]: expected " in text


def test_several_results_are_shown_by_name():
    verdict = examine(ATTENTION, lambda q, k, v, m: (v, right(q, k)))
    assert "expected  output = " in verdict.text
    assert "got       weights = [[-0.6387,  0.7943],\n                         [ 0.5022, -0.5674]]" in verdict.text
    one = examine(ATTENTION, lambda q, k, v, m: v)
    assert "Return 2 results, (output, weights); you returned a tensor" in one.diagnosis
    assert "you returned 1." in examine(ATTENTION, lambda q, k, v, m: [v]).diagnosis


@pytest.mark.parametrize(
    ("exercise_id", "function", "diagnosis"),
    [
        ("12.3", lambda *sizes: "many", "Return a single number; you returned a str."),
        ("12.3", lambda *sizes: True, "Return a single number; you returned a bool."),
        ("12.3", lambda *sizes: float("nan"), "The result is NaN (not a number)."),
        ("12.3", lambda *sizes: 0, "The number is not the right one."),
        ("12.3", lambda *sizes: exercises.get("12.3").reference(*sizes) + 1, "The number is not the right one."),
        ("04.2", lambda *args: exercises.get("04.2").reference(*args) * 5, "The result is 5 times the right one."),
        ("13.1", lambda z, y, p: 1.0, "Return a torch.Tensor, so that gradients can flow; you returned a float."),
        ("11.4", lambda w, s, t: "pairs", "Return a list of pairs; you returned a str."),
        ("11.4", lambda w, s, t: zip(t, s, strict=False), "Return a list of pairs; you returned a zip."),
        ("11.4", lambda w, s, t: [["nein", "me"]], "The list has 1 pairs; expected "),
        ("11.4", lambda w, s, t: [["?", "?"] for _ in t[1:]], "The first of each pair must be the token that the row"),
        ("11.4", lambda w, s, t: [[one, s[0]] for one in t[1:]], "nouns and verbs that we know, "),
        ("10.4", lambda n: torch.zeros(n, n + 1).bool(), "expected shape [2, 2], got [2, 3]"),
        ("10.4", lambda n: torch.zeros(n, n).bool(), "0 cannot hear of 1 within two layers"),
        (
            "10.4",
            lambda n: torch.ones(n, n).bool().triu(1) | torch.eye(n).flip(0).bool(),
            "but it takes 5 entries; 4 are enough.",
        ),
        ("05.1", lambda words, counts: ("?", "?"), "left: Expected '"),
        ("05.1", lambda words, counts: (1, 2), "you returned an int."),
        ("05.1", lambda *given: np.array(exercises.get("05.1").reference(*given)), "you returned a NumPy array"),
        ("05.3", lambda *args: "tokens", "Return a list of tokens; you returned a str."),
        ("05.3", lambda word, merges: [*word, "end"], "tokens; expected"),
        ("05.3", lambda *given: ["?"] * len(exercises.get("05.3").reference(*given)), "The tokens differ from index 0"),
        ("05.4", lambda ids, table: torch.nn.Embedding(*table.shape)(ids), "does not depend on the table"),
        (
            "05.6",
            lambda table, i, k: torch.cosine_similarity(table, table[i][None]).topk(k).indices.tolist(),
            "contains the token itself",
        ),
        ("14.5", lambda *args: [1, 5, 2], "(ids, log_probability); you returned one list of 3 numbers."),
        ("12.2", lambda *args: {"embed"}, "Return a list of names; you returned a set."),
        ("14.1", lambda f, b, e, n: "ids", "Return a list of integers; you returned a str."),
        ("14.1", lambda f, b, e, n: [1], "The list has 1 entries; expected"),
        ("14.1", lambda f, b, e, n: [-1, *exercises.get("14.1").reference(f, b, e, n)[1:]], "from index 0 on (counted"),
        ("12.1", lambda *given: exercises.get("12.1").reference(*given)[:, None], "arranged along other axes"),
    ],
)
def test_other_kinds_of_results(exercise_id, function, diagnosis):
    verdict = examine(exercises.get(exercise_id), function)
    assert diagnosis in verdict.diagnosis
    assert "<str>" not in verdict.text


# Probes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.int32, "4 bytes"), (torch.int64, "8 bytes"), (torch.int16, "2 bytes")]
)
def test_where_bytes_are_the_point_wider_integers_are_refused(dtype, size):
    def quantize(weight):
        codes, scales = exercises.get("22.3").reference(weight)
        return codes.to(dtype), scales

    verdict = exercises.examine(exercises.get("22.3"), quantize)
    name = str(dtype).removeprefix("torch.")
    assert verdict.diagnosis == f"codes: Right values, but as {name}, {size} each; asked for is int8: .to(torch.int8)."


def test_weights_that_sum_over_the_wrong_axis_or_not_to_one():
    verdict = examine(SOFTMAX, lambda s: torch.softmax(s, -1) * 0.5)
    assert verdict.diagnosis == "Weights must sum to one over the keys; yours sum to 0.5."

    def queries(q, k, v, m):
        weights = torch.softmax(right(q, k) * 2, -2)
        return weights @ v, weights

    assert "sum to one over queries (axis -2)" in examine(ATTENTION, queries).diagnosis


def test_a_leak_through_the_mask_is_named():
    def leaks(q, k, v, m):
        scores = right(q, k).masked_fill(~m, -2.0)
        return torch.softmax(scores, -1) @ v, torch.softmax(scores, -1)

    assert "Query 0 may not see key 1, yet the value at 1 leaks" in examine(ATTENTION, leaks).diagnosis


def test_probabilities_that_do_not_sum_to_one():
    verdict = examine(exercises.get("14.3"), lambda z, p, t: 2 * torch.ones_like(z))
    assert verdict.diagnosis == "Probabilities must sum to one over the tokens; yours sum to 6."


def test_a_probe_that_finds_nothing_leaves_the_general_comparison():
    assert examine(SOFTMAX, lambda s: torch.softmax(s * 1.7, -1)).diagnosis == "The values differ."
    assert "contains NaN" in examine(SOFTMAX, lambda s: s * float("nan")).diagnosis
    attention = _only(ATTENTION, "3 queries", probes=ATTENTION.probes, returns=ATTENTION.returns)
    verdict = examine(attention, lambda *args: (ATTENTION.reference(*args)[0] ** 2, ATTENTION.reference(*args)[1]))
    assert verdict.diagnosis == "output: The values differ."


def test_a_probe_that_fails_leaves_the_general_comparison():
    calls = []

    def fickle(q, k, v, m):
        calls.append(m)
        output, weights = ATTENTION.reference(q, k, v, m)
        return (output**2, weights) if len(calls) < 2 else (None if len(calls) < 3 else "?")

    attention = _only(ATTENTION, "3 queries", probes=ATTENTION.probes, returns=ATTENTION.returns)
    assert examine(attention, fickle).diagnosis == "output: The values differ."


def test_only_the_wrong_one_of_several_large_results_is_located():
    def half(q, k, v, m):
        output, weights = ATTENTION.reference(q, k, v, m)
        weights = weights.clone()
        weights[..., 0, 0] += 1
        return output, weights

    batch = _only(ATTENTION, "a batch", returns=ATTENTION.returns)
    assert examine(batch, half).text.count("first difference at [0, 0, 0, 0]") == 1


def test_a_probe_that_does_not_fit_the_result_is_passed_over():
    assert "returned 1." in examine(ATTENTION, lambda q, k, v, m: (v,)).diagnosis


# check: printing, remembering, grading ------------------------------------------------------------------


def test_only_what_passed_is_remembered(capsys):
    assert not check("04.1", lambda q, k: q @ k.mT)
    assert check_solution("04.1", right)
    assert progress.state()["exercise"] == {}
    assert check("04.1", right)
    assert list(progress.state()["exercise"]) == ["04.1"]
    assert capsys.readouterr().out.count("✓ 04.1 Scaled scores: values and gradients are right in all 6 cases.") == 2


def test_a_verdict_shows_nothing_as_the_last_expression():
    verdict = examine(SCORES, right)
    assert verdict._ipython_display_() is None
    assert verdict.diagnosis == ""


def test_grading_raises(monkeypatch, capsys):
    monkeypatch.setenv("NBGRADER_EXECUTION", "autograde")

    def stub(query, key):
        raise NotImplementedError

    with pytest.raises(CheckFailed, match="04.1 not attempted yet"):
        check("04.1", stub)
    with pytest.raises(CheckFailed, match="divide by √d_k"):
        check_solution("04.1", lambda q, k: q @ k.mT)
    assert check("04.1", right)
    assert progress.state()["exercise"] == {}
    capsys.readouterr()


def test_a_teachers_exercise_in_a_few_lines():
    def mean(values):
        """Return the mean. values: [n]."""
        return sum(values.tolist()) / len(values)

    exercise = Exercise(
        "99.1",
        "The mean",
        1,
        1,
        mean,
        lambda: [Case(f"{n} values", tuple(normal(n, (n,)))) for n in (2, 3, 5)],
        (Mistake("sum", lambda v: v.sum(), "Divide by how many there are."),),
    )
    assert examine(exercise, torch.mean)
    assert examine(exercise, torch.sum).diagnosis == "Divide by how many there are."
    assert exercise.notebook == "99"


def test_values_that_cannot_be_shown_or_are_too_long():
    endless = []
    endless.append(endless)
    assert show(endless) == "<list>"
    assert show(list(range(999))).endswith(" …")
    assert show((None, -0.0, np.float64(0.5), np.ones((2, 2)))) == "(None, 0, 0.5, [[1, 1],\n [1, 1]])"
    assert show(torch.zeros(2, 0)) == "[[],\n []]"
    assert show({}) == "<dict>"


def test_no_tracer_runs_where_a_function_may_be_stopped():
    """A tracer that is stopped while it holds a lock would block the next check for ever."""
    seen = []

    def endless():
        seen.append(sys.gettrace())
        while True:
            pass

    before = threading.gettrace()
    threading.settrace(lambda *event: None)
    try:
        outcome = run_guarded(endless, (), (), time_limit=0.2)
    finally:
        threading.settrace(before)
    assert outcome.kind == "endless"
    assert seen and set(seen) == {None}


def test_yours_is_the_learners_function_only_where_its_check_accepts_it(capsys):
    def grouped(last):
        rise = last // 5
        return [step / rise if step <= rise else (last - step) / (last - rise) for step in range(1, last + 1)]

    def unattempted(last):
        raise NotImplementedError

    def constant(last):
        return [1.0] * last

    assert yours("13.6", grouped, constant) is grouped
    assert yours("13.6", unattempted, grouped) is grouped and yours("13.6", constant, grouped) is grouped
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "grouped: yours" and said[1].startswith("unattempted: the notebook's, until")
