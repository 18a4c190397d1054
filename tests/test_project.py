"""The README, the commands and the settings agree with the tree."""

from __future__ import annotations

import ast
import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml  # JupyterLab comes with it
from packaging.requirements import Requirement

import transformer_lib
from transformer_lib.course.notebooks import NOTEBOOKS, Notebook

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
COURSE = ROOT / "transformer_lib" / "course"
BINARY = {".png", ".gif", ".jpg", ".gz", ".safetensors", ".npz", ".ico", ".woff2"}
MACHINE_PATH = re.compile(r"(?<![\w.~$}])(/(?:home|root|work|tmp|Users|mnt)/\w|[A-Z]:\\+Users\b)")
WITH_JUPYTERLAB = {"IPython", "bs4", "jinja2", "nbclient", "nbconvert", "nbformat", "traitlets"}
COMES_WITH = {"PIL": "matplotlib", "traitlets": "ipywidgets", "IPython": "ipywidgets"}  # they cannot do without


def tracked_files() -> list[Path]:
    """Return the project's files as git lists them (new ones included), or all that are not hidden without git."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        names = [path for path in found if not any(part.startswith(".") for part in path.parts)]
    else:
        names = [Path(name) for name in listed.split("\0") if name]
    return sorted(ROOT / name for name in names if (ROOT / name).is_file())


def text_of(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def readme() -> str:
    return text_of(ROOT / "README.md")


def read_requirements(name: str) -> list[Requirement]:
    lines = [line.split("#")[0].strip() for line in text_of(ROOT / name).splitlines()]
    return [Requirement(line) for line in lines if line]


def settings() -> dict:
    return tomllib.loads(text_of(ROOT / "pyproject.toml"))


def extra(*names: str) -> list[Requirement]:
    """What extras ask for; "core" is what the library itself does."""
    project = settings()["project"]
    extras = {"core": project["dependencies"]} | project["optional-dependencies"]
    return [Requirement(line) for name in names for line in extras[name]]


def recipe(target: str) -> list[str]:
    """The commands of one target of the Makefile, as one would type them where the environment is active."""
    lines = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text_of(ROOT / "Makefile"), re.MULTILINE)[1]
    return [line.strip().replace("$(BIN)/", "").replace("$(WORKERS)", "2") for line in lines.splitlines()]


def test_no_text_names_a_path_of_one_machine():
    files = [path for path in tracked_files() if path.suffix not in BINARY]
    assert ROOT / "README.md" in files
    found = [f"{path.relative_to(ROOT)}: {hit}" for path in files for hit in MACHINE_PATH.findall(text_of(path))]
    assert found == []


@pytest.mark.parametrize("parts", [("/ho", "me/ann/x"), ("'/tm", "p/x'"), ("C:\\Us", "ers\\ann"), ("(/Us", "ers/a)")])
def test_a_machine_path_is_noticed(parts):
    assert MACHINE_PATH.search("".join(parts))


@pytest.mark.parametrize("text", ["/usr/bin/chromium", "https://example.org/home/x", "the /home page", "~/x"])
def test_other_paths_are_not(text):
    assert not MACHINE_PATH.search(text)


def test_text_files_end_lines_with_lf():
    assert [path.name for path in tracked_files() if path.suffix not in BINARY and b"\r" in path.read_bytes()] == []


def map_row(entry: Notebook) -> str:
    """Return a row of the map: a link where the notebook is written, else the word planned."""
    there = (ROOT / "notebooks" / entry.filename).is_file()
    name = f"[{entry.title}](notebooks/{entry.filename})" if there else f"{entry.title} (planned)"
    return f"| {entry.id} | {name} | {entry.minutes} | {entry.builds} |"


def test_the_map_in_the_readme_is_true():
    rows = [line for line in readme().splitlines() if re.match(r"\| (\d\d|A) \|", line)]
    assert rows == [map_row(entry) for entry in NOTEBOOKS]


def test_each_notebook_is_on_the_map():
    known = {entry.filename for entry in NOTEBOOKS}
    assert {path.name for path in (ROOT / "notebooks").glob("*.ipynb")} <= known


def test_links_in_the_readme_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", readme())
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []


def test_the_commands_of_the_readme_exist():
    makefile = text_of(ROOT / "Makefile")
    commands = set(re.findall(r"(?:^|`)make (\w+)", readme(), re.MULTILINE))
    assert {"lab", "test"} <= commands
    assert [name for name in sorted(commands) if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []


def test_the_page_for_contributors_says_what_make_test_and_make_quick_run():
    text = text_of(ROOT / "CONTRIBUTING.md")
    whole = [line for line in recipe("lint") + recipe("test") + recipe("quick") if "$(NN)" not in line]
    assert [line for line in whole if line not in text] == []
    assert "make quick NN=03" in text


def test_quick_checks_come_first_and_everywhere_alike():
    jobs = yaml.safe_load(text_of(ROOT / ".github" / "workflows" / "test.yml"))["jobs"]
    assert "make quick" in [step.get("run") for step in jobs.pop("quick")["steps"]]
    assert {job["needs"] for job in jobs.values()} == {"quick"}
    repositories = yaml.safe_load(text_of(ROOT / ".pre-commit-config.yaml"))["repos"]
    assert {repository["repo"] for repository in repositories} == {"local"}  # nothing is fetched
    hooks = [hook["entry"].replace(" --force-exclude", "") for entry in repositories for hook in entry["hooks"]]
    assert [hook for hook in hooks if not any(line.startswith(hook) for line in recipe("lint"))] == []


# --- What is required, and what is installed -----------------------------------------------------------------------


def test_a_learner_installs_the_library_and_the_course():
    def ranges(wanted):
        return sorted(str(requirement) for requirement in wanted)

    assert ranges(read_requirements("requirements.txt")) == ranges(extra("core", "course"))


def test_each_requirement_has_a_range_and_a_reason():
    for line in text_of(ROOT / "requirements.txt").splitlines():
        assert line.startswith("#") or re.search(r">=.+,<.+ # \w+", line), line
    everything = extra("core", *settings()["project"]["optional-dependencies"])
    for wanted in everything:
        assert wanted.name == "transformer_lib" or {clause.operator for clause in wanted.specifier} == {">=", "<"}


def test_the_lock_is_within_the_ranges_and_names_no_address():
    exact = {wanted.name: next(iter(wanted.specifier)).version for wanted in read_requirements("requirements.lock")}
    for wanted in extra("core", *settings()["project"]["optional-dependencies"]):
        if wanted.name != "transformer_lib":
            assert exact[wanted.name.lower().replace("_", "-")] in wanted.specifier
    lock = text_of(ROOT / "requirements.lock")
    assert "//" not in lock
    newest = settings()["project"]["requires-python"].partition("<")[2]
    assert re.search(rf"^torch==\S+ ; python_full_version < '{newest}'", lock, re.MULTILINE)


def test_the_version_stands_in_one_place():
    project = settings()["project"]
    assert "version" in project["dynamic"]
    cited = yaml.safe_load(text_of(ROOT / "CITATION.cff"))
    assert (cited["version"], cited["license"]) == (transformer_lib.__version__, project["license"])
    assert [author["name"] for author in cited["authors"]] == [author["name"] for author in project["authors"]]


def imported_outside(files) -> set[str]:
    imported = set()
    for file in files:
        for node in ast.walk(ast.parse(text_of(file))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    return {
        COMES_WITH.get(name, name) for name in imported - set(sys.stdlib_module_names) - {"transformer_lib", "studies"}
    }


def test_each_part_imports_only_what_it_requires():
    package = ROOT / "transformer_lib"
    files, course, teaching = (set(folder.rglob("*.py")) for folder in (package, COURSE, COURSE / "teaching"))
    studies = set((ROOT / "studies").rglob("*.py"))
    measured = {ROOT / "studies" / "multi30k.py"}  # only who makes its table anew needs more
    served = {package / "decoding" / name for name in ("server.py", "_front.py")}
    for part, names, comes_along in (
        (files - course - served, ["core"], set()),
        (served, ["core", "serve"], set()),
        (course - teaching, ["core", "course"], {"jupyterlab_server"}),  # JupyterLab stands on it
        (studies - measured, ["core", "course"], set()),
        (measured, ["core", "course", "bench"], set()),
        (teaching, ["core", "course", "slides", "teach"], WITH_JUPYTERLAB),
    ):
        assert imported_outside(part) - {wanted.name.lower() for wanted in extra(*names)} <= comes_along


def test_ci_runs_every_supported_python():
    assert settings()["project"]["requires-python"] == ">=3.11,<3.15"
    workflow = text_of(ROOT / ".github" / "workflows" / "test.yml")
    assert set(re.findall(r'"(3\.\d+)"', workflow)) == {"3.11", "3.12", "3.13", "3.14"}


def test_the_example_of_the_package_runs():
    found = doctest.testmod(transformer_lib, optionflags=doctest.ELLIPSIS)
    assert found.attempted >= 10 and found.failed == 0


def test_each_file_of_tests_has_a_name_of_its_own():
    names = sorted(path.name for path in (ROOT / "tests").rglob("test_*.py"))
    assert len(names) == len(set(names)), "pytest imports test files by their names alone"
