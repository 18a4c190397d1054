"""Which heads, entries and memory rows decide a translation? Five translators, the same interventions (notebook 15)."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.course.lab import cuts as intervene
from transformer_lib.course.lab import entries
from transformer_lib.course.lab.heads import questions
from transformer_lib.course.lab.questions import Questions, donors, margins, nouns, share
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.decoding.translator import Translator
from transformer_lib.model.evaluating import evaluating
from transformer_lib.model.transformer import Transformer
from transformer_lib.training.evaluation import loss_per_token

from .engine import Steps, Study, rounded
from .translators import each_training

EVERY = 8  # heads are changed on every eighth held-out sentence with an ambiguous noun; all else is asked of all
LAYERS = {"": None, ", layer 1": (0,), ", layer 2": (1,)}  # by the ending of the intervention's name
ROWS = ("the noun", "the cue", "the articles", "noun and cue", "all rows")  # lent by the twin sentence
GROUPS = {
    "encoder, layer 1": "encoder.layers.0",
    "encoder, layer 2": "encoder.layers.1",
    "encoder": "^encoder",
    "decoder": "^decoder.*self",
    "cross, layer 1": "layers.0.cross",
    "cross, layer 2": "layers.1.cross",
    "cross": "cross",
    "all": "",
}  # of heads, by the name of their attention
PRUNED_ON = 100  # sentences by whose loss heads are chosen, and as many others on which it is shown


@contextmanager
def replaced(model: Transformer, heads: Iterable[intervene.Head], outputs: Mapping[str, Tensor]) -> Iterator[None]:
    """Let these heads hand on, inside the `with` block, what `outputs` of `head_outputs` has for them."""

    def swap(module: nn.Module, inputs: tuple[Tensor], other: Tensor, here: list[int]) -> tuple[Tensor]:
        return (intervene.replace_heads(inputs[0], other, model.config.n_heads, here),)

    hooks = [
        model.get_submodule(name).w_o.register_forward_pre_hook(partial(swap, other=outputs[name], here=here))
        for name, here in intervene.by_attention(heads).items()
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def flipped(model: Transformer, asked: Questions, donor: Tensor, *places: Tensor) -> float:
    """Return the share of decisions that are wrong once these memory rows come from `donor`; with none, all rows do."""
    rows = intervene.rows_at(asked, *places) if places else torch.ones_like(asked.src, dtype=torch.bool)
    return round(1 - share(intervene.lent(model, asked, donor, rows)), 3)


def articles(asked: Questions) -> Tensor:
    """Return the mask [n, src_len] that is True at "the" and "a"."""
    rows = torch.zeros_like(asked.src, dtype=torch.bool)
    for i, words in enumerate(asked.words):
        rows[i, : len(words)] = torch.tensor([word in ("the", "a", "an") for word in words])
    return rows


def alone(model: Transformer, asked: Questions, donor: Tensor) -> dict[str, dict[str, list[float]]]:
    """Return {measure: {attention: a number for each head}}, one head changed at a time.

    The measures: "right" decisions with the head silenced, the mean "margin lost" then, right decisions with its
    weights "evened", and decisions "flipped" if its output comes from the twin sentences, `donor` [n, src_len].
    """
    with_all, outputs = margins(model, asked), intervene.head_outputs(model, asked, donor)
    numbers: dict[str, dict[str, list[float]]] = {}
    for head in intervene.heads_of(model):
        with intervene.silenced(model, [head]):
            without = margins(model, asked)
        measures = {
            "right": share(without),
            "margin lost": round((with_all - without).mean().item(), 3),
            "evened": _share_inside(intervene.evened(model, [head]), model, asked),
            "flipped": round(1 - _share_inside(replaced(model, [head], outputs), model, asked), 3),
        }
        for name, value in measures.items():
            numbers.setdefault(name, {}).setdefault(head[0], []).append(value)
    return numbers


def together(model: Transformer, asked: Questions, donor: Tensor) -> dict[str, dict[str, float]]:
    """Return {group of heads: {"silenced", "evened": right decisions, "flipped": as in `alone`}}."""
    outputs, shares = intervene.head_outputs(model, asked, donor), {}
    for group, pattern in GROUPS.items():
        heads = [head for head in intervene.heads_of(model) if re.search(pattern, head[0])]
        shares[group] = {
            "silenced": _share_inside(intervene.silenced(model, heads), model, asked),
            "evened": _share_inside(intervene.evened(model, heads), model, asked),
            "flipped": round(1 - _share_inside(replaced(model, heads, outputs), model, asked), 3),
        }
    return shares


def _share_inside(context: AbstractContextManager, model: Transformer, asked: Questions) -> float:
    with context:
        return share(margins(model, asked))


def greedy_order(
    score: Callable[[Sequence[intervene.Head]], float], heads: Sequence[intervene.Head]
) -> list[intervene.Head]:
    """Return the heads in the order in which they are silenced: each time the one without which the score is best."""
    silent: list[intervene.Head] = []
    while len(silent) < len(heads):
        left = [head for head in heads if head not in silent]
        silent.append(max(left, key=lambda head: score([*silent, head])))
    return silent


def pruning(translator: Translator, corpus: Corpus, some: Questions, it: Questions) -> dict[str, Any]:
    """Return what is left once 0, 1 … 24 heads are silent, chosen greedily, by their need alone, or at random.

    Chosen are they by the loss on sentences of the validation split; the loss shown is that on others.
    """
    model, heads = translator.model, intervene.heads_of(translator.model)
    chosen_on, shown_on = (list(translator.batches(part, PRUNED_ON)) for part in _validation_parts(corpus))

    def loss(batches: list[tuple[Tensor, Tensor]], silent: Sequence[intervene.Head]) -> float:
        with intervene.silenced(model, silent):
            return loss_per_token(model, batches)

    single = {head: loss(chosen_on, [head]) for head in heads}
    orders = {"greedy": greedy_order(lambda silent: -loss(chosen_on, silent), heads)}
    orders["alone"] = sorted(heads, key=lambda head: single[head])
    for seed in range(3):
        orders[f"random {seed}"] = random.Random(seed).sample(heads, len(heads))
    left: dict[str, Any] = {"order": orders["greedy"]}
    for name, order in orders.items():
        steps = [order[:count] for count in range(len(heads) + 1)]
        left[name] = {
            "loss": [round(loss(shown_on, silent), 4) for silent in steps],
            "noun": [_share_inside(intervene.silenced(model, silent), model, some) for silent in steps],
            "it": [_share_inside(intervene.silenced(model, silent), model, it) for silent in steps],
        }
    return left


def _validation_parts(corpus: Corpus) -> tuple[Sequence[Pair], Sequence[Pair]]:
    pairs = corpus["validation"][:: len(corpus["validation"]) // (2 * PRUNED_ON)]
    return pairs[:PRUNED_ON], pairs[PRUNED_ON : 2 * PRUNED_ON]


def measure(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    """Return everything that is stored about one model; shares of right decisions unless named otherwise."""
    with evaluating(translator.model):
        return _measured(translator, corpus)


def _measured(translator: Translator, corpus: Corpus) -> dict[str, Any]:
    model = translator.model
    noun, it = questions(translator, corpus["heldout"])
    some = Questions(translator, noun.pairs[::EVERY])
    result: dict[str, Any] = {"right": {"noun": share(margins(model, noun)), "it": share(margins(model, it))}}
    for kind, asked in (("noun", some), ("it", it)):
        donor = donors(translator, asked, corpus["heldout"])
        result.setdefault("alone", {})[kind] = alone(model, asked, donor)
        result.setdefault("together", {})[kind] = together(model, asked, donor)
    result["pruned"] = pruning(translator, corpus, some, it)
    result |= of_nouns(translator, noun, corpus) | of_pronouns(translator, it, corpus)
    every_entry = entries.of_sentences(translator, entries.short_sentences(corpus["heldout"]))
    result["entries"] = {
        "noun": every_entry.summary(every_entry.of_noun),
        "others": every_entry.summary(~every_entry.of_noun),
    }
    return result


def of_nouns(translator: Translator, noun: Questions, corpus: Corpus) -> dict[str, Any]:
    """Return what decides the sense of an ambiguous noun: entries cut, rows of the memory lent."""
    model, cuts = translator.model, {}
    edges = {
        "noun reads cue": (noun.word, noun.cue),
        "noun reads the word before": (noun.word, noun.word - 1),
        "cue reads noun": (noun.cue, noun.word),
    }
    for name, edge in edges.items():
        cuts[name] = _share_inside(intervene.cut_rows(model, noun, *edge), model, noun)
    cuts["others read cue"] = _share_inside(intervene.unread(model, noun, noun.cue), model, noun)
    between = intervene.weights_between(model, noun, noun.word, noun.cue)
    return {
        "cut, noun": cuts,
        "flipped, noun": rows_replaced(translator, noun, corpus),
        "weight on the cue": rounded({name: grid.mean(dim=0) for name, grid in between.items()}, 3),
    }


def rows_replaced(translator: Translator, noun: Questions, corpus: Corpus) -> dict[str, float]:
    """Return the share of decisions that turn once these rows of the memory come from the sentence's twin."""
    donor = donors(translator, noun, corpus["heldout"])
    at_noun, at_cue = (intervene.rows_at(noun, place) for place in (noun.word, noun.cue))
    rows = (at_noun, at_cue, articles(noun), at_noun | at_cue, torch.ones_like(at_noun))
    return {
        name: round(1 - share(intervene.lent(translator.model, noun, donor, mask)), 3)
        for name, mask in zip(ROWS, rows, strict=True)
    }


