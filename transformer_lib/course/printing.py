"""Pages as PDF, by a Chromium that is installed: it opens a file of this machine and prints it, and fetches nothing.

The browser is spoken to over its DevTools protocol, since its command line does not wait for a page's scripts.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
NO_BROWSER = "no Chromium was found: install one, or name it in the environment variable CHROMIUM"
A4 = {"paperWidth": 8.27, "paperHeight": 11.69}  # inches; a page that names a size of its own gets that
LARGEST = 1_000_000_000  # bytes of an answer
LOADED = "location.protocol === 'file:' && document.readyState === 'complete'"  # a new tab is an empty page at first


def chromium() -> str | None:
    """Return the browser that prints: CHROMIUM, or one found on the PATH; None where there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def print_pdf(page: Path, pdf: Path, *, query: str = "", ready: str = "true", seconds: float = 180) -> Path:
    """Print a page of this machine to a PDF file, and return that.

    Args:
        page: an HTML file.
        pdf: the file to write.
        query: what stands behind its address, such as "print-pdf".
        ready: an expression in JavaScript that becomes true when its scripts are done.
        seconds: after which it is given up.

    Raises:
        RuntimeError: if there is no Chromium, or it does not start, or the page is not ready in time.
    """
    address = page.resolve(strict=True).as_uri() + (f"?{query}" if query else "")
    with _browser(address, time.monotonic() + seconds) as socket:
        try:
            printing = asyncio.wait_for(_printed(socket, f"{LOADED} && ({ready})"), seconds)
            with ThreadPoolExecutor(max_workers=1) as thread:  # of its own: in a notebook a loop runs in ours
                data = thread.submit(asyncio.run, printing).result()
        except TimeoutError:
            raise RuntimeError(f"{page.name} was not ready to be printed after {seconds:g} seconds") from None
    pdf.write_bytes(data)
    return pdf


@contextmanager
def _browser(address: str, deadline: float) -> Iterator[str]:
    """Open an address in a browser of its own; gives the address of the page's DevTools."""
    program = chromium()
    if program is None:
        raise RuntimeError(NO_BROWSER)
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="printing-", ignore_cleanup_errors=True) as profile:
        command = [program, "--headless", *as_root, "--disable-gpu", "--disable-background-networking"]
        command += ["--remote-debugging-port=0", f"--user-data-dir={profile}", address]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            yield _devtools(Path(profile) / "DevToolsActivePort", process, deadline)
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _devtools(file: Path, process: subprocess.Popen[bytes], deadline: float) -> str:
    """Return the address of the first page's DevTools, once the browser has named its port."""
    while time.monotonic() < deadline and process.poll() is None:
        lines = file.read_text(encoding="utf-8").split() if file.exists() else []
        if len(lines) == 2:
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json/list", timeout=30) as answer:
                pages = [each for each in json.load(answer) if each["type"] == "page"]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise RuntimeError(f"{process.args[0]} did not start")  # type: ignore[index]


async def _printed(socket: str, ready: str) -> bytes:
    from tornado.websocket import websocket_connect

    connection = await websocket_connect(socket, max_message_size=LARGEST)

    async def ask(method: str, **given: Any) -> dict[str, Any]:
        await connection.write_message(json.dumps({"id": 1, "method": method, "params": given}))
        while True:
            heard = await connection.read_message()
            if heard is None:
                raise RuntimeError(f"the browser ended before it answered {method}")
            if "id" in (answer := json.loads(heard)):
                return dict(answer["result"])

    try:
        while not (await ask("Runtime.evaluate", expression=ready))["result"].get("value"):
            await asyncio.sleep(0.2)
        settings = {"preferCSSPageSize": True, "printBackground": True, **A4}
        return base64.b64decode((await ask("Page.printToPDF", **settings))["data"])
    finally:
        connection.close()
        while await connection.read_message() is not None:  # until it is closed on both sides
            pass
