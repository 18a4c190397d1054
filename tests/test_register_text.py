"""What five texts claim of tokens, positions, masks and teacher forcing, and no lesson shows.

Each test settles rows of docs/register.json: it asserts the row, or what is right in its place.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import transformer_lib as tl
from settling import settles

pytestmark = pytest.mark.fast

SHOWN = torch.tensor(
    [[0.61, 0.18, 0.04, 0.17], [0.16, 0.57, 0.08, 0.19], [0.03, 0.07, 0.74, 0.16], [0.17, 0.23, 0.12, 0.48]],
    dtype=torch.float64,
)
WORDS = torch.tensor(
    [[0.12, 0.63, 0.29, 0.41], [0.83, 0.34, 0.04, 0.53], [0.39, 0.77, 0.64, 0.09], [0.41, 0.08, 0.51, 0.87]],
    dtype=torch.float64,
)
"""Of "Show me the money": the printed weights and embeddings of text 5."""
PRODUCTS = torch.tensor(
    [
        [16.2, 7.7, 2.0, 4.6, 3.1, 8.9],
        [3.2, 21.5, 6.1, 8.4, 8.1, 5.2],
        [1.9, 4.3, 18.7, 6.5, 7.2, 3.3],
        [2.7, 4.1, 7.6, 22.3, 9.0, 3.8],
        [4.4, 5.8, 6.9, 5.6, 24.5, 4.7],
        [4.0, 3.9, 6.7, 7.3, 6.1, 16.8],
    ],
    dtype=torch.float64,
)
MAY = torch.ones(6, 6).tril().bool()
ADDED = PRODUCTS.masked_fill(~MAY, -math.inf)
"""The dot products that text 5 prints for its decoder, and the same with the causal mask."""


def sinusoids(seq_len, d_model, unit=1.0):
    omega = 10000.0 ** (-2 * torch.arange(d_model // 2, dtype=torch.float64) / d_model)
    angles = unit * torch.arange(seq_len)[:, None] * omega
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def small_model():
    """Return an untrained model in double precision, with a source sentence."""
    torch.manual_seed(0)
    sizes = {"d_model": 16, "n_heads": 2, "n_layers": 2, "d_ff": 32, "dropout": 0.0}
    config = tl.TransformerConfig(src_vocab_size=11, tgt_vocab_size=13, **sizes)
    return tl.Transformer(config).double(), torch.tensor([[7, 8, 9, 2]])


@settles("C136", "C146", "C150")
def test_a_token_and_its_position_are_two_things():
    """Text is refused; when two tokens trade places, rows of the table move along and those of the positions stay."""
    with pytest.raises(TypeError):
        torch.tensor("money")
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 16}
    model = tl.Transformer(tl.TransformerConfig(src_vocab_size=1_000, tgt_vocab_size=13, **sizes))
    P = tl.sinusoidal_encoding(3, 8)
    x, swapped = (model.src_embedding(torch.tensor(ids)) + P for ids in ([3, 1, 7], [1, 3, 7]))
    torch.testing.assert_close(x[[1, 0]] - P[[1, 0]], swapped[:2] - P[:2])  # the rows have moved with their tokens
    assert torch.equal(x[2], swapped[2]) and not torch.allclose(x[[1, 0]], swapped[:2])  # the positions have not
    assert model.src_embedding.weight.all()  # dense: no entry of a fresh table is zero


@settles("C191", "C192", "C193", "C195", "C198")
def test_a_printed_filter_is_a_table_of_weights():
    """Its rows sum to one; a head of width 3 produces it, so nothing can be said about where it comes from."""
    assert torch.allclose(SHOWN.sum(dim=1), torch.ones(4).double()) and (SHOWN > 0).all()  # each attends to all
    assert (SHOWN.sum(dim=0) - 1).abs().max() > 0.01
    assert SHOWN[2].argsort(descending=True)[:2].tolist() == [2, 3]  # "the": itself, then "money"
    rows = WORDS + sinusoids(4, 4)
    centred = SHOWN.log() - SHOWN.log().mean(dim=1, keepdim=True)
    left, singular, right = torch.linalg.svd(centred)
    w_q3, w_k3 = rows.inverse() @ (left * singular)[:, :3] * 3**0.5, rows.inverse() @ right[:3].T
    rebuilt = ((rows @ w_q3) @ (rows @ w_k3).T / 3**0.5).softmax(dim=-1)
    assert torch.linalg.matrix_rank(centred) == 3 and torch.allclose(rebuilt, SHOWN)


@settles("C196", "C197")
def test_a_word_need_not_score_highest_with_itself():
    """A tenth of the rows in random heads, all at equal lengths without projections, under a third in trained heads."""

    def own_wins(scores):
        """Return the share of rows of scores [..., n, n] whose largest entry is on the diagonal."""
        return (scores.argmax(dim=-1) == torch.arange(scores.shape[-1])).double().mean().item()

    for seed in range(3):
        g = torch.Generator().manual_seed(seed)
        x, w_q, w_k = (torch.randn(400, *shape, generator=g) for shape in ((10, 16), (16, 8), (16, 8)))
        unit = x / x.norm(dim=-1, keepdim=True)
        shares = own_wins((x @ w_q) @ (x @ w_k).mT), own_wins(unit @ unit.mT)
        assert abs(shares[0] - 0.1) < 0.03 and shares[1] == 1
    translator = tl.load_trained("context")
    src = translator.src_tokenizer.encode_batch([pair.src for pair in tl.load_corpus("context")["heldout"][:200]])
    with torch.no_grad(), tl.record_attention(translator.model.eval()) as seen:
        translator.model.encode(src)
    trained = [
        own[src != 0].double().mean().item()
        for weights in seen.values()
        for own in (weights.argmax(dim=-1) == torch.arange(src.shape[1])).unbind(dim=1)
    ]
    assert len(trained) == 8 and max(trained) < 1 / 3 and SHOWN.argmax(dim=1).tolist() == [0, 1, 2, 3]
    rows = WORDS + sinusoids(4, 4)
    assert SHOWN[2].argsort(descending=True).tolist() != (rows @ rows.T)[2].argsort(descending=True).tolist()


@settles("C209", "C210", "C211", "C216", "C217", "C227")
def test_the_masked_example_of_text_5_at_width_64():
    """15 scores are hidden, the rest unchanged; with the diagonal hidden, too, the first row is NaN."""
    generator = torch.Generator().manual_seed(4)
    assert torch.linalg.matrix_rank(PRODUCTS) == 6 and ADDED.isneginf().sum() == 15
    assert torch.equal(ADDED[MAY], PRODUCTS[MAY])
    values_6 = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    free, masked = (
        tl.scaled_dot_product_attention(PRODUCTS * 6**0.5 / 8, torch.eye(6).double(), values_6, mask)
        for mask in (torch.ones_like(MAY), MAY)
    )
    torch.testing.assert_close(masked[1], (ADDED / 8).softmax(dim=-1))
    torch.testing.assert_close(masked[0], masked[1] @ values_6)  # then times V: as many rows as came in
    torch.testing.assert_close(free[1], (PRODUCTS / 8).softmax(dim=-1))  # a mask that hides nothing
    strict = PRODUCTS.masked_fill(~torch.ones(6, 6).tril(-1).bool(), -math.inf).softmax(dim=-1)
    assert strict[0].isnan().all() and not strict[1:].isnan().any()


@settles("C218", "C219", "C220", "C221", "C222", "C223", "C224", "C225")
def test_no_width_gives_the_weights_that_text_5_prints():
    """19 of 21 entries differ at 64; one pair is in the wrong order, and only one row fits some width."""
    printed_6 = torch.tensor(
        [
            [1, 0, 0, 0, 0, 0],
            [0.13, 0.87, 0, 0, 0, 0],
            [0.06, 0.16, 0.78, 0, 0, 0],
            [0.03, 0.06, 0.11, 0.80, 0, 0],
            [0.05, 0.06, 0.09, 0.06, 0.74, 0],
            [0.02, 0.04, 0.14, 0.15, 0.13, 0.52],
        ],
        dtype=torch.float64,
    )
    assert torch.allclose(printed_6.sum(dim=1), torch.ones(6).double()) and not printed_6[~MAY].any()
    assert printed_6[0].tolist() == [1, 0, 0, 0, 0, 0] and (ADDED[0].softmax(dim=-1) == printed_6[0]).all()  # any width
    assert (((ADDED / 8).softmax(dim=-1).round(decimals=2) - printed_6).abs()[MAY] > 0.001).sum() == 19
    assert PRODUCTS[5, 0] > PRODUCTS[5, 1] and printed_6[5, 0] + 0.005 < printed_6[5, 1] - 0.005 + 1e-9
    widths = torch.logspace(-1.3, 6, 20_000, dtype=torch.float64)
    errors = ((ADDED / widths[:, None, None].sqrt()).softmax(dim=-1) - printed_6).abs().amax(dim=-1)  # [d_k, row]
    for word, error in zip(("not", "on", "your", "life", "<end>"), errors.T[1:], strict=True):
        fits = widths[error < 0.005]
        assert (len(fits) > 0) == (word == "not")
        assert word != "not" or (88 < fits.min() < 89 and 97 < fits.max() < 98)


@settles("C212")
def test_a_finite_mask_inside_the_bracket_is_divided_too():
    """For −∞ the place makes no difference; −30 inside the bracket hides less."""
    generator = torch.Generator().manual_seed(4)
    query_6, key_6 = torch.randn(2, 6, 64, generator=generator, dtype=torch.float64)
    for fill in (-math.inf, -30.0):
        hidden = torch.zeros(6, 6, dtype=torch.float64).masked_fill(~MAY, fill)
        inside = ((query_6 @ key_6.T + hidden) / 8).softmax(dim=-1)[~MAY].max()
        outside = (query_6 @ key_6.T / 8 + hidden).softmax(dim=-1)[~MAY].max()
        assert outside < 1e-9
        assert inside == 0 if fill == -math.inf else inside > 0.001


@settles("C013", "C189", "C190", "C200", "C215", "C230")
def test_the_decoder_of_text_5_has_five_inputs_and_five_labels():
    """A row for <end> has no label; 6 prefixes are not 63 subsequences; own guesses have another loss.

    Self-attention is square, cross-attention has a row for each target token and a column for each source token.
    """
    model, src = small_model()
    other_src, tgt = torch.tensor([[7, 8, 10, 2]]), torch.tensor([[1, 3, 4, 5, 6, 2]])
    tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]
    assert tgt_in.shape == tgt_out.shape == (1, 5)
    subsequences = [some for size in range(1, 7) for some in itertools.combinations(range(6), size)]
    logits = model(src, tgt_in)
    torch.testing.assert_close(model(src, tgt)[:, :5], logits)  # an <end> that is fed as well disturbs nothing
    assert len(subsequences) == 63 and not torch.allclose(model(other_src, tgt_in), logits)
    with tl.record_attention(model) as maps:
        model(src, tgt_in)
    square = {"encoder": (4, 4), "decoder": (5, 5), "cross": (5, 4)}
    kinds = {name: "cross" if "cross" in name else name.partition(".")[0] for name in maps}
    assert {name: weights.shape[2:] for name, weights in maps.items()} == {name: square[kinds[name]] for name in maps}
    own_in = torch.cat((tgt_in[:, :1], logits.argmax(dim=-1)[:, :-1]), dim=1)
    told, own = (
        torch.nn.functional.cross_entropy(model(src, ids).flatten(0, 1), tgt_out.flatten()) for ids in (tgt_in, own_in)
    )
    assert not torch.equal(own_in, tgt_in) and (told - own).abs() > 1e-3


@settles("C208", "C233")
def test_one_pass_does_what_32_steps_do():
    """32 rows in one pass, 528 in 32; when it writes, one token comes with each step."""
    generator = torch.Generator().manual_seed(4)
    (model, src), passed = small_model(), []
    layer = model.decoder.layers[0].feed_forward
    handle = layer.register_forward_hook(lambda _, inputs, out: passed.append(out.shape[1]))
    long_in = torch.randint(3, 13, (1, 32), generator=generator)
    model(src, long_in)
    at_once, _ = sum(passed), passed.clear()
    for t in range(32):
        model(src, long_in[:, : t + 1])
    handle.remove()
    assert (at_once, sum(passed), len(passed)) == (32, 528, 32)
    grown = tl.greedy_decode(model, src, max_new_tokens=4, stop_at_eos=False)
    for n in range(1, 5):  # when it writes, one token comes with each step
        assert torch.equal(tl.greedy_decode(model, src, max_new_tokens=n, stop_at_eos=False), grown[:, : n + 1])


@settles("C170", "C185", "C186", "C187")
def test_sums_of_text_5_are_off_as_its_angles_are_in_degrees():
    """Three of four numbers of the last row change; with correct angles no two of 5,000 positions come close."""
    P, in_degrees = sinusoids(4, 4), sinusoids(4, 4, unit=math.pi / 180)
    assert (WORDS + P).shape == WORDS.shape == P.shape
    assert (WORDS + in_degrees)[3].numpy().round(2).tolist() == [0.46, 1.08, 0.51, 1.87]  # as printed
    assert torch.pdist(P).mean() > 40 * torch.pdist(in_degrees).mean()
    wide = sinusoids(5000, 512)
    distance = (wide[1:] - wide[0]).norm(dim=1)  # by offset: it does not depend on the position
    assert (WORDS + P)[3].numpy().round(2).tolist() == [0.55, -0.91, 0.54, 1.87]
    assert round(distance.min().item(), 2) == 3.71


@settles("C171", "C172")
def test_the_pair_decides_the_frequency_and_not_the_position():
    """A Fourier transform finds one frequency in a column; the first columns vary most."""

    def measured_frequency(column):
        spectrum = np.abs(np.fft.rfft(column - column.mean()))
        return 2 * np.pi * spectrum.argmax() / len(column)

    table = sinusoids(4096, 16).numpy()
    windows = [measured_frequency(table[start : start + 1024, 0]) for start in (0, 1024, 2048)]
    columns = [measured_frequency(table[:, 2 * j]) for j in range(4)]
    assert np.ptp(windows) < 1e-9 and np.allclose(columns, 10000.0 ** (-np.arange(4) / 8), atol=2e-3)
    steps = sinusoids(200, 4).diff(dim=0).abs().mean(dim=0).numpy()
    assert steps[:2].min() > 50 * steps[2:].max()


@settles("C173")
def test_the_first_features_alone_cannot_locate_a_token():
    """The fast pair confuses positions some turns apart; both pairs together do not."""

    def located(seq_len, part):
        """Return the share of exact answers and the mean error, from noisy encodings of which a part is known."""
        truth, found = sinusoids(seq_len, 4).numpy(), []
        for seed in range(3):
            noisy = truth + 0.02 * np.random.default_rng(seed).standard_normal(truth.shape)
            found.append(np.linalg.norm(noisy[:, None, part] - truth[None, :, part], axis=-1).argmin(axis=1))
        off = np.abs(np.array(found) - np.arange(seq_len))
        return (off == 0).mean(), off.mean()

    fast, slow, both = slice(0, 2), slice(2, 4), slice(0, 4)
    assert min(located(40, both)[0], located(300, both)[0]) > 0.99
    assert located(40, fast)[0] > located(40, slow)[0] and located(40, fast)[1] < located(40, slow)[1]
    assert located(300, fast)[0] > located(300, slow)[0] and located(300, fast)[1] > 5 * located(300, slow)[1]


@settles("C184")
def test_both_pairs_give_every_offset_back():
    """400 of 400 random offsets up to 2,000, from encodings rounded to two decimals."""
    draw = np.random.default_rng(1)
    starts, offsets = draw.integers(2000, 4000, 400), draw.integers(-2000, 2001, 400)
    angles = np.arange(-2000, 2001)[:, None] * np.array([1.0, 0.01])
    table, hits = sinusoids(6001, 4).numpy().round(2), 0
    for p, k in zip(starts, offsets, strict=True):
        turned = np.angle((table[p + k, 1::2] + 1j * table[p + k, 0::2]) / (table[p, 1::2] + 1j * table[p, 0::2]))
        hits += np.cos(angles - turned).sum(axis=1).argmax() - 2000 == k
    assert hits == 400


@settles("C174", "C177", "C178")
def test_sinusoids_have_nothing_to_learn():
    """Distances and dot products of bare encodings stay when both words move."""
    sentence = ["the", "bank", "told", "the", "man", "he", "was", "bankrupt"]
    assert {said.index("man") - said.index("bank") for said in (sentence, ["then", *sentence])} == {3}
    table = sinusoids(300, 64)
    dots = [(table[p] @ table[p + 5]).item() for p in (0, 50, 200)]
    assert max(dots) - min(dots) < 1e-9 and not list(tl.SinusoidalPosition(50, 64).parameters())


@pytest.mark.slow
@settles("C153", "C155", "C188")
def test_without_positions_an_encoder_cannot_reverse():
    """It comes to the best guess from the counts of the others; with positions it is right nearly always."""

    def reverser(positions, seed, steps=300):
        """Return the share of right answers on new rows after training one layer."""
        torch.manual_seed(seed)
        embed, encoder, read = torch.nn.Embedding(11, 32), tl.Encoder(1, 32, 4, 128), torch.nn.Linear(32, 11)
        optimizer = torch.optim.Adam([*embed.parameters(), *encoder.parameters(), *read.parameters()], 5e-3)
        for step in range(steps + 1):
            ids = torch.randint(1, 11, (32 if step < steps else 500, 8))
            logits = read(encoder(embed(ids) + positions * tl.sinusoidal_encoding(8, 32), None))
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids.flip(1).flatten()).backward()
            optimizer.step()
        return (logits.argmax(dim=-1) == ids.flip(1)).float().mean().item()

    drawn = torch.randint(10, (20_000, 8), generator=torch.Generator().manual_seed(7))
    symbols = torch.nn.functional.one_hot(drawn, 10)
    others = symbols.sum(dim=1, keepdim=True) - symbols  # counts among a token's seven others
    best = others.amax(dim=-1).double().mean().item() / 7
    shares = {positions: [reverser(positions, seed) for seed in range(3)] for positions in (0, 1)}
    assert max(abs(share - best) for share in shares[0]) < 0.04 and min(shares[1]) > 0.97
