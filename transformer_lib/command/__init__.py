"""The command `transformer-lib`, also `python -m transformer_lib`: train a translator, translate, or chat.

On several processors: `torchrun --standalone --nproc-per-node 2 -m transformer_lib train …`
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

import torch

from .._machine import keep_freed_memory
from .._streams import STOPPED, as_a_command
from ..training import distributed
from .arguments import add_chat, add_train, add_translate, folder_problem, training_options
from .chatting import answer_lines, open_chat
from .learning import learn, model_config, saved_steps
from .lines import standard_input
from .preparation import prepare
from .scores import report
from .translating import FILES, open_translator, translate

__all__ = ["main", "make_parser"]


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command and of everything it can do."""
    parser = argparse.ArgumentParser(prog="transformer-lib", description="Train a translator, translate, or chat.")
    commands = parser.add_subparsers(required=True, metavar="{train,translate,chat}")
    add_train(commands).set_defaults(run=_train, command="train")
    translating = add_translate(commands)
    translating.set_defaults(run=_translate, command="translate")
    translating.epilog = FILES
    add_chat(commands).set_defaults(run=_chat, command="chat")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the words of a command line say, and return its exit status.

    Args:
        argv: the words after the command's name; by default those it was called with.

    Returns:
        0; 1 when a sentence could not be translated, or a line not answered; 130 when training was stopped from the
            keyboard.

    Raises:
        SystemExit: the words, a file or a model are wrong (2), or nobody reads the output (141).
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    parser = make_parser()
    with as_a_command():
        arguments = parser.parse_args(argv)
        try:
            code: int = arguments.run(arguments, argv)
        except BrokenPipeError:
            raise  # nobody reads the output: no error
        except (ValueError, TypeError, OSError, FloatingPointError) as error:
            parser.exit(2, f"{parser.prog} {arguments.command}: error: {error}\n")
    return code


def _utf_8_for_files() -> None:
    """Write files and pipes in UTF-8: they keep every letter, whatever the console can show."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")


def _chat(arguments: argparse.Namespace, argv: list[str]) -> int:
    _utf_8_for_files()
    return answer_lines(open_chat(arguments))


def _translate(arguments: argparse.Namespace, argv: list[str]) -> int:
    _utf_8_for_files()
    translator = open_translator(arguments.run_folder)
    kind, parts = ("sentence", [arguments.texts]) if arguments.texts else ("line", standard_input())
    translated = (line for part in parts for line in translate(translator, part, beam_size=arguments.beam))
    failed = False
    for number, line in enumerate(translated, start=1):
        print(line.text, flush=True)
        if line.problem:
            failed = True
            print(f"transformer-lib translate: {kind} {number}: {line.problem}", file=sys.stderr)
    return int(failed)


def _train(arguments: argparse.Namespace, argv: list[str]) -> int:
    training_options(arguments)
    model_config(arguments, arguments.vocab)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    keep_freed_memory()
    device, first = _device(arguments.device), True
    try:
        with distributed.process_group("nccl" if device.type == "cuda" else "gloo"):
            first = distributed.rank() == 0
            problem = distributed.from_first(folder_problem(arguments) if first else None)
            if problem is not None:
                raise ValueError(problem)
            data = prepare(arguments)
            learned = learn(arguments, data, device)
        stopped = learned.history.interrupted
        if first and not stopped:
            report(arguments, argv, data, learned)
    except KeyboardInterrupt:  # before or after training, or a second one during it
        stopped = True
    if stopped and first:
        steps = saved_steps(arguments.out)
        print(f"\nstopped; {steps} steps are saved, and the same command goes on from there", flush=True)
    return STOPPED if stopped else 0


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
