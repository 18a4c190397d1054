"""How many calls of the translator does a draft save, and what does the formula say? (notebook 22)

Small drafts of four kinds are trained for the included translator; the first one's weights go to
data/context/draft.safetensors. Greedily, a drafted token is kept where the draft's likeliest word after the
translator's own words is the next of these. So one reading of the finished translation by the draft tells every round
of every γ: `agreements`, `rounds`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer_lib.baselines import count_parameters
from transformer_lib.course.lab import masks, one_stack, translators
from transformer_lib.course.lab.one_change import next_word_loss
from transformer_lib.course.lab.speculation import KINDS
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches
from transformer_lib.decoding.sampling import greedy_decode
from transformer_lib.decoding.speculative import Model, speculative_sample, tokens_per_call
from transformer_lib.decoding.translator import TRAINED, Translator, load_trained
from transformer_lib.model.one_stack import LanguageModel

from .engine import Step, Steps, Study

GAMMAS = tuple(range(1, 9))
SPLITS = ("heldout", "compositional", "hard")
SIZES: dict[str, Any] = {"d_model": 16, "n_heads": 4, "n_layers": 1, "d_ff": 32}
RECIPE: dict[str, Any] = {"epochs": 4, "warmup_steps": 200}
BLIND_STEPS = 712  # one pass over the corpus
LONGEST = 40  # tokens
SAMPLED, SAMPLED_GAMMA = 300, 4  # held-out sentences, each drawn once at temperature 1
SHORT_PAIRS = 640  # 20 steps


@dataclass(frozen=True)
class Setup:
    """One draft: its kind and the seed of its training.

    "small" has one narrow layer and the course's recipe; "short" is trained for one pass instead of four; "narrow" only
    on sentences without "it"; "blind" is a language model of the German sentences that sees no source.
    """

    draft: str
    seed: int


def train(setup: Setup, corpus: Corpus, *, count: int | None = None) -> Translator | LanguageModel:
    """Return the trained draft: a translator, or for "blind" a language model; `count` pairs in place of all."""
    pairs = corpus["train"] if count is None else corpus["train"][:count]
    if setup.draft == "blind":
        return _blind(setup.seed, BLIND_STEPS if count is None else count // masks.BATCH_SIZE)
    draft = translators.new_translator(corpus["train"], seed=setup.seed, **SIZES)
    recipe = RECIPE | ({"epochs": 1} if setup.draft == "short" or count is not None else {})
    some = [pair for pair in pairs if pair.word != "it"] if setup.draft == "narrow" else pairs
    translators.train_translator(draft, some, seed=setup.seed, progress=False, **recipe)
    return draft


def _blind(seed: int, steps: int) -> LanguageModel:
    torch.manual_seed(seed)
    sizes = (SIZES["n_layers"], SIZES["d_model"], SIZES["n_heads"], SIZES["d_ff"])
    model = LanguageModel(len(one_stack.tokenizer()), *sizes, norm_first=True)
    one_stack.fit(model, next_word_loss, steps, seed)
    return model.eval()


# Greedily: one reading tells all rounds --------------------------------------------------------------------
@torch.no_grad()
def agreements(draft: Model, src: Tensor, ids: Tensor) -> list[list[bool]]:
    """Return, for each token that the target said, whether the draft's likeliest after the same words is this one.

    Args:
        src: source ids [batch, src_len]. ids: what the target said, from bos to eos [batch, n].
    """
    logits = draft(ids[:, :-1]) if isinstance(draft, LanguageModel) else draft(src, ids[:, :-1])
    same, real = logits.argmax(dim=-1) == ids[:, 1:], ids[:, 1:] != masks.PAD
    return [row[kept].tolist() for row, kept in zip(same, real, strict=True)]


def rounds(agree: Sequence[bool], gamma: int) -> list[tuple[int, int, int]]:
    """Return each round's (drafted, accepted, said) for a sentence, given where the draft agrees with it.

    A drafted word that is not the target's ends a draft's use, and the sentence's last token, eos, ends it whole; where
    the draft proposes eos early is not known here, so `drafted` counts the tokens that could be tested.
    """
    all_rounds, at = [], 0
    while at < len(agree):
        room = min(gamma, len(agree) - at)  # a draft that goes along ends with eos
        accepted = next((k for k in range(room) if not agree[at + k]), room)
        said = min(accepted + 1, len(agree) - at)
        all_rounds.append((room, accepted, said))
        at += said
    return all_rounds


def counted(sentences: Sequence[Sequence[bool]], gamma: int) -> dict[str, float]:
    """Return the tokens per call, α (the share of tested tokens that are kept), and the formula's tokens per call."""
    every = [one for agree in sentences for one in rounds(agree, gamma)]
    accepted = sum(kept for _, kept, _ in every)
    tested = sum(min(kept + 1, room) for room, kept, _ in every)
    alpha = accepted / tested
    return {
        "tokens per call": sum(said for _, _, said in every) / len(every),
        "acceptance": alpha,
        "formula": tokens_per_call(alpha, gamma),
        "calls saved": 1 - len(every) / sum(map(len, sentences)),
    }


def shuffled(sentences: Sequence[Sequence[bool]], seed: int = 0) -> list[list[bool]]:
    """Return sentences of the same lengths with all agreements shuffled: as many, but each by chance."""
    every = [one for agree in sentences for one in agree]
    random.Random(seed).shuffle(every)
    dealt = iter(every)
    return [[next(dealt) for _ in agree] for agree in sentences]


def endless(sentences: Sequence[Sequence[bool]]) -> list[list[bool]]:
    """Return all sentences as one, whose drafts are not cut off by an end."""
    return [[one for agree in sentences for one in agree]]


