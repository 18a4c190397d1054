"""Your own Transformer: the parts that a learner has written, kept as a file and put together to a model.

When the check of an exercise that is a part of the model passes, `transformer_lib.course.exercises` hands the learner's
function over to `keep`, which writes its source, with the imports, constants and helpers that it uses, into
`mine/my_transformer.py`. `assembled` builds the model from these parts, and from the library's where there are none;
`map` shows which of them run, `breaking` spoils one to show what it is for, `planting` puts a fault of one's own there;
`by_hand` puts their backward passes and their step of Adam in place of those of `transformer_lib.by_hand`; `today`
computes a `transformer_lib.modern.LanguageModel` with their parts of notebook 20, `copying` trains two attention layers
made of their functions, `speculative` decodes with their judgement of drafted tokens, and `chat` talks to a real model
with their loop.
The folder `mine` is the learner's: git ignores it, and nothing in it is executed but what they wrote.

The environment variable TRANSFORMER_COURSE_MINE names another folder. With TRANSFORMER_COURSE_STATIC set, or while an
assignment is graded, nothing is written, and every display shows the library's parts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from torch import nn

from ..._validate import check_int
from ...data.byte_level import ByteLevelTokenizer
from ...decoding.translator import Translator, load_trained
from ...model.encoder import Encoder
from ...model.modern import LanguageModel
from .. import progress
from ..progress.view import View
from .account import forget_celebration
from .assembling import AssembledTransformer
from .chatting import Chatting
from .collecting import collect
from .comparing import SENTENCES, Breaking
from .folder import FILE, change, current, folder, functions
from .in_context import USED, CopierParts, MyCopier
from .layout import Layout, with_part
from .library import Parts
from .parts import BY_HAND, INSIDE, NAMES, PARTS, REAL, SERVING, TODAY, Part, part_of
from .patching import Patching
from .running import Runs, runs_of
from .source import CannotWrite
from .speculating import Speculating, speculating_with
from .stacked import AssembledStack
from .todays_block import AssembledToday, TodayParts
from .training_by_hand import in_by_hand
from .translating import MyTranslator
from .view import parts_view
from .words import UnknownWords
from .wrapping import Wrap, wrapped

__all__ = [
    "PARTS",
    "AssembledStack",
    "AssembledToday",
    "AssembledTransformer",
    "Breaking",
    "CannotWrite",
    "Chatting",
    "MyCopier",
    "MyTranslator",
    "Part",
    "Parts",
    "Patching",
    "Speculating",
    "TodayParts",
    "UnknownWords",
    "announce",
    "assembled",
    "assembled_stack",
    "breaking",
    "by_hand",
    "chat",
    "copying",
    "folder",
    "keep",
    "kept",
    "map",
    "planting",
    "reset",
    "speculative",
    "today",
]


def keep(part: str, function: Callable[..., object]) -> bool:
    """Write a learner's function into their file as this part of the model; a version before it moves to `earlier`.

    Args:
        part: its name, such as "masked_attention".
        function: written with def, in a cell or in a file.

    Returns:
        True when it is there; False when nothing may be written (see above).

    Raises:
        ValueError: there is no such part. CannotWrite: the function cannot be written; the message says why.
        OSError: the folder cannot be written.
    """
    part_of(part)
    if _nothing_personal():
        return False
    pieces = collect(getattr(function, "__name__", part), function)
    try:
        change(folder(), part, lambda layout: with_part(layout, part, pieces))
    except SyntaxError as error:
        raise CannotWrite(f"its source cannot stand alone ({error.msg}).") from None
    return True


def announce(part: str, function: Callable[..., object]) -> None:
    """Keep a function whose check has passed, and say in one line whether that worked. No part, no line."""
    if not part or _nothing_personal():
        return
    try:
        keep(part, function)
        print(f"  It is part of your own Transformer now: mine/{FILE}.")
    except (CannotWrite, OSError) as error:
        print(f"  Not written into mine/{FILE}: {error}")


def kept() -> tuple[str, ...]:
    """Return the names of the parts that are the learner's, in the order of the notebooks."""
    sections = {} if _nothing_personal() else current(folder()).sections
    return tuple(name for name in NAMES if name in sections)


def reset(part: str | None = None) -> None:
    """Take one part out of the learner's file, or all; what was there is kept in the folder `earlier`.

    Raises:
        ValueError: there is no such part. OSError: the folder cannot be written.
    """
    names = NAMES if part is None else (part_of(part).name,)
    forget_celebration()
    for name in set(names) & set(kept()):
        change(folder(), name, partial(Layout.without, name=name))


def assembled(translator: Translator | None = None, *, parts: Collection[str] | None = None) -> MyTranslator:
    """Return a translator whose model is made of the learner's parts, and of the library's where there are none.

    Args:
        translator: whose weights it uses, and goes on training; by default the trained one that is included.
        parts: which of the learner's parts to take; by default all.

    Raises:
        ValueError: a part is not the learner's yet, or their file cannot be imported; or the translator's model is not
            a post-norm `Transformer` with sinusoidal positions.
    """
    base = translator or load_trained("context")
    model = AssembledTransformer(base.model, _parts(parts))
    return MyTranslator(model, base.src_tokenizer, base.tgt_tokenizer)


def assembled_stack(embedding: nn.Embedding, stack: Encoder, *, parts: Collection[str] | None = None) -> AssembledStack:
    """Return a stack made of the learner's parts, and of the library's where there are none.

    Args:
        embedding, stack: whose weights it uses, and goes on training.
        parts: which of the learner's parts to take; by default all.

    Raises:
        ValueError: a part is not the learner's yet, or their file cannot be imported; or the stack is not post-norm.
    """
    return AssembledStack(embedding, stack, _parts(parts))


