"""What `pip install` gives: the library with the data that it reads. The course is in the repository alone."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

import transformer_lib as tl
from transformer_lib.data.corpora import CONTEXT_SPLITS
from transformer_lib.decoding.translator import TRAINED

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
COURSE = ROOT / "transformer_lib" / "course"
NOTHING_OF = {"course", "exercises", "notebooks", "quiz", "studies", "teaching", "tests"}
DATA = {"README.md", "digits.npz", *(f"context/{split}.tsv" for split in CONTEXT_SPLITS)}
DATA |= {path.relative_to(tl.DATA).as_posix() for path in TRAINED.values()}

# Runs where nothing but the library's own dependencies can be imported; filelock and packaging come with those, too.
WITHOUT_THE_COURSE = """
import sys

MISSING = {"IPython", "ipywidgets", "jupyterlab", "matplotlib", "nbformat", "nbval", "platformdirs", "traitlets"}


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING or name == "transformer_lib.course.quiz":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Refuse())
sys.modules["ipywidgets"] = None  # this is how importlib.util.find_spec, too, finds none
import transformer_lib as tl

print(tl.__file__)
print(tl.DATA)
print(dir(tl) == sorted(tl.__all__), hasattr(tl, "quizzes"), "torch._dynamo" in sys.modules)
"""

# Afterwards: each function that reads data, the command, a training, every module, and what help(tl) shows.
THE_LIBRARY = """
import importlib, pkgutil, pydoc
from transformer_lib.command import main

print(*tl.load_trained("context").translate(["The man saw the bank near the river."]))
main(["translate", "The man saw the bank near the river."])
print(len(tl.load_digits().labels), sum(map(len, tl.load_corpus("context").splits.values())))
pairs = tl.load_corpus("context")["train"][:29]
words = [tl.WordTokenizer.from_texts(texts) for texts in zip(*((pair.src, pair.tgt) for pair in pairs))]
sizes = {"src_vocab_size": len(words[0]), "tgt_vocab_size": len(words[1])}
model = tl.Transformer(tl.TransformerConfig(**sizes, d_model=20, n_heads=2, n_layers=1, d_ff=28))
mine = tl.Translator(model, *words)
print(len(tl.train(model, mine.batches(pairs, batch_size=7), epochs=2, progress=False).loss))
print(*tl.load_trained("draft").translate(["The man saw the bank near the river."]))
modules = [found.name for found in pkgutil.walk_packages(tl.__path__, "transformer_lib.")]
for module in modules:
    if module != "transformer_lib.__main__":
        importlib.import_module(module)
print(len(modules), any("course" in module for module in modules))
shown = [line.split() for line in pydoc.plain(pydoc.render_doc(tl)).splitlines()]
print([words[0] for words in shown if words[1:] == ["(package)"] or words[:1] in [[name] for name in tl.COURSE]])
"""

ASKED = """
for name in sys.argv[1:]:
    for ask in (f"tl.{name}", f"from transformer_lib import {name}"):
        try:
            exec(ask)
        except ImportError as error:
            print(type(error).__name__, error, "|", repr(error.__cause__))
"""


def run(code: str, *arguments: str, on: Path, folder: Path) -> list[str]:
    """Execute `code` in a new process that finds `transformer_lib` in the folder `on`, and return the lines printed."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("COV_")} | {"PYTHONPATH": str(on)}
    command = [sys.executable, "-P", "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def build(source: Path, kind: str, out: Path) -> Path:
    """Make a distribution as pip does, but with the build backend that is installed here: no network is needed."""
    call = f"import sys, hatchling.build; print(hatchling.build.build_{kind}(sys.argv[1]))"
    done = subprocess.run([sys.executable, "-c", call, out], cwd=source, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build(ROOT, "sdist", folder)) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    [unpacked] = (folder / "unpacked").iterdir()
    return unpacked


@pytest.fixture(scope="module")
def installed(source, tmp_path_factory) -> Path:
    """A folder with what the wheel holds, which was built from the source distribution."""
    folder = tmp_path_factory.mktemp("wheel")
    with ZipFile(build(source, "wheel", folder)) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


@pytest.fixture(scope="module")
def editable(tmp_path_factory) -> Path:
    """The same for an editable install of the repository."""
    folder = tmp_path_factory.mktemp("editable")
    with ZipFile(build(ROOT, "editable", folder)) as archive:
        archive.extractall(folder / "installed")
    return folder / "installed"


def contents(folder: Path) -> dict[str, bytes]:
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in files}


def metadata(folder: Path) -> email.message.Message:
    [file] = folder.glob("*.dist-info/METADATA")
    return email.message_from_string(file.read_text("utf-8"))


