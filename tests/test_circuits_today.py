"""Looking into `modern.LanguageModel`: against attention in loops, one head and one position at a time, in float64."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import transformer_lib as tl
from factories import randomise
from transformer_lib import modern
from transformer_lib.model import circuits as module

pytestmark = pytest.mark.fast
circuits = tl.circuits
SIZES = {"vocab_size": 23, "d_model": 13, "n_heads": 6, "n_layers": 3, "d_ff": 17, "n_kv_heads": 3, "d_head": 10}
IDS = torch.randint(23, (2, 7), generator=torch.Generator().manual_seed(1))
OTHER = torch.randint(23, (2, 7), generator=torch.Generator().manual_seed(2))
EXACT = {"atol": 1e-10, "rtol": 1e-10}
CHANGES = {
    "grouped": {},
    "one key head": {"n_kv_heads": 1},
    "all key heads": {"n_kv_heads": None},
    "normed queries and keys": {"qk_norm": True},
    "window": {"window": 3},
    "experts": {"feed_forward": "experts", "n_experts": 5, "experts_per_token": 3},
    "layer norm": {"norm": "layer", "feed_forward": "gelu"},
    "neighbours": {"pairs": "neighbours", "rope_base": 100.0},
    "untied": {"tied": False, "embedding_scale": 3.0},
}


def new(**changes):
    torch.manual_seed(0)
    return randomise(modern.LanguageModel(modern.Config(**SIZES | changes)), 2.0).double().eval()


@pytest.fixture(params=CHANGES, scope="module")
def model(request):
    return new(**CHANGES[request.param])


def turned(rows, config):
    """One head's queries or keys [n, d_head], pair by pair as complex numbers, by position times frequency."""
    width = rows.shape[1]
    apart = rows.unflatten(1, (2, -1)).transpose(1, 2) if config.pairs == "halves" else rows.unflatten(1, (-1, 2))
    frequency = torch.tensor([config.rope_base ** (-2 * j / width) for j in range(width // 2)], dtype=rows.dtype)
    angle = torch.arange(len(rows), dtype=rows.dtype)[:, None] * frequency
    found = torch.view_as_real(torch.view_as_complex(apart.contiguous()) * torch.polar(torch.ones_like(angle), angle))
    return (found.transpose(1, 2) if config.pairs == "halves" else found).flatten(1)


def head_by_hand(attention, config, head, streams, may):
    """One head of one sentence: what it gathers [n, d_head] and its weights [n, n]; streams are normed, by INTO."""
    width, shared = config.head_width, head // (config.n_heads // config.kv_heads)
    own, group = slice(head * width, (head + 1) * width), slice(shared * width, (shared + 1) * width)
    q, k, v = (
        streams[into] @ w.weight[rows].T
        for into, w, rows in (
            ("queries", attention.w_q, own),
            ("keys", attention.w_k, group),
            ("values", attention.w_v, group),
        )
    )
    q, k = turned(attention.q_norm(q), config), turned(attention.k_norm(k), config)
    gathered, weights = [], torch.zeros(len(q), len(q), dtype=q.dtype)
    for t in range(len(q)):
        first = 0 if config.window is None else max(0, t - config.window + 1)
        seen = [s for s in range(first, t + 1) if may[t, s]]
        if not seen:
            gathered.append(0 * v[t])
            continue
        row = (k[seen] @ q[t] / math.sqrt(width)).softmax(0)
        weights[t, seen] = row.detach()
        gathered.append(row @ v[seen])
    return torch.stack(gathered), weights


ALL = torch.ones(7, 7, dtype=torch.bool)


def by_hand(model, ids, *, may=None, read=None, gather=None, stream=None):
    """Logits, streams, and weights of each layer; each argument changes one thing of (layer, head)."""
    logits, streams, weights = [], [[] for _ in range(4)], [[] for _ in range(3)]
    for sentence in range(len(ids)):
        x = model.embedding.weight[ids[sentence]] * model.config.embedding_scale
        for number, block in enumerate(model.layers):
            x = stream(number, sentence, x) if stream else x
            streams[number].append(x)
            added, of_heads = torch.zeros_like(x), []
            for head in range(model.config.n_heads):
                normed = {
                    into: block.attention_norm(read(number, head, into, sentence, x) if read else x)
                    for into in circuits.INTO
                }
                allowed = may(number, head) if may else ALL
                z, w = head_by_hand(block.attention, model.config, head, normed, allowed)
                z = gather(number, head, sentence, z) if gather else z
                own = slice(head * 10, (head + 1) * 10)
                added = added + z @ block.attention.w_o.weight[:, own].T
                of_heads.append(w)
            weights[number].append(torch.stack(of_heads))
            x = x + added
            x = x + block.feed_forward(block.feed_forward_norm(x))
        streams[3].append(x)
        logits.append(model.norm(x) @ model.head.weight.T)
    return torch.stack(logits), [torch.stack(x) for x in streams], [torch.stack(w) for w in weights]


# The run itself ------------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_a_trace_is_the_run_in_loops_and_its_logits_are_the_models_bit_for_bit(model):
    logits, streams, weights = by_hand(model, IDS)
    run = circuits.trace(model, IDS)
    assert torch.equal(run.logits, model(IDS))
    for found, wanted in zip((run.logits, *run.streams, *run.weights), (logits, *streams, *weights), strict=True):
        torch.testing.assert_close(found, wanted, **EXACT)


@torch.no_grad()
def test_hooks_that_change_nothing_change_no_bit(model):
    wanted, run = model(IDS), circuits.trace(model, IDS)
    everything = [(layer, head) for layer in range(3) for head in range(6)]
    for nothing in (
        lambda: tl.record_attention(model),
        lambda: tl.record_attention(model, layer=2, query=6),
        lambda: tl.cut(model, mask=ALL),
        lambda: tl.cut(model, query=0, key=range(1, 7)),  # which nobody could read anyway
        lambda: tl.patch(model, "layers.1", run.streams[2], positions=[3]),
        lambda: circuits.replace_head(model, 1, 4, run.heads[1][:, 4]),
        lambda: circuits.replace_head(model, 1, 4, run.heads[1][:, 4], positions=6),
        lambda: circuits.ablate_heads(model, []),
        lambda: circuits.replace_input(model, everything, "keys", lambda x: x),
        lambda: circuits.replace_input(model, everything, "queries", lambda x: x),
        lambda: circuits.replace_input(model, [(1, 2)], "values", run.streams[1]),
    ):
        with nothing():
            assert torch.equal(model(IDS), wanted)
    assert torch.equal(model(IDS), wanted)
    assert not any(part._forward_hooks or part._forward_pre_hooks for part in model.modules())


@torch.no_grad()
def test_a_run_goes_on_from_its_middle(model):
    wanted, run = model(IDS), circuits.trace(model, IDS, keep="streams")
    for layer, stream in enumerate(run.streams):
        assert torch.equal(model.logits(model.continue_from(stream, layer)), wanted)
    cache = model.new_cache()
    model.continue_from(model.embed(IDS[:, :4]), cache=cache)
    twice = cache.repeated(2)
    tail = model.continue_from(run.streams[1][:, 4:].repeat(2, 1, 1), 1, cache=twice)
    torch.testing.assert_close(model.logits(tail), wanted[:, 4:].repeat(2, 1, 1), **EXACT)
    assert cache.length == 4 and len(cache.layers[0].kept[0]) == 2 and twice.layers[2].length == 7
    torch.testing.assert_close(model(IDS[:, 4:], cache), wanted[:, 4:], **EXACT)  # which is as it was


# Recording and cutting -----------------------------------------------------------------------------------------------


@torch.no_grad()
def test_only_what_is_asked_for_is_recorded_and_held(model):
    with tl.record_attention(model) as whole:
        model(IDS)
    assert list(whole) == [f"layers.{number}.attention" for number in range(3)]
    with tl.record_attention(model, layer=[0, 2], query=[6, 1]) as record:
        model(IDS)
    assert list(record) == ["layers.0.attention", "layers.2.attention"]
    for name, weights in record.items():
        torch.testing.assert_close(weights, whole[name][:, :, [6, 1]], **EXACT)
        assert weights.untyped_storage().nbytes() == 2 * 6 * 2 * 7 * 8
    run = circuits.trace(model, IDS, keep=("streams", "heads"), positions=6)
    assert run.pieces == {} and run.weights == [] and run.logits.shape == (2, 1, 23)
    for kept, numbers in ((run.streams, 2 * 13), (run.heads, 2 * 60)):
        assert [tensor.untyped_storage().nbytes() for tensor in kept] == [numbers * 8] * len(kept) and kept


@torch.no_grad()
def test_positions_of_a_trace_are_rows_of_the_whole(model):
    run, some = circuits.trace(model, IDS), circuits.trace(model, IDS, positions=[5, 2])
    pairs = [(some.logits, run.logits), *zip(some.streams, run.streams, strict=True)]
    pairs += [(some.pieces[name], run.pieces[name]) for name in run.pieces]
    for found, wanted in pairs:
        torch.testing.assert_close(found, wanted[:, [5, 2]], **EXACT)
    for found, wanted in (*zip(some.weights, run.weights, strict=True), *zip(some.heads, run.heads, strict=True)):
        torch.testing.assert_close(found, wanted[:, :, [5, 2]], **EXACT)


@pytest.mark.parametrize(
    "where",
    [
        {"key": 0, "query": range(1, 7)},
        {"query": 4, "key": [1, 3], "layer": 1},
        {"query": [4, 5], "layer": [0, 2], "head": [1, 5]},  # which read nothing at all
        {"key": [2, 6], "head": 3},
    ],
    ids=str,
)
def test_a_cut_acts_before_the_softmax(model, where):
    def chosen(name, count):
        value = where.get(name, range(count))
        return [value] if isinstance(value, int) else list(value)

    def may(layer, head):
        allowed = ALL.clone()
        if layer in chosen("layer", 3) and head in chosen("head", 6):
            allowed[torch.tensor(chosen("query", 7))[:, None], torch.tensor(chosen("key", 7))] = False
        return allowed

    wanted, _, weights = by_hand(model, IDS, may=may)
    with tl.cut(model, **where), tl.record_attention(model) as record:
        found = model(IDS)
    torch.testing.assert_close(found, wanted, **EXACT)
    for one, other in zip(record.values(), weights, strict=True):
        torch.testing.assert_close(one, other, **EXACT)
    assert (found - model(IDS)).abs().max() > 1e-4
    names = [*model.parameters()]
    for one, other in zip(*(torch.autograd.grad(x.square().sum(), names) for x in (found, wanted)), strict=True):
        torch.testing.assert_close(one, other, atol=1e-7, rtol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize("changes", ["grouped", "window"])
def test_a_text_that_grows_with_a_cache_is_cut_as_a_whole_one(changes):
    model = new(**CHANGES[changes])
    mask = torch.rand(7, 7, generator=torch.Generator().manual_seed(3)) < 0.6
    for where in ({"key": 2}, {"query": [3, 6], "key": [1, 2, 5]}, {"mask": mask}, {"mask": mask, "head": [0, 4]}):
        with tl.cut(model, **where):
            whole, cache = model(IDS), model.new_cache()
            parts = [model(part, cache) for part in IDS.split([3, 1, 1, 2], dim=1)]
        torch.testing.assert_close(torch.cat(parts, dim=1), whole, **EXACT)
        assert (whole - model(IDS)).abs().max() > 1e-4


@torch.no_grad()
def test_recording_while_a_text_grows():
    model = new()
    whole, cache = circuits.trace(model, IDS, keep="weights").weights, model.new_cache()
    with tl.record_attention(model, query=0) as record:
        model(IDS[:, :6], cache)
        model(IDS[:, 6:], cache)
    first, last = record.calls["layers.1.attention"]
    torch.testing.assert_close(last, whole[1][:, :, 6:], **EXACT)
    torch.testing.assert_close(first, whole[1][:, :, :1, :6], **EXACT)


# Pieces and what they say --------------------------------------------------------------------------------------------


@torch.no_grad()
def test_pieces_sum_to_the_stream_and_contributions_to_the_logits(model):
    run = circuits.trace(model, IDS)
    ends = [[*(f"{layer}.{head}" for head in range(6)), f"feed-forward {layer}"] for layer in range(3)]
    assert list(run.pieces) == ["token", *ends[0], *ends[1], *ends[2]]
    for layer in range(4):
        upto = ["token", *(name for names in ends[:layer] for name in names)]
        torch.testing.assert_close(sum(run.pieces[name] for name in upto), run.streams[layer], **EXACT)
    found = circuits.contributions(model, IDS)
    assert list(found) == [*run.pieces, *(["norm bias"] if model.config.norm == "layer" else [])]
    torch.testing.assert_close(sum(found.values()), run.logits, **EXACT)
    of_letters = circuits.contributions(model, IDS, OTHER[:, :2], positions=[6, 3])
    for name, each in found.items():
        wanted = each[:, [6, 3]].gather(2, OTHER[:, :2, None])[..., 0]
        torch.testing.assert_close(of_letters[name], wanted, **EXACT)
    some = circuits.pieces(model, IDS, names=["2.5", "token"], positions=6)
    assert list(some) == ["token", "2.5"]
    torch.testing.assert_close(some["2.5"], run.pieces["2.5"][:, 6:], **EXACT)


@torch.no_grad()
def test_the_frozen_rms_norm_divides_by_the_size_of_the_whole_and_centres_nothing():
    model = new(eps=0.3)
    run, found = circuits.trace(model, IDS), circuits.contributions(model, IDS)
    for sentence in range(2):
        for at in range(7):
            whole = run.streams[-1][sentence, at].tolist()
            size = math.sqrt(sum(v * v for v in whole) / 13 + 0.3)
            wanted = model.head.weight @ (model.norm.weight * run.pieces["1.4"][sentence, at] / size)
            torch.testing.assert_close(found["1.4"][sentence, at], wanted, **EXACT)


@torch.no_grad()
def test_the_lens_is_a_model_that_ends_earlier(model):
    lens = circuits.logit_lens(model, IDS)
    assert torch.equal(lens[-1], model(IDS))
    torch.testing.assert_close(circuits.logit_lens(model, IDS, positions=[5]), lens[:, :, 5:6], **EXACT)
    shorter = new(**{name: getattr(model.config, name) for name in CHANGES_OF}, n_layers=2)
    shorter.load_state_dict({name: w for name, w in model.state_dict().items() if not name.startswith("layers.2")})
    torch.testing.assert_close(lens[2], shorter(IDS), **EXACT)


CHANGES_OF = sorted({name for changes in CHANGES.values() for name in changes})


# Heads ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("positions", [None, 6, [2, 5]])
def test_a_replaced_head_against_loops(model, positions):
    value = circuits.trace(model, OTHER, keep="heads").heads[1][:, 4]
    rows = list(range(7)) if positions is None else positions

    def gather(layer, head, sentence, z):
        if (layer, head) == (1, 4):
            z = z.clone()
            z[rows] = value[sentence, rows]
        return z

    wanted = by_hand(model, IDS, gather=gather)[0]
    with circuits.replace_head(model, 1, 4, value, positions=positions):
        found = model(IDS)
    torch.testing.assert_close(found, wanted, **EXACT)
    weight = model.layers[0].attention.w_v.weight
    one, other = (torch.autograd.grad(logits.square().sum(), weight)[0] for logits in (found, wanted))
    assert one.abs().max() > 1e-4
    torch.testing.assert_close(one, other, atol=1e-7, rtol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize("how", ["zero", "mean"])
def test_several_heads_are_taken_out(model, how):
    gone = [(0, 1), (2, 5), (2, 0)]
    with circuits.ablate_heads(model, gone, how):
        run = circuits.trace(model, IDS)
    with circuits.ablate_heads(model, gone[:1], how):
        without_first = circuits.trace(model, IDS, keep="heads").heads
    kept = {0: circuits.trace(model, IDS).heads[0], 2: without_first[2]}
    for layer, head in gone:
        left = kept[layer][:, head].mean(dim=(0, 1)) if how == "mean" else torch.zeros(10).double()
        torch.testing.assert_close(run.heads[layer][:, head], left.expand(2, 7, 10), **EXACT)
    with circuits.ablate_head(model, 2, 3, how, positions=[6]):
        once = circuits.trace(model, IDS, keep="heads").heads[2][:, 3]
    own = circuits.trace(model, IDS, keep="heads").heads[2][:, 3]
    assert torch.equal(once[:, :6], own[:, :6])
    torch.testing.assert_close(once[:, 6], (own.mean((0, 1)) if how == "mean" else 0 * own[0, 0]).expand(2, 10))


@torch.no_grad()
def test_what_a_head_takes_from_one_token_alone(model):
    """The first row reads itself alone, with the weight 1."""
    run = circuits.trace(model, IDS)
    for layer, head in ((0, 0), (1, 3), (2, 5)):
        value = circuits.head_value(model, layer, head, run.streams[layer])
        torch.testing.assert_close(value[:, 0], run.heads[layer][:, head, 0], **EXACT)
        writes = circuits.head_writes(model, layer, head, run.streams[layer])
        torch.testing.assert_close(writes[:, 0], run.pieces[f"{layer}.{head}"][:, 0], **EXACT)
        with tl.cut(model, query=5, key=[0, 1, 2, 3, 5, 6], layer=layer):
            alone = circuits.trace(model, IDS, keep="heads").heads[layer][:, head, 5]
        torch.testing.assert_close(value[:, 4], alone, **EXACT)
    assert circuits.head_writes(model, 1, 2, model.embedding.weight).shape == (23, 13)


@pytest.mark.parametrize("into", circuits.INTO)
def test_named_heads_read_another_stream_and_those_that_share_their_keys_do_not(model, into):
    named, taken = [(1, 4), (1, 1), (2, 3)], torch.randn(2, 7, 13, dtype=torch.float64)

    def read(layer, head, what, sentence, x):
        return x - taken[sentence] if what == into and (layer, head) in named else x

    wanted = by_hand(model, IDS, read=read)[0]
    with circuits.replace_input(model, named, into, lambda x: x - taken):
        found = model(IDS)
    torch.testing.assert_close(found, wanted, **EXACT)
    assert (found - model(IDS)).abs().max() > 1e-4
    weight = model.embedding.weight
    one, other = (torch.autograd.grad(logits.square().sum(), weight)[0] for logits in (found, wanted))
    torch.testing.assert_close(one, other, atol=1e-7, rtol=1e-8)


@torch.no_grad()
@pytest.mark.parametrize("into", circuits.INTO)
@pytest.mark.parametrize("sender", ["token", "0.3"])
def test_a_patched_path_against_loops(model, into, sender):
    here, there = (circuits.trace(model, ids).pieces[sender] for ids in (IDS, OTHER))

    def read(layer, head, what, sentence, x):
        return x - here[sentence] + there[sentence] if (layer, head, what) == (2, 4, into) else x

    found = circuits.patch_path(model, IDS, OTHER, sender=sender, layer=2, head=4, into=into)
    torch.testing.assert_close(found, by_hand(model, IDS, read=read)[0], **EXACT)
    assert (found - model(IDS)).abs().max() > 1e-6


# Sweeps --------------------------------------------------------------------------------------------------------------

RIGHT, WRONG = torch.tensor([3, 11]), torch.tensor([7, 5])


def measure(logits):
    return circuits.logit_difference(logits, RIGHT, WRONG)


@torch.no_grad()
def test_each_place_of_the_stream_in_one_call(model):
    found = circuits.patch_streams(model, IDS, OTHER, measure)
    assert found.shape == (4, 7, 2)
    source = circuits.trace(model, OTHER, keep="streams").streams
    for layer in range(3):
        for at in range(7):

            def stream(number, sentence, x, layer=layer, at=at):
                if number == layer:
                    x = x.clone()
                    x[at] = source[layer][sentence, at]
                return x

            if (layer, at) in ((0, 6), (1, 3)):  # loops are slow
                torch.testing.assert_close(
                    found[layer, at], measure(by_hand(model, IDS, stream=stream)[0][:, -1]), **EXACT
                )
            if layer:
                with tl.patch(model, f"layers.{layer - 1}", source[layer], positions=at):
                    torch.testing.assert_close(found[layer, at], measure(model(IDS)[:, -1]), **EXACT)
    torch.testing.assert_close(found[3, :6], measure(model(IDS)[:, -1]).expand(6, 2), **EXACT)
    torch.testing.assert_close(found[3, 6], measure(model(OTHER)[:, -1]), **EXACT)
    last = circuits.patch_streams(model, IDS, OTHER, measure, layers=[2, 1], positions=[6, [4, 6], [5]])
    torch.testing.assert_close(last[:, [0, 2]], found[[2, 1]][:, [6, 5]], **EXACT)
    with tl.patch(model, "layers.1", source[2], positions=[4, 6]):
        torch.testing.assert_close(last[0, 1], measure(model(IDS)[:, -1]), **EXACT)


@torch.no_grad()
@pytest.mark.parametrize(("kind", "positions"), [("other", None), ("other", 6), ("zero", [3, 5]), ("mean", 6)], ids=str)
def test_each_head_in_one_call(model, kind, positions, monkeypatch):
    heads = circuits.trace(model, OTHER, keep="heads").heads
    values = {"other": heads, "zero": torch.zeros(()).double(), "mean": [z.mean(0) for z in heads]}[kind]
    found = circuits.patch_heads(model, IDS, values, measure, positions=positions)
    assert found.shape == (3, 6, 2)
    for layer in range(3):
        for head in range(6):
            full = (values if kind == "zero" else values[layer]).expand(2, 6, 7, 10)
            with circuits.replace_head(model, layer, head, full[:, head], positions=positions):
                torch.testing.assert_close(found[layer, head], measure(model(IDS)[:, -1]), **EXACT)
    monkeypatch.setattr(module, "TOKENS_AT_ONCE", 30)  # two copies of two sentences of 7 tokens
    some = circuits.patch_heads(model, IDS, values, measure, positions=positions)
    torch.testing.assert_close(some, found, **EXACT)
    moved = (found - measure(model(IDS)[:, -1])).abs().amax(-1)
    assert moved[:2].min() > 1e-9  # the last layer only where the last position is replaced


@torch.no_grad()
def test_sweeps_of_models_that_have_no_cache():
    torch.manual_seed(3)
    options = {"norm_first": True, "attention_bias": True}
    for model in (
        randomise(circuits.AttentionOnly(23, 2, 30, 3, norm_first=True)),
        randomise(tl.LanguageModel(23, 2, 30, 3, 17, **options)),
        randomise(tl.LanguageModel(23, 2, 30, 3, 17, position="sinusoidal", **options)),
    ):
        model.double().train()
        run = circuits.trace(model, OTHER)
        found = circuits.patch_heads(model, IDS, run.heads, measure, positions=6)
        streams = circuits.patch_streams(model, IDS, OTHER, measure, positions=[4, [5, 6]])
        assert model.training and streams.shape == (3, 2, 2)
        model.eval()
        for layer in range(2):
            for head in range(3):
                with circuits.replace_head(model, layer, head, run.heads[layer][:, head], positions=6):
                    torch.testing.assert_close(found[layer, head], measure(model(IDS)[:, -1]), **EXACT)
        changed = circuits.trace(model, IDS, keep="streams").streams[0].clone()
        changed[:, 5:] = run.streams[0][:, 5:]
        last = module._said(model, module._continued(model, changed, 0)[:, -1])
        torch.testing.assert_close(streams[0, 1], measure(last), **EXACT)
        torch.testing.assert_close(streams[2, 1], measure(model(OTHER)[:, -1]), **EXACT)
        torch.testing.assert_close(streams[2, 0], measure(model(IDS)[:, -1]), **EXACT)


@torch.no_grad()
@pytest.mark.parametrize("heading", ["Looking inside, and intervening", "Taking a model apart"])
def test_the_examples_of_the_page_run(heading):
    page = (Path(__file__).parents[1] / "docs" / "api" / "model.md").read_text(encoding="utf-8")
    code = page.partition(f"## {heading}\n")[2].partition("```python\n")[2].partition("```")[0]
    ids, other = (torch.randint(23, (2, 12), generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    names = {"tl": tl, "torch": torch, "model": new().float(), "ids": ids, "other": other, "right": 3, "wrong": 5}
    exec(compile(code, "model.md", "exec"), names)
    assert names["record"]["layers.2.attention"].shape == (2, 6, 1, 12) if "record" in names else names["moved"].any()


def test_ranks_and_differences():
    scores = torch.tensor([[0.2, 0.9, 0.1], [0.3, 0.0, 0.8]])
    assert circuits.ranked(scores)[:3] == [(0, 1), (1, 2), (1, 0)]
    logits = torch.arange(30.0).view(3, 2, 5) ** 2
    found = circuits.logit_difference(logits, torch.tensor([4, 1]), 2)
    assert found.tolist() == [
        [(logits[i, 0, 4] - logits[i, 0, 2]).item(), (logits[i, 1, 1] - logits[i, 1, 2]).item()] for i in range(3)
    ]


# What is refused -----------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_positions_are_refused_while_a_cache_grows_however_it_is_given():
    model = new()
    message = "positions must be None while decoding with a cache"
    for change in (
        lambda: tl.patch(model, "layers.1", lambda x: 0 * x, positions=0),
        lambda: circuits.replace_head(model, 1, 2, torch.zeros(()).double(), positions=0),
    ):
        for call in (lambda cache: model(IDS, cache), lambda cache: model(IDS, cache=cache)):
            with change(), pytest.raises(ValueError, match=message):
                call(model.new_cache())
    with circuits.replace_input(model, [(1, 2)], "keys", lambda x: 2 * x):
        cache = model.new_cache()
        model(IDS[:, :5], cache)
        with pytest.raises(ValueError, match="heads cannot read another input while decoding with a cache"):
            model(IDS[:, 5:], cache)


@torch.no_grad()
@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: tl.record_attention(m, layer=3), ValueError, "layer must be one that has attention, got 3"),
        (lambda m: tl.record_attention(m, query=-1), ValueError, "query must be at least 0, got -1"),
        (lambda m: tl.cut(m, key=0, layer=[1, 3]), ValueError, "layer must be less than 3, got 3"),
        (lambda m: tl.cut(m, key=0, head=6), ValueError, "head must be less than 6, got 6"),
        (lambda m: tl.cut(m, key=0, attention="cross"), ValueError, "model must have a module decoder.layers.0"),
        (lambda m: circuits.replace_head(m, 0, 6, ALL), ValueError, "head must be less than 6, got 6"),
        (lambda m: circuits.replace_input(m, [(3, 0)], "keys", ALL), ValueError, "layer must be less than 3"),
        (lambda m: circuits.replace_input(m, [(1, 0)], "key", ALL), ValueError, "into must be one of 'queries'"),
        (lambda m: circuits.replace_input(m, [(1, 0)], "keys", 1.0), TypeError, "value must be a torch.Tensor"),
    ],
)
def test_blocks_that_cannot_begin(act, error, message):
    with pytest.raises(error, match=message), act(new()):
        pass


@torch.no_grad()
@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda m: m.continue_from(m.embed(IDS), 4), ValueError, "layer must be at most n_layers = 3, got 4"),
        (lambda m: m.continue_from(m.embed(IDS)[0], 0), ValueError, "stream must have 3 axes"),
        (lambda m: m.continue_from(m.embed(IDS)[..., :5], 0), ValueError, "stream must end in d_model = 13"),
        (lambda m: m.new_cache().repeated(0), ValueError, "times must be at least 1, got 0"),
        (lambda m: m.layers[0].attention(m.embed(IDS), None, ALL[:5]), ValueError, "mask must broadcast to the scores"),
        (lambda m: m.layers[0].attention(m.embed(IDS), None, 1.0 * ALL), TypeError, "mask must be boolean"),
        (lambda m: circuits.trace(m, IDS, keep="stream"), ValueError, "keep must be one of 'pieces', 'streams'"),
        (lambda m: circuits.trace(m, IDS, positions=7), ValueError, "positions must be less than 7"),
        (lambda m: circuits.trace(m, IDS + 23), ValueError, r"ids must hold ids in \[0, 23\)"),
        (lambda m: circuits.pieces(m, IDS, names=["3.0"]), ValueError, "names must be one of 'token', '0.0'"),
        (
            lambda m: circuits.contributions(m, IDS, IDS, positions=6),
            ValueError,
            r"letters must have a column for each position, \(2, 1\), got \(2, 7\)",
        ),
        (lambda m: circuits.head_matrices(m, 0, 0), ValueError, "neither biases in its attention nor positions"),
        (lambda m: circuits.head_value(m, 0, 0, torch.zeros(2, 5)), ValueError, "stream must end in d_model = 13"),
        (lambda m: circuits.ranked(torch.zeros(3)), ValueError, "scores must have 2 axes"),
        (lambda m: circuits.logit_difference(m(IDS)[:, -1], 23, 0), ValueError, r"right must hold ids in \[0, 23\)"),
        (lambda m: circuits.patch_streams(m, IDS, OTHER[:, 1:], measure), ValueError, "other must have the shape of"),
        (lambda m: circuits.patch_streams(m, IDS, OTHER, measure, layers=4), ValueError, "layers must be at most n_l"),
        (lambda m: circuits.patch_streams(m, IDS, OTHER, measure, positions=[7]), ValueError, "positions must be less"),
        (
            lambda m: circuits.patch_streams(m, IDS, OTHER, lambda logits: logits.mean()),
            ValueError,
            r"measure must return \[copies, batch\] = \[7, 2\] from \[copies, batch, vocab_size\], got \(\)",
        ),
        (
            lambda m: circuits.patch_heads(m, IDS, [torch.zeros(())], measure),
            ValueError,
            "values must be one tensor, or one for each of 3 layers, got 1",
        ),
        (
            lambda m: circuits.patch_heads(m, IDS, torch.zeros(5), measure),
            ValueError,
            r"values must broadcast to the heads' outputs \[batch, n_heads, seq_len, d_v\] = \[2, 6, 7, 10\]",
        ),
    ],
)
def test_calls_that_are_refused(act, error, message):
    with pytest.raises(error, match=message):
        act(new())


@torch.no_grad()
def test_a_stream_of_the_wrong_shape_is_refused():
    model = new()
    with circuits.replace_input(model, [(0, 0)], "keys", torch.zeros(3, 7, 13)), pytest.raises(ValueError, match="the"):
        model(IDS)
    with tl.record_attention(model, query=7), pytest.raises(ValueError, match="query must be less than 7"):
        model(IDS)
