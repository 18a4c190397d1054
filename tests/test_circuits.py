"""Taking a model apart: its pieces sum to its logits, and what is replaced is what was named, and nothing else."""

from __future__ import annotations

import math

import pytest
import torch

import transformer_lib as tl
from factories import randomise

pytestmark = pytest.mark.fast
IDS = torch.tensor([[5, 7, 3, 9, 11, 4, 2], [1, 8, 8, 2, 6, 10, 0], [3, 3, 12, 7, 1, 0, 9]])
OTHER = IDS.flip(1)
EXACT = {"atol": 1e-12, "rtol": 1e-12}


def attention_only(position="learned", n_layers=2, norm_first=False):
    torch.manual_seed(0)
    options = {"position": position, "max_len": 11, "norm_first": norm_first}
    return randomise(tl.circuits.AttentionOnly(13, n_layers, 30, 3, **options)).double().eval()


def language_model(position="rotary", **options):
    torch.manual_seed(1)
    options = {"norm_first": True, "position": position, "attention_bias": True, "max_len": 11, **options}
    return randomise(tl.LanguageModel(13, 2, 30, 3, 17, **options)).double().eval()


MODELS = {
    "plain": attention_only,
    "norms": lambda: attention_only(norm_first=True),
    "three layers": lambda: attention_only(n_layers=3),
    "rotary": lambda: attention_only("rotary"),
    "relative": lambda: attention_only("relative"),
    "no positions": lambda: attention_only("none"),
    "language model": language_model,
    "sinusoidal": lambda: language_model("sinusoidal"),
    "no biases": lambda: language_model(bias=False, attention_bias=False),
}


@pytest.fixture(params=MODELS, scope="module")
def model(request):
    return MODELS[request.param]()


def by_hand(model, ids, changed=None):
    """The logits of a plain attention-only model, head by head in loops; `changed(layer, head, q, k, v, z)`."""
    x = model.embedding.weight[ids] + model.position.table[: ids.shape[1]]
    n, d_k = ids.shape[1], 10
    for number, layer in enumerate(model.layers):
        added = torch.zeros_like(x)
        for head in range(3):
            rows = slice(head * d_k, (head + 1) * d_k)
            q, k, v = (x @ w.weight[rows].T for w in (layer.w_q, layer.w_k, layer.w_v))
            if changed:
                q, k, v = changed(number, head, x, q, k, v)
            scores = (q @ k.mT / math.sqrt(d_k)).masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
            added = added + scores.softmax(-1) @ v @ layer.w_o.weight[:, rows].T
        x = x + added
    return x @ model.unembedding.weight.T


def test_the_model_is_what_it_says():
    model = attention_only()
    torch.testing.assert_close(model(IDS), by_hand(model, IDS), **EXACT)
    names = list(model.parameters())
    mine, theirs = (torch.autograd.grad(logits.square().sum(), names) for logits in (model(IDS), by_hand(model, IDS)))
    for one, other in zip(mine, theirs, strict=True):
        assert one.abs().max() > 1e-3
        torch.testing.assert_close(one, other, atol=1e-8, rtol=1e-9)


def test_a_norm_first_model_norms_before_each_layer_and_at_the_end():
    model = attention_only(n_layers=1, norm_first=True)
    x = model.embedding.weight[IDS] + model.position.table[:7]
    y = model.norms[0](x)
    x = x + model.layers[0](y, y, y, tl.causal_mask(7))
    torch.testing.assert_close(model(IDS), model.norm(x) @ model.unembedding.weight.T, **EXACT)


@pytest.mark.parametrize("position", ["learned", "rotary", "relative", "sinusoidal", "none"])
def test_no_row_sees_a_later_one(position):
    model, later = attention_only(position), IDS.clone()
    later[:, 4] = 12
    assert ((model(IDS) - model(later)).abs().amax(dim=(0, 2)) > 1e-9).tolist() == [False] * 4 + [True] * 3
    full = torch.ones(1, 1, 7, 7, dtype=torch.bool)
    assert ((model(IDS, full) - model(later, full)).abs().amax(dim=(0, 2)) > 1e-9).all()