def test_the_wheel_is_the_library_with_the_data_that_it_reads(installed):
    package = contents(ROOT / "transformer_lib")
    library = {name: content for name, content in package.items() if not name.startswith("course/")}
    data = {f"_data/{name}": (ROOT / "data" / name).read_bytes() for name in DATA}
    assert len(library) < len(package) and "py.typed" in library
    assert contents(installed / "transformer_lib") == library | data
    assert sorted(path.name.partition("-")[0] for path in installed.iterdir()) == ["transformer_lib"] * 2


def test_nothing_of_the_course_and_no_answer_is_in_what_is_built(source, installed):
    solutions = {file.name for file in COURSE.rglob("*.py") if re.match(r"nb\d\d|bank_", file.name)}
    assert {"nb04.py", "bank_04.py"} <= solutions
    for folder in (source, installed):
        paths = [Path(name) for name in contents(folder)]
        assert [path for path in paths if NOTHING_OF & set(path.parts)] == []
        assert [path for path in paths if path.name in solutions or path.suffix == ".ipynb"] == []


def test_the_source_distribution_is_what_the_wheel_is_made_of(source, installed):
    data = {f"_data/{name}": content for name, content in contents(source / "data").items()}
    assert contents(source / "transformer_lib") | data == contents(installed / "transformer_lib")


def test_an_editable_install_points_to_the_repository_with_its_course(editable):
    [pointer] = editable.glob("*.pth")
    assert Path(pointer.read_text("utf-8").strip()) == ROOT
    assert [path for path in contents(editable) if not path.startswith("transformer_lib-")] == [pointer.name]


def test_dependencies_are_the_same_however_one_installs(installed, editable):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wheel, checkout = metadata(installed), metadata(editable)
    assert wheel.get_all("Requires-Dist") == checkout.get_all("Requires-Dist")
    assert set(checkout.get_all("Provides-Extra")) == set(project["optional-dependencies"])


@pytest.mark.slow
def test_what_is_installed_translates_trains_and_imports_without_the_course(installed, tmp_path):
    package = installed / "transformer_lib"
    splits = [(ROOT / "data" / "context" / f"{split}.tsv").read_text("utf-8") for split in CONTEXT_SPLITS]
    sentence = "The man saw the bank near the river."
    code = [path for path in package.rglob("*.py") if path != package / "__init__.py"]
    assert run(WITHOUT_THE_COURSE + THE_LIBRARY, on=installed, folder=tmp_path) == [
        str(package / "__init__.py"),
        str(package / "_data"),
        "True False False",  # torch's compiler, which takes over a second to load, waits until it is needed
        "Der Mann sah das Ufer beim Fluss.",
        "Der Mann sah das Ufer beim Fluss.",
        f"1797 {sum(text.count(chr(10)) - 1 for text in splits)}",
        "10",
        *tl.load_trained("draft").translate([sentence]),
        f"{len(code)} False",
        str(["by_hand", "command", "data", "decoding", "fast", "model", "training"]),
    ]


@pytest.mark.slow
def test_what_is_installed_says_where_the_course_is(installed, tmp_path):
    hint = "is part of the course, not of the installed library: `make lab` in the project's repository opens it"
    cause = "ModuleNotFoundError(\"No module named 'transformer_lib.course'\")"
    printed = run(WITHOUT_THE_COURSE + ASKED, *tl.COURSE, on=installed, folder=tmp_path)[3:]
    assert printed == [f"ImportError transformer_lib.{name} {hint} | {cause}" for name in tl.COURSE for _ in range(2)]


@pytest.mark.slow
def test_a_checkout_says_what_the_course_needs_where_that_is_missing(tmp_path):
    def hint(name: str, needs: str) -> str:
        what = f'{name} needs {needs}; in the folder of the course: pip install -e ".[course]"'
        return f"ImportError transformer_lib.{what} | ModuleNotFoundError(\"No module named '{needs}'\")"

    names = ("plotting", "exercises", "quiz")
    assert run(WITHOUT_THE_COURSE + ASKED, *names, on=ROOT, folder=tmp_path) == [
        str(ROOT / "transformer_lib" / "__init__.py"),
        str(ROOT / "data"),
        "True False False",
        *2 * [hint("plotting", "matplotlib")],
        *2 * [hint("exercises", "platformdirs")],
        *2 * ["ModuleNotFoundError No module named 'transformer_lib.course.quiz' | None"],  # a mistake of ours
    ]


def test_a_checkout_lists_the_course_and_has_it():
    assert set(dir(tl)) == {*tl.__all__, *tl.COURSE}
    assert [name for name in tl.COURSE if not hasattr(tl, name)] == []
