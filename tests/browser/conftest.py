"""One JupyterLab and one browser for all browser tests; without Playwright or Chromium they skip.

CHROMIUM names the browser to use; BROWSER_SHOTS a folder for screenshots, of which none is made without it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import lab_driver
import pytest
import record_front

import built_site


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium, driven by Playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = lab_driver.chromium()
    if path is None:
        pytest.skip("no Chromium found: install one, or name it in CHROMIUM")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=lab_driver.ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(browser, tmp_path_factory) -> Iterator[tuple[str, Path, Path]]:
    """A JupyterLab: its address, the folder it shows (a copy of the course), and its private folder."""
    pytest.importorskip("jupyterlab", reason="JupyterLab is not installed")
    home, root = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("course")
    for folder in ("notebooks", "data"):
        if (lab_driver.REPOSITORY / folder).is_dir():
            ignored = shutil.ignore_patterns(".ipynb_checkpoints")
            shutil.copytree(lab_driver.REPOSITORY / folder, root / folder, ignore=ignored)
    port = lab_driver.free_port()
    process = lab_driver.start_server(sys.executable, home, root, port)
    try:
        if not lab_driver.answers(process, port):
            pytest.fail(f"JupyterLab did not start:\n{(home / 'log.txt').read_text(errors='replace')[-2000:]}")
        yield f"http://127.0.0.1:{port}", root, home
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def site(browser, tmp_path_factory) -> Path:
    """The reading site's folder; without a browser nothing is built."""
    return built_site.built(tmp_path_factory)


@pytest.fixture(scope="session")
def address(site) -> Iterator[str]:
    """The site as a web server shows it."""
    with record_front.served(site) as where:
        yield where


@pytest.fixture(scope="session")
def shots() -> Path | None:
    """The folder for screenshots, if somebody wants to look at them."""
    if not os.environ.get("BROWSER_SHOTS"):
        return None
    folder = Path(os.environ["BROWSER_SHOTS"])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def lab(browser, server, shots) -> lab_driver.Lab:
    """JupyterLab to drive."""
    address, root, _ = server
    # One context for all pages: JupyterLab's scripts are fetched and compiled once, and then come from its cache.
    context = browser.new_context(viewport={"width": 1100, "height": 1100})
    return lab_driver.Lab(context, address, root, shots)


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine(lab) -> Iterator[None]:
    """No request may go anywhere but to our own server."""
    yield
    assert lab.strangers == [], "requests left this machine"