def of_pronouns(translator: Translator, it: Questions, corpus: Corpus) -> dict[str, Any]:
    """Return what decides er, sie or es: entries cut, rows of the memory hidden or lent, and the weights."""
    model, (meant, other) = translator.model, nouns(it)
    first, second = torch.minimum(meant, other), torch.maximum(meant, other)
    rows = {"it": it.word, "the noun meant": meant, "the other noun": other, "the adjective": it.cue}
    read = {"first noun": first, "second noun": second, "adjective": it.cue}
    donor, here = donors(translator, it, corpus["heldout"]), torch.arange(len(it))
    of_pronoun = intervene.pronoun_rows(translator, it)
    cuts = {
        "it reads the noun meant": intervene.cut_rows(model, it, it.word, meant),
        "the adjective reads both nouns": intervene.cut_rows(model, it, it.cue, meant, other),
        "it reads both nouns and the adjective": intervene.cut_rows(model, it, it.word, meant, other, it.cue),
        "others read both nouns and the adjective": intervene.unread(model, it, meant, other, it.cue),
    }
    return {
        "cut, it": {name: _share_inside(context, model, it) for name, context in cuts.items()},
        "hidden": {
            name + ending: _share_inside(intervene.hidden(model, it, place, layers=layers), model, it)
            for name, place in rows.items()
            for ending, layers in LAYERS.items()
        },
        "flipped, it": {name: flipped(model, it, donor, place) for name, place in rows.items()}
        | {"all rows": flipped(model, it, donor)},
        "weight on the noun meant": rounded({name: g[here, :, meant].mean(0) for name, g in of_pronoun.items()}, 3),
        "more on the noun meant": rounded(
            {name: (g[here, :, meant] > g[here, :, other]).double().mean(0) for name, g in of_pronoun.items()}, 3
        ),
        "weights": {
            f"{which} meant": {
                name: rounded({word: g[here, :, place][noun == meant].mean(0) for word, place in read.items()}, 3)
                for name, g in of_pronoun.items()
            }
            for which, noun in (("first", first), ("second", second))
        },
    }


def steps(seeds: Sequence[int]) -> Steps:
    """Measure the course's translator, and those of the seeds."""
    corpus = load_corpus("context")
    return each_training(lambda translator: measure(translator, corpus), seeds)


STUDY = Study("heads", __doc__, steps, seeds=(1, 2, 3, 4), by_seed=True, constants={"every": EVERY}, indent=1)


if __name__ == "__main__":
    STUDY.command()
