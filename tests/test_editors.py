"""The files for Binder, dev containers, VS Code and a class's hub agree with the requirements, README and tree."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml  # JupyterLab comes with it
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from traitlets.config import Config

from transformer_lib.course.mine import folder

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
HUB = ROOT / "docs" / "teaching" / "hub"
NEWS = "@jupyterlab/apputils-extension:announcements"


def text_of(*parts: str) -> str:
    return ROOT.joinpath(*parts).read_text(encoding="utf-8")


def read_json(*parts: str) -> dict:
    return json.loads(text_of(*parts))


def project() -> dict:
    return tomllib.loads(text_of("pyproject.toml"))["project"]


# --- Binder, dev containers, VS Code -------------------------------------------------------------------------------


def test_binder_takes_python_and_torch_as_the_project_does():
    wanted = yaml.safe_load(text_of(".binder", "environment.yml"))["dependencies"]
    torch = next(line for line in text_of("requirements.txt").splitlines() if line.startswith("torch"))
    [python], [found] = ([line for line in wanted if line.startswith(name)] for name in ("python=", "pytorch-cpu"))
    assert Requirement(found).specifier == Requirement(torch.split("#")[0]).specifier
    assert python.removeprefix("python=") in SpecifierSet(project()["requires-python"])


def test_binder_and_the_dev_container_install_as_the_readme_does():
    container = read_json(".devcontainer", "devcontainer.json")
    for step in (text_of(".binder", "postBuild"), container["postCreateCommand"]):
        assert re.search(r"python -m pip install .*-r requirements\.txt -e \.(\s|$)", step)  # no extra
        assert re.search(rf"""jupyter labextension disable ["']{NEWS}["']""", step)
    assert f'jupyter labextension disable "{NEWS}"' in text_of("README.md")
    assert container["image"].removeprefix("python:") in SpecifierSet(project()["requires-python"])


def test_the_editor_is_offered_the_same_extensions_everywhere():
    offered = read_json(".devcontainer", "devcontainer.json")["customizations"]["vscode"]["extensions"]
    assert offered == read_json(".vscode", "extensions.json")["recommendations"]
    assert "ms-toolsai.jupyter" in offered


@pytest.mark.skipif(os.name == "nt", reason="needs a shell, and the permission to be executed")
@pytest.mark.parametrize("script", [".binder/postBuild", "docs/teaching/hub/accounts.sh"])
def test_a_script_is_executable_and_can_be_read_by_its_shell(script):
    path = ROOT / script
    assert os.access(path, os.X_OK)
    shell = path.read_text("utf-8").splitlines()[0].removeprefix("#!")
    done = subprocess.run([shell, "-n", path], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_cell_for_colab_installs_the_clone_it_makes():
    cell = re.search(r"```\n(!git clone .*?)```", text_of("docs", "editors.md"), re.DOTALL)[1]
    [folder] = re.findall(r"<owner>/<repository> (\S+)$", cell, re.MULTILINE)
    assert f"%pip install -q -r {folder}/requirements.txt -e {folder}" in cell


def test_a_page_names_the_variable_that_moves_the_learners_folder(tmp_path, monkeypatch):
    [line] = re.findall(r"^(\w+)=~/my-transformer make lab$", text_of("docs", "editors.md"), re.MULTILINE)
    monkeypatch.setenv(line, str(tmp_path / "my-transformer"))
    assert folder() == tmp_path / "my-transformer"


def test_the_library_finds_its_data_from_any_folder(tmp_path):
    command = [sys.executable, "-c", "import transformer_lib as tl; print(len(tl.load_corpus('context').splits))"]
    own = os.environ | {"PYTHONPATH": str(ROOT)}  # what `pip install -e` comes to
    done = subprocess.run(command, cwd=tmp_path, env=own, capture_output=True, text=True, timeout=120)
    assert int(done.stdout) >= 3, done.stderr


# --- A class on JupyterHub -----------------------------------------------------------------------------------------


def dockerfile() -> str:
    return text_of("docs", "teaching", "hub", "Dockerfile")


def test_the_image_copies_what_is_there_and_installs_extras_that_exist():
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", dockerfile(), re.MULTILINE)
    copied = [word for line in lines for word in line.split()]
    assert {"requirements.txt", "pyproject.toml", "transformer_lib/__init__.py"} <= set(copied)  # the last: the version
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert set(re.findall(r'-e "\.\[(.+)\]"', dockerfile())) == {"hub"} <= project()["optional-dependencies"].keys()


def test_a_hub_can_load_the_settings_of_a_course_that_is_graded():
    extras = project()["optional-dependencies"]
    assert "transformer_lib[teach]" in extras["hub"]
    assert {"nbgrader", "latex2mathml"} <= {Requirement(line).name for line in extras["teach"]}


def test_the_image_starts_files_of_the_course():
    course = re.search(r"^WORKDIR (\S+)$", dockerfile(), re.MULTILINE)[1]
    started = re.findall(rf"{course}/(docs[\w./]+)", dockerfile())
    assert {"docs/teaching/hub/accounts.sh", "docs/teaching/hub/jupyterhub_config.py"} == set(started)
    assert all((ROOT / name).is_file() for name in started)


def read_config(file: Path, monkeypatch, **variables: object) -> Config:
    """Return what a configuration file sets, read as Jupyter's programs read it."""
    for name, value in variables.items():
        monkeypatch.setenv(name, str(value))
    config = Config()
    exec(compile(file.read_text("utf-8"), file, "exec"), {"get_config": lambda: config, "__file__": str(file)})
    return config


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Config:
    (tmp_path / "students.txt").write_text("ada\nben\n")
    (tmp_path / "teachers.txt").write_text("grace\n")
    return read_config(HUB / "jupyterhub_config.py", monkeypatch, CLASS=tmp_path)


def test_the_hub_lets_in_the_two_lists_and_nobody_else(hub):
    assert hub.Authenticator.allowed_users == {"ada", "ben", "grace"}
    assert hub.Authenticator.admin_users == {"grace"}
    assert "allow_all" not in hub.Authenticator


@pytest.mark.parametrize(("name", "role"), [("ada", "student"), ("grace", "teacher")])
def test_the_hub_gives_each_the_settings_of_their_role(hub, name, role):
    set_to = hub.Spawner.environment["JUPYTER_CONFIG_PATH"](SimpleNamespace(user=SimpleNamespace(name=name)))
    folders = [Path(folder) for folder in set_to.split(os.pathsep)]
    assert [folder.name for folder in folders] == [role, "everyone"]
    assert all(any(folder.iterdir()) for folder in folders)


def test_a_student_has_no_formgrader_and_everybody_the_same_course(hub, monkeypatch):
    settings = json.loads((HUB / "jupyter" / "student" / "jupyter_server_config.json").read_text())
    assert settings["ServerApp"]["jpserver_extensions"]["nbgrader.server_extensions.formgrader"] is False
    exchange = hub.Spawner.environment["NBGRADER_EXCHANGE"]
    shared = read_config(HUB / "jupyter" / "everyone" / "nbgrader_config.py", monkeypatch, NBGRADER_EXCHANGE=exchange)
    assert shared.Exchange.root == exchange and shared.CourseDirectory.course_id


def test_a_teacher_grades_at_home_and_sees_the_formgrader_inside_lab(monkeypatch):
    own = read_config(HUB / "jupyter" / "teacher" / "nbgrader_config.py", monkeypatch)
    assert Path(own.CourseDirectory.root).parent == Path.home()
    settings = json.loads((HUB / "jupyter" / "teacher" / "jupyter_server_config.json").read_text())
    headers = settings["ServerApp"]["tornado_settings"]["headers"]  # JupyterHub's own forbid every frame
    assert headers["Content-Security-Policy"] == "frame-ancestors 'self'"


def test_the_course_may_be_named_from_where_one_stands(hub, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = read_config(HUB / "jupyterhub_config.py", monkeypatch, CLASS=".", COURSE="course")
    assert parse_qs(urlsplit(found.Spawner.default_url).query)["repo"] == [(tmp_path / "course").as_uri()]
    assert found.Spawner.environment["NBGRADER_EXCHANGE"] == str(tmp_path / "exchange")


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_accounts_are_made_for_each_name_once_and_as_it_is_written(tmp_path):
    made = tmp_path / "made.txt"
    write = f'for name; do :; done; echo "$name" >>"{made}"'  # the last of the arguments
    for name, does in {"useradd": write, "chpasswd": "cat", "id": f'grep -qxF -e "$1" "{made}"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    made.touch()
    own = os.environ | {"CLASS": str(tmp_path), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    for students in ("axb\r\nben\r\n", "axb\na.b\nben\nbe"):  # the second without a last newline, after a late guest
        (tmp_path / "teachers.txt").write_text("grace")
        (tmp_path / "students.txt").write_text(students, newline="")
        subprocess.run([HUB / "accounts.sh"], env=own, check=True, capture_output=True, timeout=30)
    assert made.read_text().split("\n") == ["grace", "axb", "ben", "a.b", "be", ""]
    passwords = (tmp_path / "passwords.txt").read_text()
    assert re.fullmatch(r"(?:[a-z.]+:[0-9a-f]{12}\n){5}", passwords)


def test_the_first_page_of_a_server_is_the_first_notebook(hub):
    assert "00_start_here.ipynb" in hub.Spawner.default_url
    assert (ROOT / "notebooks" / "00_start_here.ipynb").is_file()
