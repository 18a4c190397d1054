"""What holds for every study: what is quick to measure is found again; a tiny run has the form of the stored one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import reduce
from operator import getitem
from typing import Any

import pytest
import torch

from factories import make_config
from read_once import CORPUS, TRAINED
from studies import ablations, chains, decoding, depth, engine, hops, masks, memory_masks, recall, ring, senses, tables
from studies.engine import MISSING, Step, Study
from studies.ladder_models import Reader
from test_studies_engine import STUDIES, written
from transformer_lib.course.clinic import recipe as clinic
from transformer_lib.course.lab import depth as depth_lab
from transformer_lib.course.lab import (
    extrapolation,
    fetching,
    gradient_slips,
    ladder,
    look_back,
    peeking,
    roles,
    scaling,
    sense_vectors,
    storyteller,
    translators,
)
from transformer_lib.course.lab import keys as told_keys
from transformer_lib.data.corpora import CONTEXT_SPLITS, Corpus

QUICK = {"short", "losses", "rules", "rules, distinct", "bytes", "arrays", "chance", "ngrams", "grammar"}
QUICK |= {"parameters", "target parameters", "references", "majority"}
# Short runs repeat within these tolerances, on other processors too; all else that is quick, to the digit.
TOLERANCE = {"blind": 2e-3, "eight_bits": 1e-4, "embedding_scale": 2e-3, "one_change": 0.02, "patches": 2e-3}
TOLERANCE |= {"speculation": 0.02}


def steps_of(study: Study, stored: dict[str, Any]) -> Iterator[tuple[Step, Any]]:
    """Every step of a study with its stored result; none is run."""
    options = {name: how["default"] for name, how in study.options.items()}
    steps, turns = study.steps(engine._seeds_in(study.path), **options), Counter()
    result = None
    while step := engine._next(steps, result):
        result = engine._find(stored, step.where, turns) if step.where else stored
        assert result is not MISSING
        yield step, result


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_the_file_has_nothing_that_its_study_does_not_measure(study):
    stored, measured = written(study.path), {}
    for step, _ in steps_of(study, stored):
        for level, key in enumerate(step.where):
            measured.setdefault(step.where[:level], []).append(key)
    for where, keys in measured.items():
        inside = reduce(getitem, where, stored)
        if isinstance(inside, list):
            assert len(inside) == len(keys), where
        else:
            assert set(inside) == set(keys) | (set(study.head(())) if not where else set()), where


def leaves(content: Any, where: tuple = ()) -> dict[tuple, Any]:
    """{where it is: number or word} of nested dictionaries and lists."""
    if not isinstance(content, (dict, list)):
        return {where: content}
    inside = content.items() if isinstance(content, dict) else enumerate(content)
    return {key: leaf for name, each in inside for key, leaf in leaves(each, (*where, str(name))).items()}


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_what_is_quick_to_measure_is_found_again(study):
    for step, stored in steps_of(study, written(study.path)):
        if step.where[:1] == ("short",):
            tolerance = TOLERANCE.get(study.name, 5e-3)
            assert leaves(step.run()) == pytest.approx(leaves(stored), abs=tolerance, rel=1e-3), step.where
        elif step.where[:1] and step.where[0] in QUICK:
            assert step.run() == stored, step.where


def form(content: Any, but: Collection[str] = (), *, lengths: bool = True) -> Any:
    """What a result is made of: its keys `but` these, the forms in its lists and how long these are; no numbers."""
    if isinstance(content, dict):
        return tuple((name, form(value, lengths=lengths)) for name, value in content.items() if name not in but)
    if isinstance(content, (list, tuple)):
        inside = list(dict.fromkeys(str(form(value, lengths=lengths)) for value in content))
        return inside, len(content) if lengths else ...
    return "word" if isinstance(content, str) else "number"


def untrained(self, *_, **__):
    return self


def two_steps(model, loss_of, steps, *more):
    return descend(model, loss_of, 2, *more)


def only_watch(model, loss_of, steps, rate, warmup, watch):
    for step in range(steps + 1):
        watch(step, model)


def clinic_run(name, seed, recipe=None):
    return trained(name, seed, replace(recipe or clinic.Recipe(), steps=2))


def run_by_hand(slip, seed, steps, **more):
    return by_hand(slip, seed, steps if "stop" in more else 2, **more)


LAB = "transformer_lib.course.lab"
descend, trained, by_hand, search = chains.descend, clinic.trained, gradient_slips.run, decoding.search
reverser, masked, learn, tables_train = depth.train_reverser, memory_masks.train, scaling.Lookup.train, tables.train
SENTENCES = Corpus("context", dict.fromkeys(CONTEXT_SPLITS, CORPUS["train"][:48]))
TINY = {  # what is replaced so that a run takes moments
    "chains": {"studies.chains.descend": only_watch},
    "circuit": {
        **{f"{LAB}.copying.{name}": value for name, value in {"descend": two_steps, "TESTED": 13}.items()},
        **{f"{LAB}.circuit.STRINGS": 7, "studies.chains.descend": two_steps},
    },
    "clinic_catalogue": {"studies.clinic_catalogue.training.trained": clinic_run},
    "copying": {f"{LAB}.copying.descend": two_steps, f"{LAB}.copying.TESTED": 13},
    "decoding": {
        "studies.decoding.trained": lambda *_, **__: TRAINED,
        "studies.decoding.sampled": lambda *_, **__: 0.5,
        "studies.decoding.search": lambda translator, pairs: search(translator, pairs[:2]),
    },
    "depth": {"studies.depth.train_reverser": lambda setup, seed: reverser(setup, seed, 2)},
    "extrapolation": {f"{LAB}.extrapolation.train_copier": lambda scheme, *_: 2 * [extrapolation.Copier(scheme)]},
    "fetching": {f"{LAB}.fetching.Fetchers.train": untrained, "studies.fetching.split_x": lambda *_, **__: [0.5, 1]},
    "gradient_slips": {f"{LAB}.gradient_slips.run": run_by_hand},
    "hops": {"studies.hops.trained": lambda *_: [0.5]},
    "keys": {f"{LAB}.copying.descend": two_steps, f"{LAB}.copying.TESTED": 13},
    "look_back": {f"{LAB}.look_back.train_reader": lambda setup: 2 * [look_back.Reader(setup.scheme, setup.heads)]},
    "jobs": {f"{LAB}.jobs.train": lambda job, seed, rate, budgets: [torch.randn(456, 5) for _ in budgets]},
    "masks": {
        "studies.masks.train": lambda setup: (masks.new_model(setup.row, setup.seed).eval(), [1.0]),
        "studies.masks.sample": lambda *_: ["Der Mann sah das Ufer."],
    },
    "memory_masks": {"studies.memory_masks.train": lambda name, seed, _: masked(name, seed, 2)},
    "one_change": {f"{LAB}.one_stack.fit": lambda *_, **__: [1.0]},
    "patches": {"studies.patches.train": lambda *_: [1.0]},
    "peeking": {
        f"{LAB}.peeking.train": lambda masked, **_: peeking.Writer(masked=masked).requires_grad_(False),
    },
    "recall": {
        "studies.recall.train_readers": lambda kind, length, seed, budgets, rate=0, **start: (
            recall.Reader(kind, **start) for _ in budgets
        )
    },
    "ring": {"studies.ring.Ring.train": untrained},
    "roles": {f"{LAB}.roles.Heads.train": untrained},
    "scaling": {f"{LAB}.scaling.Lookup.train": lambda models, optimizer, rate, _: learn(models, optimizer, rate, 2)},
    "senses": {"studies.senses.train_tagger": lambda kind, *_: senses.SenseTagger(kind, 900, 46)},
    "stacks": {"studies.stacks.train_arm": lambda *_: [1.0], "studies.stacks.load_corpus": lambda _: SENTENCES},
    "storyteller": {
        "studies.storyteller.keep": lambda _: None,
        f"{LAB}.storyteller.train": lambda *_: storyteller.load(),
        f"{LAB}.storyteller.search": lambda *_: storyteller.text("heldout")[:103].tolist(),
    },
    "tables": {"studies.tables.train": lambda *given: tables_train(*given, budgets=(1, 2))},
    "word_classes": {f"{LAB}.word_classes.train": lambda *_, steps, **__: ({steps: torch.randn(22, 16)}, 1.0)},
}


@pytest.mark.parametrize("name", TINY)
def test_a_tiny_run_has_the_form_of_the_stored_one(name, monkeypatch):
    """A step of each kind and form that the file has."""
    for target, value in TINY[name].items():
        monkeypatch.setattr(target, value)
    [study], tried = [study for study in STUDIES if study.name == name], []
    for step, stored in steps_of(study, written(study.path)):
        own = () if isinstance(step.where[-1], (int, str)) else engine._fields(step.where[-1])
        wanted = step.where[0], form(stored, own)
        if step.where[0] not in QUICK | {"unreached", "translators"} and wanted not in tried:
            tried.append(wanted)
            assert form(step.run(), own) == wanted[1], step.where
    assert tried


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ablations.new_variant(None, "no decoder", 0), "name must be one of 'baseline', .*, got 'no decoder'"),
        (lambda: depth_lab.Block(True, "batch"), "norm must be one of 'none', 'post', 'pre', got 'batch'"),
        (lambda: extrapolation.Copier("alibi"), "scheme must be one of 'none', .*, got 'alibi'"),
        (lambda: fetching.Fetchers(5, [0]), "n_heads must divide 32, got 5"),
        (lambda: hops.Follower("four layers"), "shape must be one of 'one layer', .*, got 'four layers'"),
        (lambda: told_keys.new_model("all", 0), "who must be one of nobody, queries, keys, .*, got 'all'"),
        (lambda: ladder.find("15"), "name must be one of '02', .*, got '15'"),
        (lambda: Reader(make_config(), ("scaling", "magic")), "parts must be among projections, .*, got magic"),
        (lambda: look_back.Reader("alibi", 1), "scheme must be one of 'sinusoidal', .*, got 'alibi'"),
        (lambda: memory_masks.train("half", 0), "name must be one of 'no encoder, open', .*, got 'half'"),
        (lambda: recall.Reader("GRU"), "kind must be one of 'RNN', .*, got 'GRU'"),
        (lambda: ring.Ring("odd", [0]), "kind must be one of 'even', .*, got 'odd'"),
        (lambda: ring.Weights("none", ring.Ring("even", [0])), "version must be one of 'as it is', .*, got 'none'"),
        (lambda: roles.Heads("K = Q", 5, [0]), "version must be one of 'three matrices', .*, got 'K = Q'"),
        (lambda: scaling.Lookup(5, "halved", [0]), "version must be one of 'divided by √d_k', .*, got 'halved'"),
        (lambda: sense_vectors.sentences("money"), "word must be one of bank, bat, .*, got 'money'"),
        (lambda: senses.SenseTagger("three", 5, 7), "kind must be one of 'no layer', .*, got 'three'"),
        (lambda: translators.new_translator([], seed=0, kind="LSTM"), "kind must be one of 'transf.*, got 'LSTM'"),
    ],
)
def test_an_unknown_name_is_refused_with_those_that_there_are(call, message):
    with pytest.raises(ValueError, match=message):
        call()


SIDE_BY_SIDE = {
    "fetching": lambda seeds: fetching.Fetchers(2, seeds).train(11).weights,
    "ring": lambda seeds: ring.Ring("similarity", seeds).train(5).parameters,
    "roles": lambda seeds: roles.Heads("Q = K", 3, seeds).train(11).matrices,
    "scaling": lambda seeds: {"loss": scaling.curves(5, "divided by √d_k", "Adam", 1e-2, seeds, steps=11)[0]},
}


@pytest.mark.parametrize("models", SIDE_BY_SIDE.values(), ids=SIDE_BY_SIDE)
def test_a_model_learns_the_same_alone_and_beside_others(models):
    alone, beside = models([7]), models([3, 7])
    for name, one in alone.items():
        torch.testing.assert_close(beside[name][1:], one, atol=1e-4, rtol=1e-4)
        assert not torch.allclose(beside[name][0], beside[name][1])
