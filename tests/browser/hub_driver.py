"""The class's JupyterHub on this machine, and its people, each in a browser session of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import lab_driver

PASSWORD = "open-sesame"
CONFIG = Path(__file__).parent / "hub_config.py"
RECIPE = lab_driver.REPOSITORY / "docs" / "teaching" / "hub"
BIN = Path(sys.executable).parent
PROXY = "configurable-http-proxy"


def proxy_found() -> bool:
    return shutil.which(PROXY, path=search_path()) is not None


def search_path() -> str:
    return os.pathsep.join([str(BIN), os.environ.get("PATH", "")])


def make_course(folder: Path) -> Path:
    """Return a git repository with the first notebook, as a class would pull it."""
    (folder / "notebooks").mkdir(parents=True)
    shutil.copy(lab_driver.REPOSITORY / "notebooks" / "00_start_here.ipynb", folder / "notebooks")
    who = ["-c", "user.name=Course", "-c", "user.email=course@example.org"]
    for command in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-q", "-m", "The course"]):
        subprocess.run(["git", *command], cwd=folder, check=True, timeout=60)
    return folder


@dataclass
class Hub:
    """A running JupyterHub: its process, its address, and the class's folder."""

    process: subprocess.Popen
    address: str
    folder: Path

    @property
    def log(self) -> str:
        return (self.folder / "log.txt").read_text(errors="replace")

    def answers(self, seconds: float = 90) -> bool:
        """True once the hub answers; False when it ends or takes too long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.address}/hub/api/", timeout=5) as reply:
                    return "version" in json.load(reply)
            except (OSError, ValueError):
                time.sleep(0.2)
        return False

    def home(self, name: str) -> Path:
        """Return where somebody's files are."""
        return self.folder / "home" / name

    def stop(self) -> None:
        """The hub ends its people's servers before itself."""
        self.process.terminate()
        self.process.wait(60)


def start_hub(folder: Path, course: Path, students: list[str], teachers: list[str]) -> Hub:
    """JupyterHub by the class's configuration; its log is `folder`/log.txt."""
    (folder / "exchange").mkdir()
    (folder / "exchange").chmod(0o1777)
    for name, people in (("students", students), ("teachers", teachers)):
        (folder / f"{name}.txt").write_text("\n".join(people) + "\n")
    ports = [lab_driver.free_port() for _ in range(3)]
    own = {"COURSE": course, "CLASS": folder, "HUB_PASSWORD": PASSWORD, "HUB_PORTS": " ".join(map(str, ports))}
    command = [sys.executable, "-m", "jupyterhub", "-f", str(CONFIG)]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment(own), stdout=log, stderr=log)
    return Hub(process, f"http://127.0.0.1:{ports[0]}", folder)


def environment(own: dict) -> dict[str, str]:
    """Return the tester's environment without anything of Jupyter's, and with these variables."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "PYTEST"))}
    return inherited | {name: str(value) for name, value in own.items()} | {"PATH": search_path()}


def nbgrader(hub: Hub, name: str, *words: str) -> str:
    """Run nbgrader as the hub's settings have it for the teacher `name`; return what it said."""
    said = run_python(hub, name, "-m", "nbgrader", *words)
    assert "Exception while loading config" not in said, said  # after which it would continue with its default settings
    return said


def run_python(hub: Hub, name: str, *words: str) -> str:
    """Run Python as in a terminal of the teacher `name`; return what was written to stderr."""
    folders, home = os.pathsep.join(str(RECIPE / "jupyter" / role) for role in ("teacher", "everyone")), hub.home(name)
    own = {"HOME": home, "NBGRADER_EXCHANGE": hub.folder / "exchange", "JUPYTER_CONFIG_PATH": folders}
    home.mkdir(parents=True, exist_ok=True)  # where the teacher has not logged in
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=home, env=environment(own), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


def log_in(lab: lab_driver.Lab, hub: Hub, name: str):
    """From the hub's address over the login form to one's own Lab; returns the page, its kernel ready."""
    page = lab.context.new_page()
    page.set_default_timeout(60_000)
    page.on("request", lab.note)
    page.goto(hub.address)
    page.fill("#username_input", name)
    page.fill("#password_input", PASSWORD)
    lab.shoot(page, f"hub_login_{name}")
    page.click("#login_submit")
    page.wait_for_url(f"**/user/{name}/lab/**", wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    lab.wait_until_idle(page)
    return page
