"""The study of roles: its task, its versions, a short run that must repeat the stored one, and what is stored."""

from __future__ import annotations

import json
import sys

import pytest
import torch

from transformer_lib.course.studies import roles as study


@pytest.fixture(scope="module")
def stored() -> dict:
    return study.load_results()


def test_a_token_has_to_name_the_colour_of_the_next_symbol():
    found = study.sentences(3, torch.Generator().manual_seed(7))
    for x, symbol, colour, answer in zip(*found, strict=True):
        assert sorted(symbol.tolist()) == list(range(study.SYMBOLS))
        assert x[:, : study.SYMBOLS].argmax(dim=-1).equal(symbol) and x[:, study.SYMBOLS :].argmax(dim=-1).equal(colour)
        assert (x.sum(dim=-1) == 2).all()
        colours = dict(zip(symbol.tolist(), colour.tolist(), strict=True))
        assert answer.tolist() == [colours[(one + 1) % study.SYMBOLS] for one in symbol.tolist()]


def test_the_versions_differ_in_what_they_say():
    x = study.sentences(2, torch.Generator().manual_seed(3)).x
    parts = {version: study.Heads(version, 5, [11]).project(x) for version in study.WIDTHS}
    query, key, value = parts["three matrices"]
    assert key.shape == (1, 2, 8, 5) and not torch.equal(query, key)
    for version, (_, other, _) in parts.items():
        assert torch.equal(other, key) or version == "no projections"
    assert torch.equal(parts["Q = K"][0], key) and torch.equal(parts["Q = K, not itself"][0], key)
    assert torch.equal(parts["Q = K, turned"][0], key[..., [4, 0, 1, 2, 3]])
    assert torch.equal(parts["V = K"][0], query) and torch.equal(parts["V = K"][2], key)
    assert torch.equal(parts["no projections"][0], x[None]) and torch.equal(parts["no projections"][2], value)


def test_symmetric_scores_and_no_weight_on_itself():
    x = study.sentences(2, torch.Generator().manual_seed(3)).x
    for version in ("Q = K", "Q = K, turned", "Q = K, not itself"):
        query, key, _ = (heads := study.Heads(version, 4, [0])).project(x)
        scores = query @ key.mT
        assert torch.allclose(scores, scores.mT, atol=1e-6) == (version != "Q = K, turned")
        own = heads.weights(query, key).diagonal(dim1=-2, dim2=-1)
        assert bool((own == 0).all()) == (version == "Q = K, not itself")


def test_no_symmetric_head_looks_ahead_in_a_whole_sentence():
    """The proof of notebook 03, on the sentences themselves; a head with three matrices does it."""
    found = study.tested()
    position = found.symbol.argsort(dim=-1)
    ahead, behind = (position.gather(-1, (found.symbol + step) % study.SYMBOLS)[..., None] for step in (1, -1))
    for version in ("three matrices", "Q = K", "Q = K, not itself"):
        weights = study.Heads(version, 4, [6]).train(200).attend(found.x)[0][0]
        looking = (weights.gather(-1, ahead) > weights.gather(-1, behind)).sum(dim=(1, 2))
        assert looking.max() == 8 if version == "three matrices" else looking.max() <= 7


def test_a_head_learns_the_same_alone_and_beside_others():
    alone, beside = (study.Heads("Q = K", 3, seeds).train(11).matrices["V"] for seeds in ([7], [3, 7]))
    torch.testing.assert_close(beside[1:], alone, atol=1e-4, rtol=1e-4)
    assert not torch.allclose(beside[0], beside[1])


def test_weights_by_symbol_and_who_looks_ahead():
    heads = study.Heads("three matrices", 8, [0, 1])
    with torch.no_grad():
        for name, matrix in heads.matrices.items():
            matrix.zero_()
            if name == "Q":  # the first head looks ahead, the second behind
                matrix[0, 0, :8] = 30 * torch.eye(8).roll(1, dims=1)
                matrix[1, 0, :8] = 30 * torch.eye(8).roll(-1, dims=1)
            if name == "K":
                matrix[:, 0, :8] = torch.eye(8)
    found = heads.by_symbol()
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(2, 8))
    assert found[0].argmax(dim=-1).tolist() == [1, 2, 3, 4, 5, 6, 7, 0] and study.looking_ahead(found) == [8, 0]
    assert heads.moved_by_colours() == [0, 0]


