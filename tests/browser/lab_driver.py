"""JupyterLab in a real browser: a server of our own on this machine, and the few steps every test needs.

`lab.open(name)` opens a notebook of the server's folder, `lab.run_all(page)` runs it to the end; the functions
below find and use what is in it. Nothing of the user's own Jupyter configuration is read or written.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from nbclient import NotebookClient

REPOSITORY = Path(__file__).parents[2]
TOKEN = "course"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
QUIET = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
ERROR = '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"]'
ALL_HAVE_RUN = """() => {  // asked of the model: a folded solution shows no prompt
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells].filter(cell => cell.type === 'code');
    return cells.length && cells.every(cell => cell.executionCount);
}"""

IN_PLACE_OF_THIS = """async path => {
    const {shell, commands} = window.jupyterapp, shown = shell.currentWidget;
    await shown.context.sessionContext.shutdown();
    shown.content.model.dirty = false;  // else it asks whether to save
    shown.close();
    const {content} = await commands.execute('docmanager:open', {path});
    await content.parent.context.sessionContext.ready;
}"""


class Lab:
    """A running JupyterLab in a browser; `strangers` are the requests that would have left this machine."""

    def __init__(self, context, address: str, root: Path, shots: Path | None) -> None:
        self.context, self.address, self.root, self.shots = context, address, root, shots
        self.strangers: list[str] = []

    def open(self, name: str):
        """Return a page with the notebook, its kernel ready."""
        page = self.context.new_page()
        page.set_default_timeout(60_000)
        page.on("request", self.note)
        page.goto(f"{self.address}/lab/tree/{name}?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.wait_until_idle(page)
        return page

    def show(self, page, name: str) -> None:
        """The notebook in a page that shows another, which is closed, its kernel too; saves a start of JupyterLab."""
        page.evaluate(IN_PLACE_OF_THIS, name)
        page.wait_for_selector(".jp-Notebook .jp-Cell >> visible=true")
        self.wait_until_idle(page)

    def run_all(self, page, seconds: float = 600) -> None:
        """Run All Cells, after the stored outputs are cleared; returns when every code cell has run."""
        self.menu(page, "Edit", "editmenu:clear-all")
        self.menu(page, "Run", "runmenu:run-all")
        # Not at every frame, as is the default: drawing them took the browser as long as the kernel took to run.
        page.wait_for_function(ALL_HAVE_RUN, timeout=seconds * 1000, polling=250)
        self.wait_until_idle(page, seconds)

    def close(self, page) -> None:
        """Close a page and end the kernel of its notebook, which would keep its memory as long as the server runs."""
        page.evaluate("window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
        page.close()

    def restart_kernel(self, page) -> None:
        """Kernel menu, Restart; returns when the new one is ready."""
        self.menu(page, "Kernel", "kernelmenu:restart")
        page.locator(".jp-Dialog .jp-mod-accept").click()
        page.wait_for_selector(".jp-Dialog", state="detached")
        page.wait_for_timeout(1000)  # the status bar still shows the old kernel's state
        self.wait_until_idle(page)

    def wait_until_idle(self, page, seconds: float = 60) -> None:
        """The status bar tells; the toolbar shows idle too early."""
        page.wait_for_selector("#jp-main-statusbar >> text=/Python 3.*\\| Idle/", timeout=seconds * 1000)

    def menu(self, page, name: str, command: str) -> None:
        page.locator(".lm-MenuBar-item", has_text=name).first.click()
        page.locator(f'.lm-Menu [data-command="{command}"]').first.click()

    def shoot(self, target, name: str) -> None:
        """Return a screenshot of a page or of one element, where somebody wants to look at it."""
        if self.shots is not None:
            target.screenshot(path=self.shots / f"{name}.png")

    def use_theme(self, page, theme: str) -> None:
        """Switch to a theme of THEMES, as the Settings menu would."""
        command = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
        page.evaluate(command, THEMES[theme])
        page.wait_for_function(f"document.body.dataset.jpThemeName === '{THEMES[theme]}'")
        page.wait_for_timeout(300)  # the new style sheet is applied

    def note(self, request) -> None:
        """Remember a request that would leave this machine."""
        parts = urlsplit(request.url)
        if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
            self.strangers.append(request.url)


def store_notebook(root: Path, name: str, *sources: str) -> str:
    """Write a notebook of these code cells into the server's folder, executed; return its name there."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    notebook.metadata.pop("widgets", None)
    (root / "notebooks" / name).write_text(nbformat.writes(notebook), encoding="utf-8")
    return f"notebooks/{name}"