def _parts(chosen: Collection[str] | None) -> Parts:
    yours = tuple(name for name in kept() if part_of(name).of_model)
    names = yours if chosen is None else tuple(chosen)
    if unknown := set(names) - set(yours):
        raise ValueError(f"parts must be among yours, {', '.join(yours) or 'none yet'}, got {', '.join(unknown)}")
    return Parts(functions(folder(), names))


def by_hand() -> AbstractContextManager[str]:
    """Let `transformer_lib.by_hand` compute with the learner's parts of notebook 18 inside a `with` block.

    Where there are none, it computes with its own; the text that `with … as whose` gives says which are whose.

    Raises:
        ValueError: their file cannot be imported.
    """
    return in_by_hand(functions(folder(), _kept_of(BY_HAND)))


def today(model: LanguageModel) -> AssembledToday:
    """Return a model of today's blocks made of the learner's parts of notebook 20, and of the library's for the rest.

    Its text `whose` says which functions are theirs.

    Args:
        model: whose weights it uses, and goes on training; with RMSNorm, SwiGLU, and pairs="halves".

    Raises:
        ValueError: the model is another, or their file cannot be imported.
    """
    return AssembledToday(model, TodayParts(functions(folder(), _kept_of(TODAY))))


def copying(steps: int = 400, *, parts: Collection[str] | None = None) -> MyCopier:
    """Train two attention layers that compute with the learner's functions to copy strings they have never seen.

    Args:
        steps: of training; 0 for a fresh model.
        parts: which of the learner's functions to take; by default all that it needs and that are theirs.

    Raises:
        ValueError: a part is not the learner's yet, or their file cannot be imported.
    """
    from ..lab import copying as strings

    yours = tuple(name for name in kept() if name in USED)
    names = yours if parts is None else tuple(parts)
    if unknown := set(names) - set(yours):
        raise ValueError(f"parts must be among yours, {', '.join(yours) or 'none yet'}, got {', '.join(unknown)}")
    copier = MyCopier(strings.new_model(2, 1, seed=0), CopierParts(functions(folder(), names)))
    if check_int("steps", steps, minimum=0):
        strings.fit(copier, steps, seed=0)
    return copier


def speculative() -> Speculating:
    """Return a speculative decoder in which the learner's `tokens_that_stand` of notebook 22 judges the draft.

    Until it is accepted, the library's does; `.whose` of what is returned says whose it is. It is called as
    `speculative_decode`: (target, draft, src, max_new_tokens=…, gamma=…).

    Raises:
        ValueError: their file cannot be imported.
    """
    return speculating_with(functions(folder(), _kept_of(SERVING)))


def chat(model: LanguageModel | AssembledToday, tokenizer: ByteLevelTokenizer) -> Chatting:
    """Return a chat in which the learner's `converse` of notebook 23 talks to a model.

    Until it is accepted, the library's does; `.whose` of what is returned says whose it is. It is called with
    questions, and returns the answers.

    Raises:
        ValueError: their file cannot be imported. TypeError: the tokenizer has no chat template.
    """
    return Chatting(model, tokenizer, functions(folder(), _kept_of(REAL)))


def patching() -> Patching:
    """Return a function that maps patches of a model by the learner's `patch_map` of notebook 24.

    Until it is accepted, the library's does; `.whose` of what is returned says whose it is. It is called as
    (model, ids, others, right, wrong), and returns shares [n_layers + 1, seq_len].

    Raises:
        ValueError: their file cannot be imported.
    """
    return Patching(functions(folder(), _kept_of(INSIDE)))


def map() -> View:
    """Show as a table whose part of the model in PyTorch is whose, and how often each of the learner's really runs."""

    def drawn() -> tuple[str, str]:
        yours = kept()
        return parts_view([part for part in PARTS if part.of_model], yours, runs_of(assembled) if yours else Runs())

    return View(drawn)


def breaking(part: str, *texts: str, translator: MyTranslator | None = None) -> Breaking:
    """Spoil one part of the model, the learner's or the library's, in a telling way, until it is whole again.

    `tl.mine.breaking("causal_mask")` as the last line of a cell shows translations before and after. For anything else,
    `with tl.mine.breaking("causal_mask") as broken:` gives the translator with this part spoilt inside the block. The
    learner's file is never touched.

    Args:
        part: its name, such as "causal_mask"; one of those that the map shows.
        texts: what to translate; by default four sentences.
        translator: whose part; by default a new one of all that is the learner's.

    Raises:
        ValueError: there is no such part, the learner's file cannot be imported, or a text has an unknown word.
    """
    return Breaking(part, translator or assembled(), texts or SENTENCES)


@contextmanager
def planting(part: str, fault: Wrap, translator: MyTranslator | None = None) -> Iterator[MyTranslator]:
    """Let a fault of one's own take a part's place inside a `with` block, which gives the translator; then it is whole.

    The learner's file is never touched.

    Args:
        part: its name, such as "layer_norm"; one of those that the map shows.
        fault: called as fault(part) with the function, it returns the function that is called in its place.
        translator: whose part; by default a new one of all that is the learner's.

    Raises:
        ValueError: there is no such part, or the learner's file cannot be imported.
    """
    if not part_of(part).of_model:
        raise ValueError(f"part must be one of the model's, such as 'layer_norm', got {part!r}")
    planted = translator or assembled()
    with wrapped(planted.parts, {part: fault}):
        yield planted


def _kept_of(*notebooks: str) -> tuple[str, ...]:
    """Return the names of the learner's parts that these notebooks build."""
    return tuple(name for name in kept() if part_of(name).notebook in notebooks)


def _nothing_personal() -> bool:
    return progress.static() or bool(os.environ.get("NBGRADER_EXECUTION"))
