"""Pages as PDF, by a Chromium that is installed: it opens a file of this machine and prints it, and fetches nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
SECONDS = 180
NO_BROWSER = "no Chromium was found: install one, or name it in the environment variable CHROMIUM"


def chromium() -> str | None:
    """Return the browser that prints: CHROMIUM, or one found on the PATH; None where there is none."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def print_pdf(page: Path, pdf: Path, *, query: str = "", patience: int = 10) -> Path:
    """Print a page of this machine to a PDF file, and return that.

    Args:
        page: an HTML file.
        pdf: the file to write.
        query: what stands behind its address, such as "print-pdf".
        patience: seconds that its scripts are given.

    Raises:
        RuntimeError: if there is no Chromium, or it wrote nothing.
    """
    browser = chromium()
    if browser is None:
        raise RuntimeError(NO_BROWSER)
    address = page.resolve().as_uri() + (f"?{query}" if query else "")
    as_root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory(prefix="printing-", ignore_cleanup_errors=True) as profile:
        command = [browser, "--headless", *as_root, "--disable-gpu", f"--user-data-dir={profile}"]
        command += ["--no-pdf-header-footer", f"--virtual-time-budget={1000 * patience}"]
        command += [f"--print-to-pdf={pdf.resolve()}", address]
        pdf.unlink(missing_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    if not pdf.is_file() or not pdf.stat().st_size:
        raise RuntimeError(f"{Path(browser).name} wrote no PDF of {page}: {done.stderr.strip()[-500:]}")
    return pdf
