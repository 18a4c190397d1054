"""The ring study: its task, its kinds, what it measures, a short run that repeats the stored one, what is stored."""

from __future__ import annotations

import json
import sys

import pytest
import torch

from transformer_lib.course.studies import ring as study


@pytest.fixture(scope="module")
def stored() -> dict:
    return study.load_results()


def _batch(models: study.Ring, size: int = 5) -> tuple[torch.Tensor, ...]:
    return study.batch([torch.Generator().manual_seed(seed) for seed, _ in enumerate(models.generators)], size)


def test_a_token_must_name_the_colour_of_the_next_symbol():
    symbol, colour, target = study.batch([torch.Generator().manual_seed(3)], 7)
    for symbols, colours, targets in zip(symbol[0].tolist(), colour[0].tolist(), target[0].tolist(), strict=True):
        assert sorted(symbols) == list(range(study.SYMBOLS))
        assert targets == [colours[symbols.index((one + 1) % study.SYMBOLS)] for one in symbols]


@pytest.mark.parametrize("kind", ["long vectors", "similarity", "others only", "even"])
def test_without_matrices_the_weights_round_the_ring_have_equal_products(kind):
    models = study.Ring(kind, [3, 5]).train(7)
    symbol, colour, _ = _batch(models)
    weights = models.weights(models.tokens(symbol, colour)).double()
    ahead = (symbol[..., None, :] - symbol[..., :, None]) % study.SYMBOLS
    forward, back = (weights.masked_fill(ahead != step, 1).log().sum(dim=(-2, -1)) for step in (1, 7))
    torch.testing.assert_close(forward, back, atol=1e-4, rtol=1e-4)


def test_with_matrices_they_have_not():
    models = study.Ring("weighted", [3]).train(100)
    symbol, colour, _ = _batch(models)
    weights = models.weights(models.tokens(symbol, colour))
    ahead = (symbol[..., None, :] - symbol[..., :, None]) % study.SYMBOLS
    forward, back = (weights.masked_fill(ahead != step, 1).log().sum(dim=(-2, -1)) for step in (1, 7))
    assert (forward > back + 8).all()


def test_kinds_of_one_seed_start_alike():
    found = {kind: study.Ring(kind, [5]).parameters for kind in study.KINDS}
    for kind in study.KINDS:
        scale = study.KINDS[kind] / study.KINDS["similarity"]
        torch.testing.assert_close(found[kind]["symbols"], scale * found["similarity"]["symbols"])
        torch.testing.assert_close(found[kind]["w_1"], found["similarity"]["w_1"])
    assert {"w_q", "w_k"} <= set(found["weighted"]) and len(found["similarity"]) == 4
    assert found["long vectors"]["symbols"].detach().norm(dim=-1).mean() == pytest.approx(32**0.5, rel=0.1)


def test_even_weights_and_nothing_on_oneself():
    even, others = study.Ring("even", [3]), study.Ring("others only", [3])
    symbol, colour, _ = _batch(even)
    assert (even.weights(even.tokens(symbol, colour)) == 1 / study.SYMBOLS).all()
    assert (others.weights(others.tokens(symbol, colour)).diagonal(dim1=-2, dim2=-1) == 0).all()


def test_a_model_learns_the_same_alone_and_beside_others():
    alone, beside = study.Ring("similarity", [7]).train(5), study.Ring("similarity", [3, 7]).train(5)
    for name, parameter in alone.parameters.items():
        torch.testing.assert_close(beside.parameters[name][1:], parameter, atol=1e-4, rtol=1e-4)


def test_weights_by_symbol_are_read_off_each_sequence():
    symbol = torch.tensor([[[2, 0, 1], [1, 2, 0]]])
    table = torch.arange(9.0).reshape(3, 3)  # what symbol s gives to symbol t
    weights = table[symbol[..., :, None], symbol[..., None, :]]
    torch.testing.assert_close(study._mean_by_symbol(weights, symbol), table[None])


def test_without_a_lean_next_and_previous_share_their_sum():
    models = study.Ring("weighted", [3]).train(20)
    symbol, colour, _ = _batch(models)
    weights = models.weights(models.tokens(symbol, colour))
    equal = study._without_lean(weights, symbol)
    ahead = (symbol[..., None, :] - symbol[..., :, None]) % study.SYMBOLS
    torch.testing.assert_close(equal.sum(dim=-1), weights.sum(dim=-1))
    torch.testing.assert_close((equal * (ahead == 1)).sum(dim=-1), (equal * (ahead == 7)).sum(dim=-1))
    others = (ahead != 1) & (ahead != 7)
    torch.testing.assert_close(equal[others], weights[others])


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match=r"kind must be one of 'even', .*, got 'odd'"):
        study.Ring("odd", [0])


def test_a_short_run_repeats_the_stored_one(stored):
    found = study.Ring("weighted", stored["seeds"][:2]).train(400).examine()
    wanted = stored["found"]["weighted"]["400"]
    for name in ("right", "next", "previous", "own"):
        assert found[name] == pytest.approx(wanted[name][:2], abs=0.03)


def test_the_stored_study_is_complete_and_says_what_the_notebook_says(stored):
    assert stored["command"] == "python -m transformer_lib.course.studies.ring --seeds 0 1 2 3 4"
    assert list(stored["found"]) == list(study.KINDS)
    for of_kind in stored["found"].values():
        assert list(of_kind) == [str(steps) for steps in study.BUDGETS]
        assert all(len(values) == 5 for one in of_kind.values() for values in one.values())
    pointless = [stored["found"][kind]["3000"] for kind in ("similarity", "others only")]
    for found in pointless:
        assert min(found["right"]) > 7 / 8 + 1 / 32
        assert found["next"] == pytest.approx(found["previous"], abs=0.02)
    others = pointless[1]
    assert min(others["right"]) > 0.999 and 0.4 < min(others["equal"]) < max(others["equal"]) < 0.55
    assert 0.64 < min(others["usual"]) < max(others["usual"]) < 0.91
    for ahead, behind in zip(others["next of each"][:3], others["previous of each"][:3], strict=True):
        assert sum(a > b for a, b in zip(ahead, behind, strict=True)) == 4


def test_the_command_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    path, calls = tmp_path / "ring.json", []
    monkeypatch.setattr(study, "KINDS", {"even": 0.2})
    monkeypatch.setattr(study, "BUDGETS", (1, 2))

    def train(models, steps):
        calls.append(steps)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return models

    monkeypatch.setattr(study.Ring, "train", train)
    monkeypatch.setattr(study.Ring, "examine", lambda models: {"right": [0.123456], "next of each": [[1 / 3]]})
    monkeypatch.setattr(sys, "argv", ["ring", "--seeds", "7", "--results", str(path)])
    with pytest.raises(KeyboardInterrupt):
        study.main()
    study.main()
    assert calls == [1, 2, 2]
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["found"]["even"]["1"] == {"right": [0.1235], "next of each": [[0.3333]]}
    assert capsys.readouterr().out == "even 1 [0.1235]\neven 2 [0.1235]\n"