def agreement(sentences: Sequence[Sequence[bool]]) -> float:
    """Return the share of all tokens on which the draft agrees."""
    return sum(map(sum, sentences)) / sum(map(len, sentences))


def by_place(sentences: Sequence[Sequence[bool]], gamma: int) -> list[float]:
    """Return the share of the k-th drafted tokens that are kept among those whose forerunners all were, k = 1 … γ."""
    every = [one for agree in sentences for one in rounds(agree, gamma)]
    tested = [[kept > place for room, kept, _ in every if room > place and kept >= place] for place in range(gamma)]
    return [sum(some) / len(some) for some in tested if some]


def measured(sentences: Sequence[Sequence[bool]]) -> dict[str, Any]:
    """Return what the agreements of a split say: their share α, and for every γ the calls, as they are and in controls.

    "endless" leaves the ends of sentences out, "shuffled" the order of the agreements, "shuffled, endless" both: what
    the formula takes for granted. "steady" is the formula for the share of all agreements.
    """
    share = agreement(sentences)
    rows = []
    for gamma in GAMMAS:
        row = {"gamma": gamma, **counted(sentences, gamma), "steady": tokens_per_call(share, gamma)}
        controls = {
            "endless": endless(sentences),
            "shuffled": shuffled(sentences),
            "shuffled, endless": endless(shuffled(sentences)),
        }
        row |= {name: counted(some, gamma)["tokens per call"] for name, some in controls.items()}
        rows.append({name: round(value, 4) for name, value in row.items()})
    places = [round(one, 4) for one in by_place(sentences, GAMMAS[-1])]
    return {"agreement": round(share, 4), "sentences": len(sentences), "by place": places, "rows": rows}


# What is measured of a draft -------------------------------------------------------------------------------
def test_splits(corpus: Corpus) -> dict[str, list[Pair]]:
    """Return the test files, and the held-out sentences with "it" and those without apart."""
    kinds = {"it": True, "no it": False}
    held = {name: [pair for pair in corpus["heldout"] if (pair.word == "it") == it] for name, it in kinds.items()}
    return {split: list(corpus[split]) for split in SPLITS} | held


def measure(target: Translator, draft: Translator | LanguageModel, corpus: Corpus, seed: int) -> dict[str, Any]:
    """Return the draft's size, what it translates right itself, its agreements with the target, and a sampled run."""
    model = draft.model if isinstance(draft, Translator) else draft
    result: dict[str, Any] = {"parameters": count_parameters(model), "exact match": {}, "splits": {}}
    for split, pairs in test_splits(corpus).items():
        texts = [pair.src for pair in pairs]
        if isinstance(draft, Translator):
            right = sum(exact_matches(draft.translate(texts, path="fast"), pairs))
            result["exact match"][split] = round(right / len(pairs), 4)
        src = target.src_tokenizer.encode_batch(texts)
        ids = greedy_decode(target.model, src, max_new_tokens=LONGEST, path="fast")
        result["splits"][split] = measured(agreements(model, src, ids))
    src = target.src_tokenizer.encode_batch([pair.src for pair in corpus["heldout"][:SAMPLED]])
    options = {"gamma": SAMPLED_GAMMA, "generator": torch.Generator().manual_seed(seed)}
    drawn = speculative_sample(target.model, model, src, max_new_tokens=LONGEST, **options)
    alpha = drawn.acceptance
    numbers = {
        "tokens per call": drawn.tokens_per_call,
        "acceptance": alpha,
        "formula": tokens_per_call(alpha, SAMPLED_GAMMA),
    }
    result["sampled"] = {"gamma": SAMPLED_GAMMA} | {name: round(value, 4) for name, value in numbers.items()}
    return result


def short_run(kind: str) -> float:
    """Return the share of agreements on 50 held-out sentences of a draft trained for 20 steps: quick to repeat."""
    corpus, target = load_corpus("context"), load_trained()
    draft = train(Setup(kind, 0), corpus, count=SHORT_PAIRS)
    model = draft.model if isinstance(draft, Translator) else draft
    src = target.src_tokenizer.encode_batch([pair.src for pair in corpus["heldout"][:50]])
    ids = greedy_decode(target.model, src, max_new_tokens=LONGEST, path="fast")
    return round(agreement(agreements(model, src, ids)), 4)


def run_setup(setup: Setup, corpus: Corpus, target: Translator, saving: tuple[Path, str] | None) -> dict[str, Any]:
    """Train and measure one draft; `saving` says where it is saved and which command has made it."""
    draft = train(setup, corpus)
    if saving and isinstance(draft, Translator):
        draft.save(saving[0], command=saving[1], seed=setup.seed)
    return measure(target, draft, corpus, setup.seed)


def steps(seeds: Sequence[int], weights: Path) -> Steps:
    """Train every kind of draft with every seed; the first draft goes to `weights`."""
    corpus, target, saving = load_corpus("context"), load_trained(), (weights, STUDY.head(seeds)["command"])
    yield Step("target parameters", count_parameters, target.model)
    for kind in KINDS:
        yield Step(("short", kind), short_run, kind)
    for seed, kind in itertools.product(seeds, KINDS):
        setup, first = Setup(kind, seed), (kind, seed) == (KINDS[0], seeds[0])
        yield Step(("runs", setup), run_setup, setup, corpus, target, saving if first else None)


WEIGHTS = {"weights": {"type": Path, "default": TRAINED["draft"]}}
STUDY = Study("speculation", __doc__, steps, by_seed=True, options=WEIGHTS, indent=1)


if __name__ == "__main__":
    STUDY.command()
