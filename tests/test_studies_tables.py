"""The study of tables: its layer against the library's parts, its controls, and a short run that must repeat."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from studies import tables as study
from transformer_lib.course.lab import tables as study_lab

COMMAND = "python -m studies.tables --seeds 0 1 2"


STORED = study_lab.load_results()


def library_logits(models: study.Layer, model: int, pair: tuple[int, int]) -> torch.Tensor:
    """Compute one pair's logits with the library's attention and feed-forward network, token by token."""
    setup, w = models.setup, {name: weight[model].detach() for name, weight in models.weights.items()}
    tokens = torch.stack([w["first"][pair[0]], w["second"][pair[1]], w["ask"][0]])[None]
    inside = setup.head * setup.n_heads
    attention = tl.MultiHeadAttention(study_lab.WIDTH, setup.n_heads, d_k=setup.head, d_v=setup.head, bias=False)
    assert attention.w_q.weight.shape == (inside, study_lab.WIDTH)
    for name in ("w_q", "w_k", "w_v", "w_o"):
        getattr(attention, name).weight.data = w[name].T
    x = (tokens + attention(tokens, tokens, tokens))[0, 2]
    if setup.d_ff:
        network = tl.FeedForward(study_lab.WIDTH, setup.d_ff)
        network.expand.weight.data, network.expand.bias.data = w["w_1"].T, w["b_1"][0]
        network.contract.weight.data, network.contract.bias.data = w["w_2"].T, w["b_2"][0]
        x = x + network(x)
    return x @ w["readout"]


@pytest.mark.parametrize("setup", [study_lab.Setup(5), study_lab.Setup(3, 7), study_lab.Setup(3, n_heads=5, head=3)])
def test_the_layer_is_made_of_the_librarys_parts(setup):
    models = study.Layer(setup, [4, 9])
    logits, n = models.logits(), setup.symbols
    for model, a, b in ((0, 0, 0), (0, n - 1, 1), (1, 1, n - 1)):
        torch.testing.assert_close(
            logits[model, a * n + b], library_logits(models, model, (a, b)), rtol=1e-4, atol=1e-5
        )


def test_weights_are_counted():
    for setup in (study_lab.Setup(5, 11), study_lab.Setup(5, n_heads=3), study_lab.Setup(5)):
        names = {"w_q", "w_k", "w_v", "w_o", "w_1", "b_1", "w_2", "b_2"}
        weights = study.Layer(setup, [0]).weights
        assert sum(weights[name].numel() for name in names & weights.keys()) == setup.parameters


def test_the_rivals_are_as_large_as_64_hidden_units():
    full = study_lab.Setup(32, 64).parameters
    assert study_lab.Setup(32, 64, relu=False).parameters == full
    assert study_lab.Setup(32, n_heads=6).parameters == pytest.approx(full, rel=0.03)
    assert (
        study_lab.Setup(32, n_heads=24, head=study_lab.NARROW).parameters == study_lab.Setup(32, n_heads=6).parameters
    )


def test_without_the_bend_two_maps_are_one():
    models = study.Layer(study_lab.Setup(3, 7, relu=False), [2])
    w = models.weights
    one_map = torch.eye(study_lab.WIDTH) + w["w_1"] @ w["w_2"]
    torch.testing.assert_close(models.logits(), models.attended() @ one_map @ w["readout"], rtol=1e-4, atol=1e-5)


def test_models_of_one_seed_have_the_same_table_and_learn_as_if_alone():
    alone, beside = study.Layer(study_lab.Setup(5, 4), [7]), study.Layer(study_lab.Setup(5, 64), [3, 7])
    assert torch.equal(alone.table[0], beside.table[1])
    found = study.train(study_lab.Setup(5, 8), 1e-2, [3, 7], budgets=(20, 60))
    assert [row[1] for row in found] == [
        row[0] for row in study.train(study_lab.Setup(5, 8), 1e-2, [7], budgets=(20, 60))
    ]


def test_training_stops_when_everything_is_known():
    found = study.train(study_lab.Setup(2, 16), 1e-2, [0, 1], budgets=(300, 10**9))
    assert found == [[4, 4], [4, 4]]


def test_a_short_run_finds_what_is_stored():
    setup = study_lab.Setup(16, 64)
    [record] = [run for run in STORED["runs"] if study_lab.Setup(**{f: run[f] for f in vars(setup)}) == setup]
    assert study.train(setup, 1e-2, [0, 1, 2], budgets=(1000,)) == record["learned"]["0.01"][:1]


def test_shares_are_those_of_the_best_rate():
    run = {
        "symbols": 5,
        "d_ff": 0,
        "n_heads": 2,
        "relu": True,
        "head": 8,
        "learned": {"1": [[5, 10], [25, 0]], "2": [[0, 5], [25, 5]]},
    }
    content = {"budgets": [1000, 5000], "runs": [run]}
    assert study_lab.shares(content, study_lab.Setup(5), 1000) == [0.2, 0.4]
    assert study_lab.shares(content, study_lab.Setup(5)) == [1.0, 0.2]