def test_scores_of_heads_against_loops():
    torch.manual_seed(2)
    weights, periods = torch.rand(5, 3, 11, 11, dtype=torch.double).softmax(-1), [2, 3, 5, 7, 1]
    read = [[[], []] for _ in range(3)]
    for sequence in range(5):
        for head in range(3):
            for t in range(periods[sequence], 11):
                read[head][0].append(weights[sequence, head, t, t - periods[sequence] + 1])
            read[head][1].extend(weights[sequence, head, t, t - 1] for t in range(1, 11))
    wanted = torch.tensor([[sum(values) / len(values) for values in head] for head in read], dtype=torch.double)
    torch.testing.assert_close(tl.circuits.induction_score(weights, torch.tensor(periods)), wanted[:, 0], **EXACT)
    torch.testing.assert_close(tl.circuits.previous_token_score(weights), wanted[:, 1], **EXACT)
    same = tl.circuits.induction_score(weights, torch.tensor([3] * 5))
    torch.testing.assert_close(tl.circuits.induction_score(weights, 3), same, **EXACT)


def test_the_pieces_sum_to_the_stream_and_the_contributions_to_the_logits(model):
    run = tl.circuits.trace(model, IDS)
    torch.testing.assert_close(run.logits, model(IDS), **EXACT)
    torch.testing.assert_close(sum(run.pieces.values()), run.streams[-1], **EXACT)
    torch.testing.assert_close(sum(tl.circuits.contributions(model, IDS).values()), run.logits, **EXACT)
    of_letters = tl.circuits.contributions(model, IDS, OTHER)
    torch.testing.assert_close(sum(of_letters.values()), run.logits.gather(2, OTHER[..., None])[..., 0], **EXACT)
    assert tl.circuits.pieces(model, IDS).keys() == run.pieces.keys() <= of_letters.keys()


def test_the_names_of_the_pieces():
    heads = ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    assert list(tl.circuits.pieces(attention_only(), IDS)) == ["token", "position", *heads]
    named = list(tl.circuits.contributions(language_model(), IDS))
    ends = [[f"bias {i}", f"feed-forward {i}"] for i in (0, 1)]
    assert named == ["token", *heads[:3], *ends[0], *heads[3:], *ends[1], "norm bias"]


def test_each_piece_is_what_its_part_adds():
    model = language_model()
    run, layer = tl.circuits.trace(model, IDS), model.stack.layers[1]
    y = layer.self_attention_residual.norm(run.streams[1])
    output, weights = layer.self_attention(y, y, y, tl.causal_mask(7), return_weights=True)
    torch.testing.assert_close(run.weights[1], weights, **EXACT)
    added = sum(run.pieces[name] for name in ("1.0", "1.1", "1.2", "bias 1"))
    torch.testing.assert_close(added, output, **EXACT)
    v = layer.self_attention.split_heads(layer.self_attention.w_v(y))
    torch.testing.assert_close(run.heads[1], weights @ v, **EXACT)
    one = torch.zeros_like(output)
    one[..., 10:20] = run.heads[1][:, 1]
    torch.testing.assert_close(run.pieces["1.1"], one @ layer.self_attention.w_o.weight.T, **EXACT)
    before = run.streams[1] + output
    wide = layer.feed_forward(layer.feed_forward_residual.norm(before))
    torch.testing.assert_close(run.pieces["feed-forward 1"], wide, **EXACT)
    torch.testing.assert_close(run.pieces["token"], model.embedding(IDS) * 30**0.5, **EXACT)


def test_the_frozen_norm_is_the_norm_of_the_whole():
    model = language_model()
    run = tl.circuits.trace(model, IDS)
    x, norm = run.streams[-1], model.stack.norm
    piece, spread = run.pieces["1.2"], ((x - x.mean(-1, keepdim=True)) ** 2).mean(-1, keepdim=True).add(norm.eps).sqrt()
    wanted = norm.weight * (piece - piece.mean(-1, keepdim=True)) / spread @ model.embedding.weight.T
    torch.testing.assert_close(tl.circuits.contributions(model, IDS)["1.2"], wanted, **EXACT)


def test_the_logit_lens_ends_with_the_logits(model):
    lens = tl.circuits.logit_lens(model, IDS)
    torch.testing.assert_close(lens[-1], model(IDS), **EXACT)
    assert len(lens) == len(tl.circuits.trace(model, IDS).streams)


def test_the_logit_lens_is_a_model_that_ends_earlier():
    model = attention_only(n_layers=3, norm_first=True)
    lens = tl.circuits.logit_lens(model, IDS)
    for layers in (2, 1):
        model.layers, model.norms = model.layers[:layers], model.norms[:layers]
        torch.testing.assert_close(lens[layers], model(IDS), **EXACT)


