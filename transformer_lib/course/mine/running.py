"""Counts which of the learner's parts really run, and says why one does not."""

from __future__ import annotations

import ast
import re
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO

import torch

from .folder import FILE, current, folder
from .parts import ELSEWHERE
from .stacked import AssembledStack
from .translating import MyTranslator
from .wrapping import counted

SENTENCE, GERMAN = "The man saw the bank near the river.", "Der Mann sah das Ufer beim Fluss."
# Which part would call another one; all the other parts are called by the model itself.
_ASKERS = {
    "softmax": "masked_attention",
    "similarity": "masked_attention",
    "causal_mask": "ids_to_logits",
    "padding_mask": "ids_to_logits",
}


@dataclass(frozen=True)
class Runs:
    """How often each part ran, by its name; `problem` says why nothing could be counted."""

    calls: Mapping[str, int] = field(default_factory=dict)
    problem: str = ""


def _translation(translator: MyTranslator) -> None:
    translator.translate([SENTENCE])


def _beam_search(translator: MyTranslator) -> None:
    translator.translate([SENTENCE], beam_size=2)


def _loss(translator: MyTranslator) -> None:
    src = translator.src_tokenizer.encode_batch([SENTENCE])
    translator.model.loss(src, translator.tgt_tokenizer.encode_batch([GERMAN], bos=True, eos=True))


def _one_stack(translator: MyTranslator) -> None:
    weights = translator.model.weights
    stack = AssembledStack(weights.src_embedding, weights.encoder, translator.parts)
    stack(translator.src_tokenizer.encode_batch([SENTENCE]))


_JOBS = {"masked_cross_entropy": _loss, "beam_step": _beam_search, "stack_logits": _one_stack}  # of `ELSEWHERE`


def runs_of(build: Callable[[], MyTranslator]) -> Runs:
    """Count the calls of each part in the translation of a sentence, or where else it has its work."""
    calls: Counter[str] = Counter()
    try:
        translator = build()
        with redirect_stdout(StringIO()), torch.no_grad(), counted(translator.parts) as found:
            _translation(translator)
            calls += found
            for name in ELSEWHERE.keys() & translator.parts.theirs.keys():
                _JOBS[name](translator)
                calls[name] = found[name]
    except Exception as error:  # theirs: the file may have been edited since its parts were accepted
        return Runs(problem=_problem(error))
    return Runs(calls)


def _problem(error: Exception) -> str:
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(FILE)]
    where = f"in line {own[-1].lineno} of mine/{FILE} " if own else ""
    return f"Nothing could be counted, since it stops {where}with {type(error).__name__}: {error}"


def silence(name: str) -> str:
    """Say why a part of the learner's is never called, and what to do so that it is."""
    asker = _ASKERS.get(name, "")
    section = current(folder()).sections.get(asker)
    if section is None:
        return f"Your {name} was never called: no other part asks for it."
    return (
        f"Your {name} was never called: your {asker} {_instead(section, name)}. "
        f"To let it run, open mine/{FILE} and write {name}(…) there."
    )


def _instead(section: str, name: str) -> str:
    """Say what a section of the learner's file does in place of calling a part."""
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(section)) if isinstance(node, ast.Call)]
    for call in calls:
        if call.startswith(f"{name}_"):
            return f"calls {call}(…) instead, a copy of its own"
        if call.endswith(f".{name}"):
            return f"calls {call if re.fullmatch('[a-zA-Z_.]+', call) else f'… .{name}'}(…) instead"
    return "does that work itself, in its own lines"
