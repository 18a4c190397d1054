"""Where the library's own data lies, and how files are written: whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent / "data"
# In a checkout (and an editable install) the data lies beside the package; a wheel has inside what the library reads.
DATA = _CHECKOUT if (_CHECKOUT / "context" / "train.tsv").is_file() else _PACKAGE / "_data"


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to a temporary file beside `path`, flush it to the disk, and move it into place.

    Where `path` is a link, the file that it leads to is replaced.
    """
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raise OSError if a file cannot be written at `path`, whose folder is made; a file that is there stays."""
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "a file cannot be written where a folder is", str(path))
    with tempfile.TemporaryFile(dir=path.parent):
        pass