def test_a_replaced_head_against_loops():
    model = attention_only()
    own, there = model.layers[0].w_o, tl.circuits.trace(model, OTHER)
    value = there.heads[0][:, 1]
    with tl.circuits.replace_head(model, 0, 1, value):
        patched = model(IDS)
        gradient = torch.autograd.grad(patched.square().sum(), own.weight)[0]
    x = model.embedding(IDS) + model.position.table[:7]
    heads = tl.circuits.trace(model, IDS).heads[0].clone()
    heads[:, 1] = value
    x = x + heads.transpose(1, 2).flatten(2) @ own.weight.T
    wanted = model.unembedding(x + model.layers[1](x, x, x, tl.causal_mask(7)))
    torch.testing.assert_close(patched, wanted, **EXACT)
    torch.testing.assert_close(gradient, torch.autograd.grad(wanted.square().sum(), own.weight)[0], atol=1e-9, rtol=0)
    assert (patched - model(IDS)).abs().max() > 1e-3  # and afterwards the model is as it was
    torch.testing.assert_close(model(IDS), by_hand(model, IDS), **EXACT)


def test_a_head_replaced_by_itself_changes_nothing(model):
    run = tl.circuits.trace(model, IDS)
    with tl.circuits.replace_head(model, 1, 2, run.heads[1][:, 2]):
        torch.testing.assert_close(model(IDS), run.logits, **EXACT)
    with tl.circuits.replace_head(model, 1, 2, lambda z: 2 * z):
        assert (model(IDS) - run.logits).abs().max() > 1e-6


def test_ablations(model):
    run = tl.circuits.trace(model, IDS)
    layer = len(run.heads) - 1
    for how, left in (("zero", 0.0), ("mean", run.pieces[f"{layer}.1"].mean(dim=(0, 1)))):
        with tl.circuits.ablate_head(model, layer, 1, how):
            found = tl.circuits.trace(model, IDS)
        name = f"{layer}.1"
        torch.testing.assert_close(found.pieces[name], torch.zeros(3, 7, 30).double() + left, **EXACT)
        same = {other: piece for other, piece in run.pieces.items() if other != name and "feed" not in other}
        for other, piece in same.items():  # the other pieces up to this head are as they were
            torch.testing.assert_close(found.pieces[other], piece, **EXACT)
        assert (found.logits - run.logits).abs().max() > 1e-4


@pytest.mark.parametrize("into", ["queries", "keys", "values"])
@pytest.mark.parametrize("sender", ["token", "position", "0.0", "0.2"])
def test_a_patched_path_against_loops(into, sender):
    model = attention_only(n_layers=3)
    here, there = (tl.circuits.trace(model, ids) for ids in (IDS, OTHER))

    def changed(layer, head, x, *projected):
        if (layer, head) != (1, 2):
            return projected
        x = x - here.pieces[sender] + there.pieces[sender]
        which = ["queries", "keys", "values"].index(into)
        weight = (model.layers[1].w_q, model.layers[1].w_k, model.layers[1].w_v)[which].weight[20:]
        return [x @ weight.T if number == which else each for number, each in enumerate(projected)]

    found = tl.circuits.patch_path(model, IDS, OTHER, sender=sender, layer=1, head=2, into=into)
    torch.testing.assert_close(found, by_hand(model, IDS, changed), **EXACT)
    moved = (found - here.logits).abs().max() > 1e-3
    assert moved == (sender != "position")  # positions are the same in both
    again = tl.circuits.patch_path(model, IDS, IDS, sender=sender, layer=1, head=2, into=into)
    torch.testing.assert_close(again, here.logits, **EXACT)


def test_paths_of_a_model_with_norms():
    model = language_model()
    found = [
        tl.circuits.patch_path(model, IDS, OTHER, sender="feed-forward 0", layer=1, head=0, into=into)
        for into in tl.circuits.INTO
    ]
    run, there = tl.circuits.trace(model, IDS), tl.circuits.trace(model, OTHER)
    layer = model.stack.layers[1]
    x = run.streams[1] - run.pieces["feed-forward 0"] + there.pieces["feed-forward 0"]
    changed = layer.self_attention_residual.norm(x)
    values = (changed @ layer.self_attention.w_v.weight[:10].T) + layer.self_attention.w_v.bias[:10]
    with tl.circuits.replace_head(model, 1, 0, run.weights[1][:, 0] @ values):
        torch.testing.assert_close(found[2], model(IDS), **EXACT)
    assert (found[0] - found[1]).abs().max() > 1e-4


def test_what_is_recovered():
    assert tl.circuits.recovered(3.0, 5.0, 1.0) == 0.5
    found = tl.circuits.recovered(torch.tensor([1.0, 5.0]), torch.tensor(5.0), torch.tensor(1.0))
    assert found.tolist() == [0.0, 1.0]


