"""The options of the command line, and whether a run's folder was begun with the same ones."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from .._files import write_atomically
from ..data.corpora import CORPORA
from ..training.options import TrainingOptions, may_change
from ..training.same_run import first_difference

MODELS = ("ours", "torch")
NORMS = ("pre", "post")
# Options of `train` that the command says in its own way: --minutes, --out, --quiet, and --epochs beside --minutes.
SPELLED_OTHERWISE = ("time_limit", "checkpoint", "progress", "epochs")
# What may change when a run goes on: of `train`'s options those that may there, and what is not about learning.
MAY_CHANGE = (
    *(name for name in may_change() if name not in SPELLED_OTHERWISE),
    *("epochs", "minutes", "out", "download", "device", "threads", "beam", "length_penalty", "quiet"),
    *("run", "command"),  # of the parser, no options
)


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Names the defaults, where there are any."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        none = action.default is None or action.default is False
        return action.help if none else super()._get_help_string(action)


def add_train(commands: Any) -> argparse.ArgumentParser:
    """Add `train` to the parser's commands and return its parser; every option's default is in its help."""
    parser = commands.add_parser(
        "train",
        formatter_class=_Help,
        help="train a translator and score it",
        description="Train an English-to-German translator and score it. The same command goes on where it stopped.",
    )
    _add_run(parser)
    _add_model(parser.add_argument_group("model"))
    _add_learning(parser.add_argument_group("learning"))
    return parser


def add_translate(commands: Any) -> argparse.ArgumentParser:
    """Add `translate` to the parser's commands and return its parser."""
    parser = commands.add_parser(
        "translate",
        formatter_class=_Help,
        help="translate English sentences into German",
        description="Translate English sentences into German, by default with the translator of the context corpus; "
        "without any sentence, those on standard input, one a line.",
    )
    add = parser.add_argument
    add("texts", nargs="*", metavar="SENTENCE", help="such as 'The man saw the bank near the river.'")
    add(
        "--run",
        dest="run_folder",
        metavar="FOLDER",
        type=Path,
        help="folder of a run of `train`",
    )
    add("--beam", type=_positive(int), default=1, help="width of the beam search; 1 is greedy decoding")
    return parser


def add_chat(commands: Any) -> argparse.ArgumentParser:
    """Add `chat` to the parser's commands and return its parser."""
    parser = commands.add_parser(
        "chat",
        formatter_class=_Help,
        help="talk with a language model",
        description="Talk with a language model that was taught to answer: what is typed is answered line by line.",
    )
    add = parser.add_argument
    add(
        "folder", metavar="FOLDER", type=Path, help="with config.json, *.safetensors, tokenizer.json, as Hugging Face's"
    )
    add("--system", metavar="TEXT", help="what the model is told before the first line")
    add("--temperature", type=_fraction_of(None), default=0.0, help="0 takes the likeliest token, more draws one")
    add("--top-p", type=_positive(float), help="draw from the likeliest tokens of this probability together")
    add("--max-new-tokens", type=_positive(int), default=512, help="of one answer")
    add("--seed", type=_seed, default=0, help="of the draws")
    return parser


