"""The command behind `python -m transformer_lib train`: a translator, trained on a corpus by the clock, and scored."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import torch

from ..training import distributed
from .arguments import folder_problem, make_parser, parse
from .learning import learn
from .preparation import prepare
from .scores import report

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Train, or go on training, and score; return 0, or 130 when one process alone was stopped from the keyboard.

    Args:
        argv: the words after the command's name; by default those it was called with.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    arguments = parse(argv)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    device = _device(arguments.device)
    with distributed.process_group("nccl" if device.type == "cuda" else "gloo"):
        first = distributed.rank() == 0
        problem = distributed.from_first(folder_problem(arguments) if first else None)
        if problem is not None:
            make_parser().error(problem)
        data = prepare(arguments)
        learned = learn(arguments, data, device)
    if learned.history.interrupted:
        if first:
            print("\nstopped; the same command goes on from the last checkpoint", flush=True)
        return 130
    if first:
        report(arguments, argv, data, learned)
    return 0


def _device(name: str) -> torch.device:
    """Return the device of this process: with several GPUs, each process has its own."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    device = torch.device(name, int(os.environ.get("LOCAL_RANK", 0))) if name == "cuda" else torch.device(name)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device
