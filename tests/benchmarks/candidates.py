"""Which candidates take part in what, and the check that each of them really does the work."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch.utils.flop_counter import FlopCounterMode

from studies.speed import BASELINE, OURS

from .installed import Marian, XTransformers
from .measure import timed
from .peers import FUSED, Missing, Ours, Peer, Torch, TorchReadingOnce
from .work import BOS, EOS, Work

TRAINED: dict[str, Callable[[Work], Peer]] = {
    BASELINE: Torch,
    f"{BASELINE}, {FUSED}": lambda work: Torch(work, fused=True),
    f"{BASELINE}, {FUSED}, the paper's dropout": lambda work: Torch(work, fused=True, as_paper=True),
    "transformers MarianMT": Marian,
    "x-transformers XTransformer": XTransformers,
    f"{OURS}, readable path": lambda work: Ours(work, path="readable"),
    OURS: Ours,
    f"{OURS}, bfloat16": lambda work: Ours(work, precision="bfloat16"),
}
DECODING: dict[str, tuple[Callable[[Work], Peer], str]] = {
    BASELINE: (Torch, "recomputing"),
    f"{BASELINE}, source read once": (TorchReadingOnce, "greedy"),
    "transformers MarianMT": (Marian, "greedy"),
    "x-transformers XTransformer": (XTransformers, "greedy"),
    f"{OURS}, readable path": (lambda work: Ours(work, path="readable"), "greedy"),
    OURS: (Ours, "greedy"),
    "transformers MarianMT, beam": (Marian, "beam"),
    f"{OURS}, beam": (Ours, "beam"),
}


@dataclass
class Entry:
    """A candidate that was checked: what is timed, and what is known of it beforehand."""

    seconds: Callable[[], float]
    facts: dict[str, object]


@dataclass
class Entries:
    """The candidates of one kind of work by name, and why others are missing."""

    entries: dict[str, Entry] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, make: Callable[[], Entry]) -> None:
        """Make an entry, or remember why it is missing."""
        try:
            self.entries[name] = make()
        except Missing as error:
            self.missing[name] = str(error)


def training(work: Work) -> Entries:
    """Return the candidates of the training step."""
    result = Entries()
    for name, build in TRAINED.items():
        result.add(name, lambda build=build: trained(build(work)))
    return result


def decoding(work: Work) -> Entries:
    """Return the candidates of decoding."""
    result = Entries()
    for name, (build, way) in DECODING.items():
        result.add(name, lambda build=build, way=way: decoded(build(work), way))
    return result


def trained(peer: Peer) -> Entry:
    work, model = peer.work, peer.model
    before = {name: value.detach().clone() for name, value in model.named_parameters() if value.requires_grad}
    counter = FlopCounterMode(display=False)
    if work.compiled:  # the counter does not see into compiled code
        losses, _ = peer.train(2)
    else:
        with counter:
            losses, _ = peer.train(2)
    if not abs(losses[0] - math.log(work.vocabulary)) < 0.7:
        raise AssertionError(f"an untrained model guesses among {work.vocabulary} words; its loss was {losses[0]:.2f}")
    idle = [name for name, value in model.named_parameters() if name in before and torch.equal(value, before[name])]
    if idle:
        raise AssertionError(f"training left some parameters as they were: {idle}")

    def seconds() -> float:
        _, clock = peer.train(work.steps + 1)
        return (clock[-1] - clock[0]) / work.steps

    facts = {
        "note": _notes(peer.note, peer.training_note),
        "parameters": sum(value.numel() for value in before.values()),
        "counted_flops": counter.get_total_flops() // 2 or None,
    }
    return Entry(seconds, facts)


def decoded(peer: Peer, way: str) -> Entry:
    work, src = peer.work, peer.work.source()
    peer.model.eval()

    def decode() -> torch.Tensor:
        return getattr(peer, way)(src, work.new_tokens)

    ids = decode()
    if ids.shape != (len(src), 1 + work.new_tokens) or not (ids[:, 0] == BOS).all():
        raise AssertionError(f"expected bos and {work.new_tokens} tokens a sentence, got shape {tuple(ids.shape)}")
    if (ids[:, 1:] == EOS).any() or (ids[:, 1:] == BOS).all():
        raise AssertionError("expected words, and no end before the last step")
    return Entry(lambda: timed(decode), {"note": _notes(peer.note, peer.decoding_note)})


def _notes(*notes: str) -> str:
    return "; ".join(note for note in notes if note)