def training_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options of `tl.train` that the command was given.

    Raises:
        TypeError, ValueError: one is out of range, or --path fast for another model.
    """
    minutes = arguments.minutes
    options = {name: getattr(arguments, name) for name in (*_OPTIONS, "epochs")}
    options |= {"time_limit": None if minutes is None else 60 * minutes, "progress": not arguments.quiet}
    TrainingOptions(**options)
    if arguments.path == "fast" and arguments.model != "ours":
        raise ValueError(f"--path must be readable with --model {arguments.model}, got fast")
    return options


def _add_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--corpus", choices=CORPORA, default="context", help="multi30k is read from the folder in MULTI30K_DIR")
    add("--download", action="store_true", help="fetch missing files of multi30k into that folder")
    add("--out", type=Path, required=True, metavar="FOLDER", help="folder for checkpoints, translations and scores")
    ends = parser.add_mutually_exclusive_group(required=True)
    ends.add_argument("--minutes", type=_positive(float), help="stop after this many minutes, evaluations included")
    ends.add_argument("--epochs", type=_positive(int), help="passes over the training pairs")
    add("--seed", type=_seed, default=0, help="of the weights, of dropout, and of the order of the sentences")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto takes a GPU if there is one")
    add("--threads", type=_positive(int), help="of each process; PyTorch's choice if not given")
    add("--beam", type=_positive(int), default=5, help="width of the beam search beside greedy decoding")
    add("--length-penalty", type=_fraction_of(None), default=0.6, help="exponent α of the beam search's normaliser")
    add("--quiet", action="store_true", help="no progress bar")


def _add_model(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", choices=MODELS, default="ours", help="torch is torch.nn.Transformer in the same training loop")
    add("--vocab", type=_positive(int), default=8000, help="subwords, shared by both languages")
    add("--d-model", type=_positive(int), default=256, help="width of the vectors")
    add("--heads", type=_positive(int), default=4, help="heads per attention")
    add("--layers", type=_positive(int), default=3, help="layers of the encoder, and of the decoder")
    add("--d-ff", type=_positive(int), default=1024, help="width of the feed-forward network")
    add("--dropout", type=_fraction_of(1), default=0.2, help="probability")
    add("--norm", choices=NORMS, default="pre", help="LayerNorm before or after each sub-layer")


_OPTIONS = {entry.name: entry for entry in fields(TrainingOptions) if entry.name not in SPELLED_OTHERWISE}


def _add_learning(group: argparse._ArgumentGroup) -> None:
    add, types = group.add_argument, get_type_hints(TrainingOptions)
    for name, entry in _OPTIONS.items():
        kinds = _parsed_as(types[name])
        add(f"--{name.replace('_', '-')}", default=entry.default, help=entry.metadata["help"], **kinds)
    add("--max-tokens", type=_positive(int), default=4096, help="source and target tokens per batch, with padding")
    add(
        "--average",
        type=_fraction_of(1),
        default=0.999,
        help="decay of the weights' running average, which translates; 0: none",
    )
    add(
        "--patience",
        type=_at_least_zero,
        default=0,
        help="epochs in a row without a better validation loss, after which to end; 0: never",
    )


def _parsed_as(annotation: Any) -> dict[str, Any]:
    """Return what `add_argument` needs to read an option of this type."""
    if get_origin(annotation) is Literal:
        return {"choices": get_args(annotation)}
    kinds = [kind for kind in (annotation, *get_args(annotation)) if kind in (int, float)]  # float | None: float
    return {"type": kinds[0]}


def _positive(kind: type) -> Callable[[str], float]:
    def positive(text: str) -> float:
        value = kind(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"must be positive, got {text}")
        return value

    positive.__name__ = kind.__name__  # argparse names the type by it
    return positive


def _at_least_zero(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, got {text}")
    return value


_at_least_zero.__name__ = "int"  # argparse names the type by it


def _seed(text: str) -> int:
    value = _at_least_zero(text)
    if value >= 2**63:
        raise argparse.ArgumentTypeError(f"must be below 2^63, got {text}")
    return value


_seed.__name__ = "int"


def _fraction_of(limit: float | None) -> Callable[[str], float]:
    def number(text: str) -> float:
        value = float(text)
        if not value >= 0 or (limit is not None and not value < limit):
            raise argparse.ArgumentTypeError(f"must be at least 0{f' and below {limit}' if limit else ''}, got {text}")
        return value

    return number


def folder_problem(arguments: argparse.Namespace) -> str | None:
    """Return what is wrong with going on in `arguments.out`, or None, as for a folder where nothing was begun."""
    path = arguments.out / "config.json"
    if not path.exists():
        return None
    stored = {name: value for name, value in read_settings(path).items() if name not in MAY_CHANGE}
    difference = first_difference(stored, _kept(arguments), _defaults())
    if difference is None:
        return None
    name, old, new = difference
    option = "--" + name.replace("_", "-")
    return f"{option}: {arguments.out} was begun with {old}, got {new}; give the same, or another --out"


def _defaults() -> dict[str, Any]:
    """Return every option's default: what a folder was begun with by a version that did not have the option yet."""
    parser = add_train(argparse.ArgumentParser().add_subparsers())
    return {action.dest: action.default for action in parser._actions}


def read_settings(path: Path) -> dict[str, Any]:
    """Return the options that a run's folder was begun with.

    Raises:
        ValueError: the file is not one that `begin_folder` wrote.
    """
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} must be the options of a run as JSON, got: {error}") from None
    if not isinstance(settings, dict) or settings.get("model") not in MODELS:
        raise ValueError(f"{path} must be the options of a run, with a model among {', '.join(MODELS)}")
    return settings


def begin_folder(arguments: argparse.Namespace) -> None:
    """Write the options into `arguments.out`: from now on it goes on with the same alone."""
    write_atomically(arguments.out / "config.json", (json.dumps(_kept(arguments), indent=1) + "\n").encode())


def _kept(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the options that must stay the same."""
    return {name: value for name, value in vars(arguments).items() if name not in MAY_CHANGE}
