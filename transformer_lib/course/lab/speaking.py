"""What the heads that write a pronoun or an article say: read through W_O and the output head (notebook 15).

`load_results()["models"]["seed 1"]` has what `studies.genders` measures of one training of the translator.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...data.corpora import Pair
from ...decoding.translator import Translator
from ...model.evaluating import evaluating
from ...model.transformer import Transformer
from . import stored
from .cuts import from_others, head_outputs, replace_heads
from .questions import Questions, margins, nouns, twins

load_results = stored.loader("genders.json")

LAST = "decoder.layers.1.cross_attention"
PRONOUNS = ("er", "sie", "es")
GENDERS = (("er", "der", "den", "einen"), ("sie", "die", "eine"), ("es", "das"))  # words that have one gender only
ARTICLES = ("der", "den", "einen", "die", "eine", "das")  # in the order of the genders; "ein" has two
BEFORE_DATIVE = ("neben", "bei")
KINDS = {
    "same gender, same side": (True, True),
    "same gender, other side": (True, False),
    "other gender, same side": (False, True),
    "other gender, other side": (False, False),
}  # of strangers: whether they have the pronoun, and the side, of the sentence to which they lend
Described = tuple[str, str, str, str]
Lenders = Callable[[Described, Sequence[Described]], Sequence[int]]


@torch.no_grad()
def _before_w_o(translator: Translator, src: Tensor, tgt: Tensor) -> Tensor:
    """Return what the heads of the last cross-attention hand on, [batch, tgt_len - 1, n_heads, d_v]."""
    kept: list[Tensor] = []
    hook = translator.model.get_submodule(LAST).w_o.register_forward_pre_hook(lambda _, inputs: kept.append(inputs[0]))
    try:
        with evaluating(translator.model):
            translator.model(src, tgt[:, :-1])
    finally:
        hook.remove()
    return kept[0].unflatten(-1, (translator.model.config.n_heads, -1))


def pronouns(asked: Questions) -> Tensor:
    """Return which of PRONOUNS is right in each sentence, [n]; all `asked` are "it" sentences."""
    return torch.tensor([PRONOUNS.index(pair.expected.lower()) for pair in asked.pairs])


def handed_on(translator: Translator, asked: Questions) -> Tensor:
    """Return what each head of the last cross-attention hands on where er, sie or es is written, [n, n_heads, d_v]."""
    tgt, words = asked.tgt[asked.right], translator.tgt_tokenizer.words
    rows = [
        [words[i].lower() for i in ids].index(pair.expected.lower()) - 1
        for ids, pair in zip(tgt.tolist(), asked.pairs, strict=True)
    ]
    return _before_w_o(translator, asked.src, tgt)[torch.arange(len(asked)), rows]


@dataclass(frozen=True)
class Articles:
    """Articles of translations: `written` [m] words, `after` [m] the words before them, `z` [m, n_heads, d_v]."""

    written: list[str]
    after: list[str]
    z: Tensor

    def gender(self) -> Tensor:
        """Return the genders of the articles, numbers of GENDERS, [m]."""
        return torch.tensor([next(g for g, words in enumerate(GENDERS) if word in words) for word in self.written])


def articles(translator: Translator, pairs: Sequence[Pair], *, dative: bool = False) -> Articles:
    """Return the articles of the right translations, and what each head hands on where they are written.

    They are ARTICLES without those in the dative; or, with `dative`, "dem" and "der" after "neben" and "bei".
    """
    src = translator.src_tokenizer.encode_batch([pair.src for pair in pairs])
    tgt = translator.tgt_tokenizer.encode_batch([pair.tgt for pair in pairs], bos=True, eos=True)
    words, found = translator.tgt_tokenizer.words, []
    for i, ids in enumerate(tgt.tolist()):
        row = [words[number] for number in ids]
        for t in range(1, len(row)):
            wanted = row[t] in (("dem", "der") if dative else ARTICLES)
            if wanted and (row[t - 1] in BEFORE_DATIVE) == dative:
                found.append((i, t - 1, row[t], row[t - 1]))
    sentence, place, written, after = (list(column) for column in zip(*found, strict=True))
    return Articles(written, after, _before_w_o(translator, src, tgt)[sentence, place])


def head_logits(model: Transformer, z: Tensor) -> Tensor:
    """Return what heads add to the logits if nothing comes in between: z W_O W_out, [n, n_heads, vocab_size].

    z: [n, n_heads, d_v], what the heads of the last cross-attention hand on.
    """
    W_O = model.get_submodule(LAST).w_o.weight.T.unflatten(0, z.shape[1:])
    return (torch.einsum("nhd,hdm->nhm", z, W_O) @ model.output_head.weight.T).detach()


def ids(translator: Translator, words: Sequence[str]) -> list[int]:
    """Return the numbers of German words."""
    return [translator.tgt_tokenizer.words.index(word) for word in words]


def first_of(translator: Translator, logits: Tensor, words: Sequence[str]) -> Tensor:
    """Return which of `words` has the largest of the logits [..., vocab_size], as numbers [...]."""
    return logits[..., ids(translator, words)].argmax(dim=-1)


def gender_said(translator: Translator, logits: Tensor) -> Tensor:
    """Return the gender, a number of GENDERS, whose best word has the largest logit, [...]."""
    best = [logits[..., ids(translator, words)].amax(dim=-1) for words in GENDERS]
    return torch.stack(best).argmax(dim=0)


def described(asked: Questions) -> list[Described]:
    """Return of each "it" sentence (pronoun, side of the noun meant, first noun, second noun), four words."""
    meant, other = nouns(asked)
    return [
        (pair.expected.lower(), "first" if m < o else "second", row[min(m, o)], row[max(m, o)])
        for pair, row, m, o in zip(asked.pairs, asked.words, meant.tolist(), other.tolist(), strict=True)
    ]


def strangers(asked: Questions, lenders: Lenders, seed: int = 0) -> Tensor:
    """Return for each sentence the number of another one, [n], drawn from those that may lend it a head.

    lenders(mine, others) is given what `described` says, and returns numbers of others. The pronoun is at the same
    position of both translations, and both times with a capital letter, or both times without.
    Raises ValueError when one of the sentences has no lender.
    """
    draw, told = random.Random(seed), described(asked)
    place = (asked.tgt[asked.right] != asked.tgt[~asked.right]).int().argmax(dim=1).tolist()
    written = [(start, pair.expected.istitle()) for start, pair in zip(place, asked.pairs, strict=True)]
    chosen = []
    for i, mine in enumerate(told):
        alike = [j for j in lenders(mine, told) if j != i and written[j] == written[i]]
        if not alike:
            raise ValueError(f"lenders must return a stranger for every sentence, none for {asked.pairs[i].src!r}")
        chosen.append(draw.choice(alike))
    return torch.tensor(chosen)


def of_kind(asked: Questions, pairs: Sequence[Pair], kind: str) -> Lenders:
    """Return the `lenders` of one of KINDS: no noun in common; another gender is that of the twin, found in `pairs`.

    Raises ValueError when there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}")
    same_gender, same_side = KINDS[kind]
    rival = {mine[1:]: pair.expected.lower() for mine, pair in zip(described(asked), twins(asked, pairs), strict=True)}

    def lenders(mine: Described, others: Sequence[Described]) -> list[int]:
        wanted = mine[0] if same_gender else rival[mine[1:]]
        return [
            j
            for j, other in enumerate(others)
            if other[0] == wanted and (other[1] == mine[1]) == same_side and not {*mine[2:]} & {*other[2:]}
        ]

    return lenders


