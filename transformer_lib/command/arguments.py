"""What the command can be told, and whether a folder was begun with the same."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from .._files import write_atomically
from ..data.corpora import CORPORA
from ..training.options import PRECISIONS
from ..training.schedules import SCHEDULES

MODELS = ("ours", "torch")
NORMS = ("pre", "post")
# What may change when a run goes on: it changes what is learned by rounding, and by what dropout draws, at most.
FREE = ("out", "download", "device", "threads", "beam", "length_penalty", "checkpoint_every", "quiet")


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Names the defaults, where there are any."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        none = action.default is None or action.default is False
        return action.help if none else super()._get_help_string(action)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser; every option's default is in its help."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib train",
        formatter_class=_Help,
        description="Train an English-to-German translator and score it. The same command goes on where it stopped.",
    )
    _add_run(parser)
    _add_model(parser.add_argument_group("model"))
    _add_learning(parser.add_argument_group("learning"))
    return parser


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options in `argv`, or end with a message that names a wrong one."""
    return make_parser().parse_args(argv)


def _add_run(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--corpus", choices=CORPORA, default="multi30k", help="multi30k is read from the folder in MULTI30K_DIR")
    add("--download", action="store_true", help="fetch missing files of multi30k into that folder")
    add("--out", type=Path, required=True, help="folder for checkpoints, translations and scores")
    ends = parser.add_mutually_exclusive_group(required=True)
    ends.add_argument("--minutes", type=_positive(float), help="train this long, evaluations included")
    ends.add_argument("--epochs", type=_positive(int), help="train so many passes")
    add("--seed", type=_at_least_zero, default=0, help="of the weights, of dropout, and of the order of the sentences")
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help="auto takes a GPU if there is one")
    add("--threads", type=_positive(int), help="of each process; PyTorch's choice if not given")
    add("--beam", type=_positive(int), default=5, help="width of the beam search beside greedy decoding")
    add("--length-penalty", type=_fraction_of(None), default=0.6, help="exponent α of the beam search's normaliser")
    add("--checkpoint-every", type=_positive(int), default=200, help="steps between checkpoints")
    add("--quiet", action="store_true", help="no progress bar")


def _add_model(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--model", choices=MODELS, default="ours", help="torch is torch.nn.Transformer in the same frame")
    add("--vocab", type=_positive(int), default=8000, help="subwords, shared by both languages")
    add("--d-model", type=_positive(int), default=256, help="width of the vectors")
    add("--heads", type=_positive(int), default=4, help="heads per attention")
    add("--layers", type=_positive(int), default=3, help="layers of the encoder, and of the decoder")
    add("--d-ff", type=_positive(int), default=1024, help="width of the feed-forward network")
    add("--dropout", type=_fraction_of(1), default=0.2, help="probability")
    add("--norm", choices=NORMS, default="pre", help="LayerNorm before or after each sub-layer")


def _add_learning(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--max-tokens", type=_positive(int), default=4096, help="source and target tokens per batch, with padding")
    add("--accumulate", type=_positive(int), default=1, help="parts of a batch, one after the other")
    add("--precision", choices=PRECISIONS, default="float32", help="of the forward pass; many CPUs are slow in 16 bits")
    add("--schedule", choices=SCHEDULES, default="cosine", help="of the learning rate")
    add("--learning-rate", type=_positive(float), default=1e-3, help="its peak; with --schedule paper a factor")
    add("--warmup-steps", type=_positive(int), default=400, help="until the peak")
    add("--label-smoothing", type=_fraction_of(1), default=0.1, help="ε")
    add("--clip-norm", type=_positive(float), default=1.0, help="longest gradient")
    add("--average", type=_fraction_of(1), default=0.999, help="decay of the averaged weights that translate; 0: none")
    add(
        "--patience",
        type=_at_least_zero,
        default=0,
        help="end after so many epochs without a better validation loss; 0: never",
    )


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
    stored, wanted = json.loads(path.read_text(encoding="utf-8")), _kept(arguments)
    for name in wanted.keys() | stored.keys():
        if wanted.get(name) != stored.get(name):
            option = "--" + name.replace("_", "-")
            return (
                f"{option}: {arguments.out} was begun with {stored.get(name)}, got {wanted.get(name)}; "
                "give the same, or another --out"
            )
    return None


def begin_folder(arguments: argparse.Namespace) -> None:
    """Write the options into `arguments.out`: from now on it goes on with the same alone."""
    write_atomically(arguments.out / "config.json", (json.dumps(_kept(arguments), indent=1) + "\n").encode())


def _kept(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the options that must stay the same."""
    return {name: value for name, value in vars(arguments).items() if name not in FREE}