def says(page, words: str) -> None:
    """Wait until a widget's line of text holds these words."""
    page.locator("[role=status]", has_text=words).first.wait_for(timeout=15_000)


def cell(page, text: str):
    """Return the first code cell whose source, or rendered text, holds this."""
    return page.locator(".jp-Notebook .jp-Cell", has_text=text).first


def rewrite_and_run(lab: Lab, page, found, source: str) -> str:
    """Replace the source of a cell, run it with Shift+Enter, and return what it wrote."""
    found.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(source)
    return run_cell(lab, page, found)


def run_cell(lab: Lab, page, found) -> str:
    """Run one cell by Shift+Enter and return what it wrote."""
    found.locator(".cm-content").click()
    before = found.locator(".jp-InputPrompt").first.inner_text()
    page.keyboard.press("Shift+Enter")
    deadline = time.monotonic() + 60
    while found.locator(".jp-InputPrompt").first.inner_text() in (before, "[*]:"):
        if time.monotonic() > deadline:
            raise TimeoutError("the cell did not finish within a minute")
        page.wait_for_timeout(100)
    lab.wait_until_idle(page)
    return output_of(found)


def output_of(found) -> str:
    """Return what a cell wrote, as text; also for a cell out of sight, which the browser leaves unrendered."""
    return found.locator(".jp-Cell-outputArea").text_content()


def errors(page) -> list[str]:
    """Return what cells wrote as errors."""
    return page.locator(ERROR).all_inner_texts()


def press_on(page, handle, *keys: str) -> None:
    """Give a control the focus and press keys."""
    handle.scroll_into_view_if_needed()
    handle.focus()
    for key in keys:
        page.keyboard.press(key)


def changed(page, found, before: str, seconds: float = 10) -> bool:
    """Return whether the markup of an element becomes another one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found.inner_html() != before:
            return True
        page.wait_for_timeout(20)
    return False


def chromium() -> str | None:
    """Return the browser to drive: CHROMIUM, or one found on the PATH."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def environment(home: Path) -> dict[str, str]:
    """Return the server's environment: its own Jupyter folders and progress file, one thread."""
    jupyter = {f"JUPYTER_{kind}_DIR": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "RUNTIME")}
    lab = {f"JUPYTERLAB_{kind}_DIR": str(home / kind.lower()) for kind in ("SETTINGS", "WORKSPACES")}
    own = {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(REPOSITORY),
        "IPYTHONDIR": str(home / "ipython"),
        "TRANSFORMER_COURSE_PROGRESS": str(home / "progress.json"),
        "TRANSFORMER_COURSE_MINE": str(home / "mine"),
        "TRANSFORMER_COURSE_STATIC": "",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "PYTEST"))}
    return inherited | jupyter | lab | own


def write_settings(home: Path) -> None:
    """No news, no update check, no autosave."""
    folder = home / "config" / "labconfig"
    folder.mkdir(parents=True)
    (folder / "default_setting_overrides.json").write_text(json.dumps(QUIET))


def start_server(python: str, home: Path, root: Path, port: int) -> subprocess.Popen:
    """JupyterLab on 127.0.0.1 showing `root`; its log is `home`/log.txt."""
    write_settings(home)
    return _start([python, "-m", "jupyterlab", f"--ServerApp.root_dir={root}"], home, root, port)


def start_course(python: str, home: Path, port: int) -> subprocess.Popen:
    """What `make lab` does, with the learner's folder `home`/mine; JupyterLab shows `home`."""
    if not (home / "config").exists():
        write_settings(home)
    return _start([python, "-m", "transformer_lib.course.copies", "lab"], home, home, port)


def _start(command: list[str], home: Path, folder: Path, port: int) -> subprocess.Popen:
    options = ["--no-browser", "--ip=127.0.0.1", f"--port={port}", "--allow-root", "--ServerApp.port_retries=0"]
    options += [f"--IdentityProvider.token={TOKEN}"]
    options += ["--LabApp.expose_app_in_browser=True"]  # to switch themes without a walk through menus
    with (home / "log.txt").open("ab") as log:
        return subprocess.Popen([*command, *options], cwd=folder, env=environment(home), stdout=log, stderr=log)


def answers(process: subprocess.Popen, port: int, seconds: float = 90) -> bool:
    """True once the server answers; False when it ends or takes too long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status?token={TOKEN}", timeout=5).close()
            return True
        except OSError:
            time.sleep(0.2)
    return False
