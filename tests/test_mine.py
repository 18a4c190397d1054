"""What a learner writes becomes a file of their own: readable, importable alone, and never half-written."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import Tensor
from torch.nn import functional as F

import factories
import transformer_lib as tl
from transformer_lib import by_hand
from transformer_lib.course import exercises, mine
from transformer_lib.course.mine import CannotWrite, layout, parts, speculating, training_by_hand
from transformer_lib.decoding.speculative import speculative_decode

pytestmark = pytest.mark.fast

ROOT = Path(__file__).resolve().parents[1]
LAST_AXIS = -1
EPSILONS = {"float32": 0.0, "float64": 0.0}
FACTORS = np.array([1.0, 1.0], dtype="float32")
SHIFT = torch.tensor([0.0, float("inf")], dtype=torch.float64)
HUGE = torch.zeros(1000)


@pytest.fixture
def file() -> Path:
    return mine.folder() / "my_transformer.py"


@pytest.fixture
def cells():
    """Run the text of a cell as IPython does, which keeps its source; return what it then knows."""
    shell = InteractiveShell()

    def run(*texts: str) -> dict:
        for text in texts:
            shell.run_cell(text, store_history=True).raise_error()
        return shell.user_ns

    yield run
    shell.history_manager.end_session()


def imported(file: Path, expression: str) -> str:
    """Return what an expression comes to in a process that knows the file and nothing of the tests."""
    code = f"import sys; sys.path.insert(0, {str(file.parent)!r}); import torch\nfrom my_transformer import *\n"
    command = [sys.executable, "-W", "error", "-c", f"{code}print({expression})"]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=file.parent).stdout.strip()


# Styles --------------------------------------------------------------------------------------------------------------


def deep(scores):
    return scores - rowmax(scores)


def rowmax(scores):
    return scores.amax(dim=LAST_AXIS, keepdim=True)


def with_helpers(scores):
    exponentials = torch.exp(deep(scores))  # a comment stays
    return exponentials / exponentials.sum(dim=LAST_AXIS, keepdim=True)


def with_hints(scores: Tensor, *, axis: int = LAST_AXIS) -> Tensor:
    total: Tensor = scores.exp().sum(axis, keepdim=True)
    return scores.exp() / total


def in_numpy(scores):
    x = np.exp(np.asarray(scores) - np.max(np.asarray(scores), axis=-1, keepdims=True)) * FACTORS[0]
    return torch.from_numpy(x / x.sum(axis=-1, keepdims=True))


def with_a_dictionary(scores):
    return F.softmax(scores + EPSILONS["float32"] + SHIFT[0].float(), dim=-1)


@torch.no_grad()
def decorated(scores):
    return torch.softmax(scores, LAST_AXIS)


def logged(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@logged
def wrapped(scores):
    return math.e**scores / (math.e**scores).sum(-1, keepdim=True)


def unnamed(function):
    return lambda scores: function(scores)


def doubling(function):
    def double(scores):
        return 2 * function(scores)

    return double


@doubling
def halved(scores):
    return scores.softmax(-1) / 2


def importing_inside(scores):
    import torch.nn.functional

    return torch.nn.functional.softmax(scores, dim=-1)


def recursive(scores):
    if scores.dim() > 1:
        return torch.stack([recursive(row) for row in scores])
    return torch.einsum("k,->k", scores.exp(), 1 / scores.exp().sum())


square = lambda x: x * x  # noqa: E731


def with_lambda(scores):
    return (scores / 2).exp().pow(2) / square((scores / 2).exp()).sum(-1, keepdim=True)


def closure(base, weights):
    def inside(scores):
        powers = base**scores * weights
        return powers / powers.sum(-1, keepdim=True)

    return inside


STYLES = [
    with_helpers,
    with_hints,
    in_numpy,
    with_a_dictionary,
    decorated,
    wrapped,
    halved,
    importing_inside,
    recursive,
    with_lambda,
    closure(math.e, torch.ones(3)),
]


ALONE = """
import importlib.util, sys, torch
scores = torch.tensor([[0.5, 1.5, 0.25], [0.0, 1.0, 2.0]])
for path in sys.argv[1:]:
    spec = importlib.util.spec_from_file_location("alone", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    print((module.softmax(scores) - scores.softmax(-1)).abs().max().item() < 1e-6)
"""


def test_each_style_stands_alone(tmp_path, monkeypatch):
    files = []
    for number, function in enumerate(STYLES):
        monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / str(number)))
        assert mine.keep("softmax", function) and mine.kept() == ("softmax",)
        files.append(str(tmp_path / str(number) / "my_transformer.py"))
    command = [sys.executable, "-W", "error", "-c", ALONE, *files]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert said.split() == ["True"] * len(STYLES)


def test_the_file_is_readable(file):
    mine.keep("softmax", with_helpers)
    assert file.read_text("utf-8").partition("import annotations\n")[2].lstrip() == (
        "import torch\n\n\n"
        f"{layout.heading(parts.part_of('softmax'))}\n\n"
        "LAST_AXIS = -1\n\n\n"
        "def rowmax(scores):\n    return scores.amax(dim=LAST_AXIS, keepdim=True)\n\n\n"
        "def deep(scores):\n    return scores - rowmax(scores)\n\n\n"
        "def with_helpers(scores):\n    exponentials = torch.exp(deep(scores))  # a comment stays\n"
        "    return exponentials / exponentials.sum(dim=LAST_AXIS, keepdim=True)\n\n\n"
        "softmax = with_helpers\n"
    )


# What cannot be written ----------------------------------------------------------------------------------------------


class Softmax:
    def __call__(self, scores):
        return scores.softmax(-1)


def uses_a_large_array(scores):
    return scores.softmax(-1) + HUGE.sum()


def uses_a_class(scores):
    return Softmax()(scores)


def around(trained):
    def inside(scores):
        return scores.softmax(-1) * trained

    return inside


def counting(scores):
    global calls
    calls = 1
    return scores.softmax(-1)


def without_source():
    space: dict = {}
    exec("def softmax(scores):\n    return scores.softmax(-1)", space)
    return space["softmax"]


WRONG = [
    (without_source(), "Python does not know the source of softmax"),
    (lambda scores: scores.softmax(-1), "<lambda> is not written with def|source of <lambda>"),
    (unnamed(decorated), "<lambda> is not written with def|source of <lambda>"),
    (Softmax, "Softmax is a class; a part of the model is a function"),
    (Softmax(), "is a Softmax; a part of the model is a function"),
    (functools.partial(torch.softmax, dim=-1), "is a partial; a part of the model is a function"),
    (torch.softmax, "is a builtin_function_or_method; a part"),
    (uses_a_large_array, r"uses HUGE, which is a tensor of shape \[1000\]"),
    (uses_a_class, "uses Softmax, which is the class Softmax"),
    (
        around(torch.ones(1, requires_grad=True)),
        r"inside uses trained, which is a tensor of shape \[1\] that is trained",
    ),
    (around(itertools.count()), "inside uses trained, which is a count"),
    (around(sys.modules[__name__]), "which is the module test_mine, which another file could not import"),
    (counting, "counting changes a global variable"),
]


@pytest.mark.parametrize(("function", "reason"), WRONG)
def test_what_cannot_be_written_is_said_and_nothing_is_written(file, function, reason):
    mine.keep("softmax", with_hints)
    before = file.read_bytes()
    with pytest.raises(CannotWrite, match=reason):
        mine.keep("softmax", function)
    assert file.read_bytes() == before
    assert {path.name for path in file.parent.iterdir()} == {".lock", file.name}


def test_an_unknown_part_is_refused():
    with pytest.raises(ValueError, match="part must be one of softmax, similarity, .*, got 'sofmax'"):
        mine.keep("sofmax", with_hints)


# One file, several parts ---------------------------------------------------------------------------------------------


def test_names_that_mean_two_things_are_told_apart(file, cells):
    first = 'from math import sqrt\nn = 2\ndef size(x):\n    return f"{n}" and sqrt(x.shape[-1]) * n / n\n'
    cells(first)
    norm = "def layer_norm(x, gain, bias, eps):\n    return gain * x / size(x) + bias\n"
    mine.keep("layer_norm", cells(norm)["layer_norm"])
    second = 'from torch import sqrt\nn = 3\ndef size(x):\n    return f"{n}" and sqrt(x) * n / n\n'
    cells(second)
    merge = "def merge_heads(x):\n    layer_norm = size(x)\n    return layer_norm\n"
    mine.keep("merge_heads", cells(merge)["merge_heads"])
    text = file.read_text("utf-8")
    assert "from torch import sqrt as sqrt_08" in text and "n_08 = 3" in text and "def size_08(x):" in text
    four = "torch.full((4,), 4.0)"
    assert imported(file, f"merge_heads({four}).tolist(), layer_norm({four}, 1.0, 0.0, 0.0).tolist()") == (
        "[2.0, 2.0, 2.0, 2.0] [2.0, 2.0, 2.0, 2.0]"
    )


def test_a_helper_does_not_take_the_name_of_another_part(file, cells):
    space = cells(
        "import torch\n",
        "def softmax(scores):\n    return scores.softmax(-1)\n",
        "def masked_attention(query, key, value, mask):\n    return softmax(query @ key.mT) @ value, None\n",
    )
    mine.keep("masked_attention", space["masked_attention"])
    assert "def softmax_04(scores):" in file.read_text("utf-8")
    assert mine.kept() == ("masked_attention",)
    one = "torch.ones(1, 1)"
    assert imported(file, f"masked_attention({one}, {one}, {one}, None)[0].item()") == "1.0"


def test_a_later_version_replaces_an_earlier_one_which_is_kept(file):
    mine.keep("softmax", with_helpers)
    mine.keep("padding_mask", padding)
    mine.keep("softmax", with_hints)
    mine.keep("softmax", with_hints)  # nothing new, nothing to keep
    text = file.read_text("utf-8")
    assert "def with_helpers" not in text and "def with_hints" in text and "def padding" in text
    earlier = file.parent / "earlier"
    assert [path.name for path in earlier.iterdir()] == ["softmax_1.py"]
    alone = (earlier / "softmax_1.py").read_text("utf-8")
    assert "def with_helpers" in alone and "def padding" not in alone
    mine.keep("softmax", recursive)
    assert {path.name for path in earlier.iterdir()} == {"softmax_1.py", "softmax_2.py"}


def padding(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]


def test_what_the_learner_edits_stays(file):
    mine.keep("softmax", with_hints)
    mine.keep("padding_mask", padding)
    edited = file.read_text("utf-8").replace("(ids != pad_id)", "(ids - pad_id != 0)") + "\nmore = 1\n"
    file.write_text("# My notes.\n" + edited, "utf-8")
    mine.keep("softmax", recursive)
    text = file.read_text("utf-8")
    assert text.startswith("# My notes.\n") and "(ids - pad_id != 0)" in text and "more = 1" in text
    file.write_text(text + "def unfinished(\n", "utf-8")
    with pytest.raises(CannotWrite, match=r"line \d+ of the file is not Python: mend it, or call mine.reset"):
        mine.keep("softmax", with_hints)
    with pytest.raises(ValueError, match=r"my_transformer.py cannot be imported \(SyntaxError"):
        mine.assembled()


def test_reset_takes_out_a_part_or_all(file):
    for name, function in [("softmax", with_helpers), ("padding_mask", padding), ("merge_heads", Softmax.__call__)]:
        mine.keep(name, function)
    mine.reset("padding_mask")
    assert mine.kept() == ("softmax", "merge_heads")
    assert "def padding" not in file.read_text("utf-8")
    mine.reset()
    assert mine.kept() == () and "def " not in file.read_text("utf-8")
    assert len(list((file.parent / "earlier").iterdir())) == 3
    with pytest.raises(ValueError, match="part must be one of softmax"):
        mine.reset("heads")


def test_a_half_written_file_never_remains(file, monkeypatch):
    mine.keep("softmax", with_helpers)
    before = file.read_bytes()

    def full(descriptor):
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space left"):
        mine.keep("padding_mask", padding)
    assert file.read_bytes() == before
    assert {path.name for path in file.parent.iterdir()} == {".lock", file.name}


# The hook ------------------------------------------------------------------------------------------------------------


def test_a_check_that_passes_writes_the_part_and_says_so(file, cells, capsys):
    space = cells("import torch", "def split_heads(x, n_heads):\n    return x.unflatten(-1, (n_heads, -1)).mT.mT\n")
    exercises.check("08.1", space["split_heads"])
    assert not file.exists() and "mine" not in capsys.readouterr().out
    space = cells("def split_heads(x, n_heads):\n    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)\n")
    exercises.check("08.1", space["split_heads"])
    assert "✓ 08.1" in (said := capsys.readouterr().out)
    assert said.endswith("\n  It is part of your own Transformer now: mine/my_transformer.py.\n")
    assert imported(file, "list(split_heads(torch.zeros(1, 2, 6), 3).shape)") == "[1, 3, 2, 2]"
    exercises.check_solution("08.1", space["split_heads"])
    exercises.check("08.4", exercises.get("08.4").reference)
    assert "mine/" not in capsys.readouterr().out


def test_a_check_says_at_once_what_cannot_be_written(file, capsys):
    verdict = exercises.check("08.2", lambda x: x.transpose(1, 2).flatten(2))
    assert verdict and not file.exists()
    assert "\n  Not written into mine/my_transformer.py: <lambda> is not written with def" in capsys.readouterr().out


@pytest.mark.parametrize("variable", ["TRANSFORMER_COURSE_STATIC", "NBGRADER_EXECUTION"])
def test_stored_outputs_and_grading_are_nobodys(file, monkeypatch, capsys, variable):
    mine.keep("softmax", with_hints)
    before = file.read_bytes()
    monkeypatch.setenv(variable, "1")
    assert not mine.keep("padding_mask", padding)
    exercises.check("08.1", exercises.get("08.1").reference)
    assert "mine" not in capsys.readouterr().out
    assert file.read_bytes() == before and mine.kept() == ()
    assert "0 of 19 parts are yours" in repr(mine.map())


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TRANSFORMER_COURSE_MINE", str(tmp_path / "file" / "mine"))
    assert exercises.check("08.1", exercises.get("08.1").reference)
    assert "Not written into mine/my_transformer.py: " in capsys.readouterr().out


def test_where_the_folder_lies(tmp_path, monkeypatch):
    monkeypatch.delenv("TRANSFORMER_COURSE_MINE")
    assert mine.folder() == ROOT / "mine"
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    assert mine.folder() == tmp_path / "mine"


def test_keystones_are_parts_of_one_notebook_each():
    keystones = [exercise for exercise in exercises.all_exercises() if exercise.part]
    for exercise in keystones:
        part = parts.part_of(exercise.part)
        assert (part.notebook, part.arguments) == (exercise.notebook, exercise.arguments)
    assert len({exercise.part for exercise in keystones}) == len(keystones) >= 15


def test_the_map_says_whose_part_is_whose():
    mine.keep("softmax", with_hints)
    bundle = mine.map()._repr_mimebundle_()
    lines = bundle["text/plain"].splitlines()
    assert lines[0] == "Your own Transformer: 1 of 19 parts are yours, in mine/my_transformer.py"
    assert lines[1].startswith("✓ yours, ran 54 times 01  softmax")  # 9 words in 2 + 2 · 2 attentions
    assert lines[2].startswith("○ the library's       02  similarity")
    assert bundle["text/html"].count("<tr>") == 20 and "<code>softmax</code>" in bundle["text/html"]


# Backward passes -----------------------------------------------------------------------------------------------------


def test_the_learners_functions_take_the_librarys_place(file):
    src, tgt = np.array([[3, 4, 5]]), np.array([[1, 5, 6, 2]])
    sizes = by_hand.Sizes(src_vocab_size=7, tgt_vocab_size=7, d_model=4, n_heads=2, n_layers=2, d_ff=5)
    parameters = by_hand.new_parameters(sizes)
    wanted = dict(parameters)
    by_hand.train(wanted, sizes, [(src, tgt)] * 3, lambda step: 0.01)
    with mine.by_hand() as whose:
        assert whose.startswith("All 4 functions are the library's")
    for number, name in enumerate(("18.1", "18.3", "18.4", "18.5"), start=1):
        exercise = exercises.get(name)
        assert mine.keep(exercise.part, exercise.reference)
        with mine.by_hand() as whose:
            assert whose.startswith(f"{number} of 4 functions {'is' if number == 1 else 'are'} yours: linear_backward")
            found = dict(parameters)
            by_hand.train(found, sizes, [(src, tgt)] * 3, lambda step: 0.01)
        for key, array in wanted.items():
            np.testing.assert_allclose(found[key], array, rtol=0, atol=1e-10)
    assert mine.kept() == ("linear_backward", "embedding_backward", "decoder_layer_backward", "adam_step")


def test_each_function_is_asked(monkeypatch):
    called = set()

    def listening(name):
        reference = next(e.reference for e in exercises.all_exercises() if e.part == name)
        return lambda *args: (called.add(name), reference(*args))[1]

    sizes = by_hand.Sizes(src_vocab_size=7, tgt_vocab_size=7, d_model=4, n_heads=2, n_layers=1, d_ff=5)
    with training_by_hand.in_by_hand({name: listening(name) for name in training_by_hand.PLACES}):
        batch = np.array([[3]]), np.array([[1, 5, 2]])
        by_hand.train(by_hand.new_parameters(sizes), sizes, [batch], lambda step: 0.01)
    of_18 = {part.name for part in parts.PARTS if part.notebook == parts.BY_HAND}
    assert called == set(training_by_hand.PLACES) == of_18


def test_a_backward_pass_is_no_part_of_the_translator(file):
    mine.keep("linear_backward", exercises.get("18.1").reference)
    assert mine.assembled().parts.theirs == {}
    assert "0 of 19 parts are yours" in repr(mine.map())
    with pytest.raises(ValueError, match="parts must be among yours, none yet, got linear_backward"):
        mine.assembled(parts=["linear_backward"])


# Speculative decoding ------------------------------------------------------------------------------------------------


def test_the_learners_judgement_decodes(file):
    target, draft = factories.make_model(0, scale=2.0), factories.make_model(0, scale=2.0)
    with torch.no_grad():
        draft.output_head.weight.add_(torch.randn(29, 30, generator=torch.Generator().manual_seed(1)))
    src = torch.tensor([[3, 5, 4, 2], [6, 2, 0, 0]])
    wanted = speculative_decode(target, draft, src, max_new_tokens=7, gamma=3)
    assert 0 < wanted.acceptance < 1
    decode = mine.speculative()
    assert decode.whose == "tokens_that_stand is the library's; yours takes its place once it is accepted."
    assert torch.equal(decode(target, draft, src, max_new_tokens=7, gamma=3).ids, wanted.ids)
    assert mine.keep("tokens_that_stand", exercises.get("22.1").reference)
    decode = mine.speculative()
    assert decode.whose == "tokens_that_stand is yours."
    found = decode(target, draft, src, max_new_tokens=7, gamma=3)
    assert torch.equal(found.ids, wanted.ids) and found.rounds == wanted.rounds


def test_the_learners_tokens_may_come_as_a_tensor_and_are_asked_for():
    asked = []

    def first_of_the_targets(drafted, checked, eos_id):
        asked.append((len(drafted), len(checked), eos_id))
        drafted.clear()
        return torch.tensor(checked[:1])

    target = factories.make_model(0, scale=2.0)
    decode = speculating.speculating_with({"tokens_that_stand": first_of_the_targets})
    found = decode(target, target, torch.tensor([[3, 4, 2]]), max_new_tokens=5, gamma=2)
    assert torch.equal(found.ids, tl.greedy_decode(target, torch.tensor([[3, 4, 2]]), max_new_tokens=5))
    assert {drafted + 1 for drafted, _, _ in asked} == {checked for _, checked, _ in asked}
    assert found.tokens_per_call == 1