def test_an_unknown_version_is_refused():
    with pytest.raises(ValueError, match=r"version must be one of 'three matrices', .*, got 'K = Q'"):
        study.Heads("K = Q", 5, [0])


def test_a_short_run_repeats_the_stored_one(stored):
    for version, d_k, places in (("Q = K", 4, [5, 6]), ("V = K", 4, [0, 1])):
        seeds = [stored["seeds"][place] for place in places]
        found = study.Heads(version, d_k, seeds).train(300).share_right()
        wanted = [stored["versions"][version][str(d_k)]["300"]["right"][place] for place in places]
        assert found == pytest.approx(wanted, abs=0.02)


def test_the_stored_study_is_complete(stored):
    assert stored["command"] == "python -m transformer_lib.course.studies.roles --seeds 0 1 2 3 4 5 6 7"
    assert stored["budgets"] == list(study.BUDGETS) and stored["rate"] == study.RATE
    assert list(stored["versions"]) == list(study.WIDTHS)
    for version, widths in stored["versions"].items():
        assert list(widths) == [str(d_k) for d_k in study.WIDTHS[version]]
        for budgets in widths.values():
            assert list(budgets) == [str(steps) for steps in study.BUDGETS]
            for found in budgets.values():
                assert list(found) == ["right", "moved by colours", "looking ahead"]
                assert all(len(values) == 8 and min(values) >= 0 for values in found.values())


def test_what_the_notebook_says_of_it(stored):
    """The sentences of notebook 03, sections 5 and 6, that the tables beside them show."""

    def right(version, d_k, steps):
        return sorted(stored["versions"][version][str(d_k)][str(steps)]["right"])

    tied = [right("Q = K", d_k, steps) for d_k in (4, 8, 12) for steps in study.BUDGETS]
    assert sum(share > 0.6 for shares in tied[1::2] for share in shares) == 1 and max(map(max, tied)) < 29 / 32
    best = stored["versions"]["Q = K"]["4"]["1500"]
    assert best["looking ahead"][max(range(8), key=best["right"].__getitem__)] == 7
    assert all(min(right("Q = K, turned", d_k, steps)) > 0.99 for d_k in (4, 8) for steps in study.BUDGETS)
    assert min(right("Q = K, not itself", 8, 300)) > 0.75 and min(right("Q = K, not itself", 8, 1500)) > 0.84
    assert max(right("V = K", 2, 1500)) < 0.6 and min(right("three matrices", 2, 300)) > 0.99
    assert [share > 0.99 for share in right("V = K", 3, 1500)] == [False] * 7 + [True]
    assert min(right("V = K", 4, 1500)) > 0.99 and max(right("V = K", 3, 300)) < 0.73


def test_the_command_goes_on_where_it_stopped(tmp_path, monkeypatch, capsys):
    path, calls = tmp_path / "roles.json", []
    monkeypatch.setattr(study, "WIDTHS", {"Q = K": (3, 5)})

    def measured(version, d_k, seeds):
        calls.append(d_k)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return {"300": {"right": [0.5 for _ in seeds]}}

    monkeypatch.setattr(study, "measure", measured)
    monkeypatch.setattr(sys, "argv", ["roles", "--seeds", "7", "--results", str(path)])
    with pytest.raises(KeyboardInterrupt):
        study.main()
    study.main()
    assert calls == [3, 5, 5]
    wanted = {"300": {"right": [0.5]}}
    assert json.loads(path.read_text(encoding="utf-8"))["versions"] == {"Q = K": {"3": wanted, "5": wanted}}
    assert capsys.readouterr().out.splitlines() == [f"Q = K 3 {wanted}", f"Q = K 5 {wanted}"]


def test_a_measurement_has_both_budgets(monkeypatch):
    monkeypatch.setattr(study, "BUDGETS", (2, 3))
    found = study.measure("V = K", 2, [0, 5])
    assert list(found) == ["2", "3"] and all(len(values) == 2 for values in found["3"].values())
