"""The command `transformer-lib`, also `python -m transformer_lib`: train a translator, or translate with one.

On several processors: `torchrun --standalone --nproc-per-node 2 -m transformer_lib train …`
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import torch

from .._machine import keep_freed_memory
from ..training import distributed
from .arguments import add_train, add_translate, folder_problem, training_options
from .learning import learn, model_config
from .preparation import prepare
from .scores import report
from .translating import translate

__all__ = ["main", "make_parser"]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command and of everything it can do."""
    parser = argparse.ArgumentParser(prog="transformer-lib", description="Train a translator, or translate with one.")
    commands = parser.add_subparsers(required=True, metavar="{train,translate}")
    add_train(commands).set_defaults(run=_train, command="train")
    add_translate(commands).set_defaults(run=_translate, command="translate")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the words of a command line say; return 0, or 130 when training was stopped from the keyboard.

    Args:
        argv: the words after the command's name; by default those it was called with.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser()
    arguments = parser.parse_args(argv)
    try:
        code: int = arguments.run(arguments, argv)
    except (ValueError, TypeError, OSError, FloatingPointError) as error:
        parser.exit(2, f"{parser.prog} {arguments.command}: error: {error}\n")
    return code


def _translate(arguments: argparse.Namespace, argv: list[str]) -> int:
    texts = arguments.texts or [line.strip() for line in sys.stdin]
    for line in translate(texts, arguments.run_folder, beam_size=arguments.beam):
        print(line)
    return 0


def _train(arguments: argparse.Namespace, argv: list[str]) -> int:
    training_options(arguments)
    model_config(arguments, arguments.vocab)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    device = _device(arguments.device)
    with distributed.process_group("nccl" if device.type == "cuda" else "gloo"):
        first = distributed.rank() == 0
        problem = distributed.from_first(folder_problem(arguments) if first else None)
        if problem is not None:
            raise ValueError(problem)
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
    if name == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device must be cpu or auto where no CUDA device is found, got cuda")
    device = torch.device(name, int(os.environ.get("LOCAL_RANK", 0))) if name == "cuda" else torch.device(name)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return device