@contextmanager
def lent(model: Transformer, heads: Sequence[int], outputs: Mapping[str, Tensor]) -> Iterator[None]:
    """Let these heads of the last cross-attention (from 0) hand on what `outputs` has for them."""

    def swap(_: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
        return (replace_heads(inputs[0], outputs[LAST], model.config.n_heads, heads),)

    hook = model.get_submodule(LAST).w_o.register_forward_pre_hook(swap)
    try:
        yield
    finally:
        hook.remove()


def flipped(
    translator: Translator,
    asked: Questions,
    heads: Sequence[int],
    others: Tensor,
    own: Mapping[str, Tensor],
    louder: float = 1.0,
) -> Tensor:
    """Return whether each decision is wrong, [n], once the sentences `others` [n] lend these heads.

    own: `head_outputs` of the sentences themselves. What is lent is multiplied by `louder`.
    """
    outputs = {name: louder * x for name, x in from_others(asked, own, others).items()}
    with lent(translator.model, heads, outputs):
        return margins(translator.model, asked) <= 0


def own_outputs(translator: Translator, asked: Questions) -> dict[str, Tensor]:
    """Return what all heads hand on in the sentences themselves, {attention: [rows, tgt_len, d_model]}."""
    return head_outputs(translator.model, asked, asked.src)


def shares_right(task: str) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return {translator: shares} of each head and of all four together, as stored; `task` is pronouns or articles."""
    models = load_results()["models"]
    each = {name: of_model[task]["heads"] for name, of_model in models.items()}
    return each, {name: [of_model[task]["all"]] for name, of_model in models.items()}


def flips_over_trainings() -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return {kind of stranger: shares flipped, one a translator}, of the best single head and of all four, as stored.

    The best head of a translator is the one that flips most if the twin lends it.
    """
    best, together = {}, {}
    found = [of_model["lent"] for of_model in load_results()["models"].values()]
    for kind in KINDS:
        single = [max((lent[head] for head in lent if head != "all"), key=lambda of: of["the twin"]) for lent in found]
        best[kind], together[kind] = [of[kind] for of in single], [lent["all"][kind] for lent in found]
    return best, together