def test_a_model_in_training_mode_is_traced_without_dropout_and_stays_in_it():
    model = language_model(dropout=0.5).train()
    first, second = (tl.circuits.trace(model, IDS).logits for _ in range(2))
    assert torch.equal(first, second) and model.training and not first.requires_grad


@pytest.mark.parametrize("name", ["plain", "norms", "no positions", "no biases"])
def test_the_matrices_of_a_head_are_its_scores_and_what_it_adds(name):
    model = MODELS[name]() if name != "no biases" else language_model("none", bias=False, attention_bias=False)
    run = tl.circuits.trace(model, IDS)
    for layer in (0, 1):
        part = tl.circuits._layers(model)[layer]
        x = part.norm(run.streams[layer])
        for head in range(3):
            match, adds = tl.circuits.head_matrices(model, layer, head)
            scores = (x @ match @ x.mT).masked_fill(~torch.ones(7, 7).tril().bool(), -math.inf)
            torch.testing.assert_close(scores.softmax(dim=-1), run.weights[layer][:, head], **EXACT)
            added = run.weights[layer][:, head] @ x @ adds
            torch.testing.assert_close(added, run.pieces[f"{layer}.{head}"], **EXACT)


@pytest.mark.parametrize("name", ["rotary", "relative", "language model"])
def test_no_single_matrix_has_scores_with_positions_or_biases(name):
    with pytest.raises(ValueError, match="model must have neither biases in its attention nor positions"):
        tl.circuits.head_matrices(MODELS[name](), 0, 0)


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: tl.circuits.trace(tl.LanguageModel(13, 1, 8, 2, 8), IDS), ValueError, "norm_first=True"),
        (lambda m: tl.circuits.trace(torch.nn.Linear(2, 2), IDS), TypeError, "AttentionOnly or a LanguageModel, got L"),
        (lambda m: tl.circuits.ablate_head(m, 2, 0).__enter__(), ValueError, "layer must be less than 2, got 2"),
        (lambda m: tl.circuits.ablate_head(m, 0, 3).__enter__(), ValueError, "head must be less than 3, got 3"),
        (lambda m: tl.circuits.ablate_head(m, 0, 0, "odd").__enter__(), ValueError, "how must be one of"),
        (lambda m: tl.circuits.replace_head(m, 0, 0, 1.0).__enter__(), TypeError, "value must be a torch.Tensor"),
        (lambda m: tl.circuits.contributions(m, IDS, IDS[:, 1:]), ValueError, r"letters must have the shape of ids"),
        (lambda m: tl.circuits.contributions(m, IDS, IDS + 13), ValueError, r"letters must hold ids in \[0, 13\)"),
        (lambda m: tl.circuits.induction_score(torch.rand(2, 1, 5, 4), 2), ValueError, "weights must have shape"),
        (lambda m: tl.circuits.induction_score(torch.rand(2, 1, 5, 5), 5), ValueError, r"period must lie in \[1, 5\)"),
        (
            lambda m: tl.circuits.induction_score(torch.rand(2, 1, 5, 5), torch.tensor([2, 2, 2])),
            ValueError,
            r"period must be an int or have shape \[batch\] = \[2\]",
        ),
        (lambda m: tl.circuits.previous_token_score(torch.rand(2, 1, 1, 1)), ValueError, "at least 2 tokens"),
        (lambda m: m(torch.zeros(1, 12, dtype=torch.long)), ValueError, "ids has 12 tokens, more than max_len = 11"),
        (lambda m: attention_only("odd"), ValueError, "position must be one of"),
        (
            lambda m: tl.circuits.patch_path(m, IDS, OTHER, sender="1.0", layer=1, head=0, into="keys"),
            ValueError,
            "sender must be one of 'token', 'position', '0.0', '0.1', '0.2', got '1.0'",
        ),
        (
            lambda m: tl.circuits.patch_path(m, IDS, OTHER, sender="0.0", layer=1, head=0, into="key"),
            ValueError,
            "into must be one of 'queries', 'keys', 'values', got 'key'",
        ),
        (
            lambda m: tl.circuits.patch_path(m, IDS, OTHER[:, 1:], sender="0.0", layer=1, head=0, into="keys"),
            ValueError,
            "other must have the shape of ids",
        ),
    ],
)
def test_what_is_refused(act, error, message):
    with pytest.raises(error, match=message):
        act(attention_only())


def test_a_value_of_the_wrong_shape_is_refused():
    model = attention_only()
    with tl.circuits.replace_head(model, 0, 0, torch.zeros(3, 7, 11).double()), pytest.raises(ValueError, match="d_v"):
        model(IDS)
