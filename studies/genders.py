"""What do the heads of the last cross-attention say, and what happens if other sentences lend them (notebook 15)?

The course's translator and four others, trained with the course's recipe from other seeds. That takes about a
quarter of an hour, most of it for training.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from transformer_lib.course.lab import cuts, speaking
from transformer_lib.course.lab.heads import questions
from transformer_lib.course.lab.questions import Questions, donors, margins, share
from transformer_lib.data.corpora import Corpus, load_corpus
from transformer_lib.decoding.translator import Translator
from transformer_lib.model.evaluating import evaluating

from .engine import Steps, Study, rounded
from .translators import each_training

EVERY = 4  # articles are read in every fourth held-out sentence
DRAWS = 3  # of the strangers
TOP = 4  # words that are stored


def measure(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    """Return all that is stored about one translator."""
    _, it = questions(translator, corpus["heldout"])
    with evaluating(translator.model):
        return {
            "right": share(margins(translator.model, it)),
            **said(translator, it),
            "articles": of_articles(translator, corpus),
            "lent": by_strangers(translator, it, corpus),
        }


def said(translator: Translator, it: Questions) -> dict[str, Any]:
    """Return how often each head, and all four together, put the right pronoun first, and their best words."""
    logits, right = speaking.head_logits(translator.model, speaking.handed_on(translator, it)), speaking.pronouns(it)
    hits = speaking.first_of(translator, _with_sum(logits), speaking.PRONOUNS) == right[:, None]
    first = torch.tensor([side == "first" for _, side, *_ in speaking.described(it)])
    words = translator.tgt_tokenizer.words
    return {
        "pronouns": _heads_and_all(hits),
        "pronouns by side": {"first": _heads_and_all(hits[first]), "second": _heads_and_all(hits[~first])},
        "words": {
            name: [[words[i] for i in row.topk(TOP).indices.tolist()] for row in logits[right == g].mean(dim=0)]
            for g, name in enumerate(speaking.PRONOUNS)
        },
    }


def of_articles(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    """Return how often each head, and all four together, say the gender of the article that is written."""
    found = speaking.articles(translator, corpus["heldout"][::EVERY])
    logits = _with_sum(speaking.head_logits(translator.model, found.z))
    return _heads_and_all(speaking.gender_said(translator, logits) == found.gender()[:, None])


def by_strangers(translator: Translator, it: Questions, corpus: Corpus) -> dict[str, Any]:
    """Return the share of pronouns flipped if the twin, or a stranger of each kind, lends one head, or all four."""
    model, own = translator.model, speaking.own_outputs(translator, it)
    twin = cuts.head_outputs(model, it, donors(translator, it, corpus["heldout"]))
    n_heads, flips = model.config.n_heads, {}
    for name, heads in {**{str(h + 1): [h] for h in range(n_heads)}, "all": list(range(n_heads))}.items():
        with speaking.lent(model, heads, twin):
            flips[name] = {"the twin": round(1 - share(margins(model, it)), 3)}
        for kind in speaking.KINDS:
            lenders, drawn = speaking.of_kind(it, corpus["heldout"], kind), []
            for seed in range(DRAWS):
                others = speaking.strangers(it, lenders, seed)
                drawn.append(speaking.flipped(translator, it, heads, others, own).double().mean())
            flips[name][kind] = rounded(torch.stack(drawn).mean(), 3)
    return flips


def _with_sum(logits: Tensor) -> Tensor:
    """Append the sum over the heads, [n, n_heads + 1, vocab_size]."""
    return torch.cat([logits, logits.sum(dim=1, keepdim=True)], dim=1)


def _heads_and_all(hits: Tensor) -> dict[str, Any]:
    shares = rounded(hits.double().mean(dim=0), 3)
    return {"heads": shares[:-1], "all": shares[-1]}


def steps(seeds: Sequence[int]) -> Steps:
    """Measure the course's translator, and those of the seeds."""
    corpus = load_corpus("context")
    return each_training(lambda translator: measure(translator, corpus), seeds)


STUDY = Study("genders", __doc__, steps, seeds=(1, 2, 3, 4), by_seed=True, constants={"every": EVERY}, indent=1)


if __name__ == "__main__":
    STUDY.command()
