"""What five texts claim of attention, and no lesson shows: notation, lookups, similarity, queries, keys, values.

Each test settles rows of docs/register.json: it asserts the row, or what is right in its place.
"""

from __future__ import annotations

import math

import pytest
import torch

import transformer_lib as tl
from settling import settles
from transformer_lib.course.lab import collapse, roles
from transformer_lib.data.context_generator.lexicon import AMBIGUOUS

pytestmark = pytest.mark.fast


@settles("C132", "C134", "C135")
def test_width_16_expresses_what_width_4_could():
    """Text 5's "help me!": projections of width 16 give its dot products, as a 4 × 4 matrix would; it is 3 tokens."""
    generator = torch.Generator().manual_seed(4)
    x, w_q = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((2, 4), (4, 16)))
    wanted = torch.tensor([[6.0, 4.0], [3.0, 8.0]], dtype=torch.float64)
    w_k = torch.linalg.pinv(x) @ (torch.linalg.pinv(x @ w_q) @ wanted).T
    by_token = torch.stack([torch.stack([(a @ w_q) @ (b @ w_k) for b in x]) for a in x])
    torch.testing.assert_close((x @ w_q) @ (x @ w_k).T, by_token)
    torch.testing.assert_close(by_token, wanted)
    torch.testing.assert_close(x @ (w_q @ w_k.T) @ x.T, wanted)  # a 4 x 4 matrix does the same
    assert len(tl.WordTokenizer.tokenize("help me!")) == 3


@settles("C115", "C118", "C123", "C124", "C133")
def test_with_tokens_as_columns_scores_are_keys_by_queries():
    """K'Q with the softmax down each column; the other grid, or K, Q, V for Q, K, V, raises no error and is wrong."""
    generator = torch.Generator().manual_seed(4)
    x, w_q = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in ((2, 4), (4, 16)))
    query, key, value = torch.randn(3, 1000, 5, 8, generator=generator, dtype=torch.float64)  # 1,000 examples
    output, weights = tl.scaled_dot_product_attention(query, key, value)
    columns = (key @ query.mT / math.sqrt(8)).softmax(dim=-2)  # K_c' Q_c: key down, query across
    torch.testing.assert_close(columns, weights.mT)
    torch.testing.assert_close(value.mT @ columns, output.mT)

    other_grid = (value.mT @ (query @ key.mT / math.sqrt(8)).softmax(dim=-2)).mT
    swapped = tl.scaled_dot_product_attention(key, query, value)[0]
    torch.testing.assert_close(other_grid, swapped)  # the same slip: the keys ask, and the queries answer
    off = (swapped - output).abs().amax(dim=(1, 2))
    assert off.min() > 0.1
    for left, right in ((query[0], key[0]), (w_q, x[0])):  # Q K and W_Q x
        with pytest.raises(RuntimeError):
            left @ right


@settles("C122")
def test_training_updates_the_table_and_the_projections():
    """X is computed from the rows of E that were looked up; those and the projections get a gradient."""
    generator = torch.Generator().manual_seed(4)
    table = torch.randn(9, 4, generator=generator).requires_grad_()
    projections = [torch.randn(4, width, generator=generator).requires_grad_() for width in (3, 3, 2)]
    x = table[torch.tensor([2, 5, 3, 7])]
    tl.scaled_dot_product_attention(*(x @ w for w in projections))[0].square().sum().backward()
    assert not x.is_leaf and all(w.grad.any() for w in projections)
    assert table.grad.any(dim=1).nonzero().flatten().tolist() == [2, 3, 5, 7]


@settles("C003", "C016")
def test_attention_alone_carries_information_between_tokens():
    """With attention every row influences row 4, at any distance; where each may attend to itself alone, only row 4."""

    def influence(mask, seed):
        """Return the norm of the gradient of output row 4 with respect to each of 9 input rows, [9]."""
        torch.manual_seed(seed)
        layer = tl.EncoderLayer(16, 4, 32).double()
        rows = torch.randn(1, 9, 16, dtype=torch.float64, requires_grad=True)
        probe = torch.randn(16, dtype=torch.float64)  # the plain sum of a normalised row would always be the same
        return torch.autograd.grad(layer(rows, mask)[0, 4] @ probe, rows)[0][0].norm(dim=1)

    itself = torch.eye(9, dtype=torch.bool)[None, None]  # [1, 1, 9, 9], True = may attend
    for seed in range(3):
        free, alone = influence(None, seed), influence(itself, seed)
        assert (free > 0).all() and (alone > 0).nonzero().flatten().tolist() == [4]


@settles("C346")
def test_the_letter_d_differs_between_texts():
    """The d of one text under the root of the other is off by a factor."""
    d_model, n_heads = 512, 8
    assert (d_model // n_heads) ** 0.5 == 8 and round(d_model**0.5, 1) == 22.6


@settles("C344", "C345", "C352")
def test_rows_and_columns_are_one_computation():
    """One causal head both ways: for columns the softmax runs down, and the mask hides what lies below the diagonal."""
    generator = torch.Generator().manual_seed(5)
    shapes = ((5, 7), (7, 3), (7, 3), (7, 2))
    X, W_Q, W_K, W_V = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in shapes)
    may = tl.causal_mask(5)[0, 0]  # rows: hidden strictly above the diagonal
    Y_row, _ = tl.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V, may)
    grid = (W_K.T @ X.T).T @ (W_Q.T @ X.T) / 3**0.5  # [keys, queries]
    hidden = torch.ones(5, 5, dtype=torch.bool).tril(-1)  # columns: hidden strictly below the diagonal
    Y_col = (W_V.T @ X.T) @ grid.masked_fill(hidden, -torch.inf).softmax(dim=0)
    torch.testing.assert_close(Y_col, Y_row.T, rtol=0, atol=1e-12)
    assert torch.equal(hidden, ~may.T)


@settles("C060", "C061", "C062", "C063", "C064", "C069")
def test_matrices_are_kept_and_queries_are_made_anew():
    """A module keeps W_Q, W_K, W_V and no Q, K, V; a gradient changes nothing, the step of the optimiser does."""
    torch.manual_seed(3)
    parts = {"table": torch.nn.Embedding(11, 4), "head": tl.MultiHeadAttention(4, 1, d_k=3, d_v=2)}
    model, used = torch.nn.ModuleDict(parts).double(), []
    kept = ["table.weight", *(f"head.{name}.weight" for name in ("w_q", "w_k", "w_v", "w_o"))]
    assert [name for name, _ in model.named_parameters()] == kept  # no Q, K or V; none of them is in the table
    for name, module in model.named_modules():
        if not list(module.children()):
            module.register_forward_hook(lambda *_, name=name: used.append(name))
    w_q = model["head"].w_q.weight
    start, sentences = w_q.detach().clone(), torch.tensor([[1, 2, 3], [4, 5, 6]])
    first, second = (model["head"].w_q(model["table"](ids[None])) for ids in sentences)
    assert w_q.is_leaf and not first.is_leaf and not torch.equal(first, second) and torch.equal(w_q, start)
    used.clear()
    model["table"](sentences)
    assert used == ["table"]  # a static embedding needs the table alone; a contextual one, and all inference, both
    x = model["table"](sentences)
    model["head"](x, x, x).square().sum().backward()
    assert {"table", "head.w_q", "head.w_k", "head.w_v"} <= set(used)
    assert torch.equal(w_q, start)  # a gradient, no change
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    torch.testing.assert_close(w_q.detach(), start - 0.1 * w_q.grad)
    assert not torch.equal(w_q, start) and model["head"].w_q.weight is w_q


@settles("C066", "C070", "C071", "C072", "C073", "C074", "C076", "C099", "C100", "C101")
def test_what_widths_must_agree_and_what_a_small_d_k_saves():
    """The rank of W_Q W_K' is at most d_k; queries and keys agree in width and not in number; d_v is a choice."""
    torch.manual_seed(0)
    layer = tl.MultiHeadAttention(16, 1, d_k=16).double()
    x, memory = torch.randn(1, 3, 16).double(), torch.randn(1, 5, 16).double()
    for d_k in (2, 4, 16, 32):
        w_q, w_k, w_v = torch.randn(3, 16, d_k).double()
        rank, grid = torch.linalg.matrix_rank(w_q @ w_k.T).item(), (memory[0] @ w_q) @ (memory[0] @ w_k).T
        assert rank == min(d_k, 16) and grid.shape == (5, 5)
        assert all((memory[0] @ w).shape == (5, d_k) for w in (w_q, w_k, w_v))
        torch.testing.assert_close((memory[0] @ w_q)[2], memory[0, 2] @ w_q)  # row 2 belongs to token 2
    base = tl.TransformerConfig(src_vocab_size=11, tgt_vocab_size=13)
    assert (base.d_model, base.d_model // base.n_heads) == (512, 64)  # one model's choice
    assert layer(x, memory, memory).shape == x.shape  # 3 queries, 5 keys: equal widths, unequal numbers
    with pytest.raises(RuntimeError):
        torch.ones(3, 8) @ torch.ones(5, 7).T
    assert layer.w_q.bias is None and torch.nn.Linear(4, 3).bias is not None  # a linear layer has a bias by default


@settles("C065", "C088", "C089")
def test_a_sum_of_values_is_no_sum_of_embeddings():
    """Only with W_V = 1 are they equal; and words that share a feature share its changes."""
    torch.manual_seed(0)
    tokens = torch.randn(5, 16).double()
    weights, W_V = torch.randn(5, 5).double().softmax(dim=-1), torch.randn(16, 16).double()
    assert (weights @ tokens - weights @ (tokens @ W_V)).abs().max() > 0.5
    torch.testing.assert_close(weights @ tokens, weights @ (tokens @ torch.eye(16).double()))
    animal, stone = torch.tensor([0.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 0.0])  # verb, noun, alive
    for matrix in torch.randn(2, 3, 4):  # W_Q and W_K
        changed = matrix + torch.outer(animal, torch.ones(4))  # on behalf of "animal"
        assert not torch.allclose(stone @ changed, stone @ matrix)  # "stone" shares the feature noun


@settles("C075", "C078", "C079", "C085", "C086")
def test_text_2_transposed():
    """Tokens as columns: q = W_Q x, the grid K'Q, the output VA; A V and A + V do not even fit."""
    torch.manual_seed(0)
    rows, (w_q, w_k, w_v) = torch.randn(5, 4).double(), torch.randn(3, 4, 4).double()
    columns, Q, K, V = rows.T, w_q.T @ rows.T, w_k.T @ rows.T, w_v.T @ rows.T
    for i in range(5):
        torch.testing.assert_close(Q[:, i], w_q.T @ columns[:, i])
        torch.testing.assert_close(K[:, i], w_k.T @ columns[:, i])
    A = (K.T @ Q / 2).softmax(dim=0)
    output = tl.scaled_dot_product_attention(rows @ w_q, rows @ w_k, rows @ w_v)[0]
    torch.testing.assert_close((V @ A).T, output)
    for wrong in (lambda: A @ V, lambda: A + V):  # [5, 5] and [4, 5]
        with pytest.raises(RuntimeError):
            wrong()


@settles("C077", "C080", "C081", "C082", "C083", "C084")
def test_the_value_map_of_text_2_has_two_factors():
    """The right factor meets the token first, so the map down is d × n; one W_O on joined heads adds the maps up."""
    torch.manual_seed(0)
    n, d, heads = 8, 2, 3
    down, up, X = torch.randn(heads, d, n).double(), torch.randn(heads, n, d).double(), torch.randn(n, 5).double()
    square = up[0] @ down[0]
    assert torch.linalg.matrix_rank(square) == d and (square @ X).shape == X.shape and up[0].shape != down[0].shape
    with pytest.raises(RuntimeError):
        up[0] @ X  # the map that the text puts first
    A = torch.randn(heads, 5, 5).double().softmax(dim=-2)
    joined = torch.cat(list(down @ X @ A))  # down, attend, join
    torch.testing.assert_close(torch.cat(list(up), dim=1) @ joined, (up @ down @ X @ A).sum(dim=0))  # then up: W_O
    assert (512**2, 2 * 512 * 64) == (262_144, 65_536)  # a square map, and two factors, as many as W_Q and W_K have


@settles("C094")
def test_training_finds_no_best_attention():
    """Three trained heads solve one task with different W_Q W_K'; at unsuitable rates none does in 300 steps."""
    found = {rate: roles.Heads("three matrices", 8, range(3)).train(300, rate) for rate in (0.0001, roles.RATE, 3.0)}
    right = {rate: trained.share_right() for rate, trained in found.items()}
    assert min(right[roles.RATE]) > 0.99 and max(right[0.0001] + right[3.0]) < 0.6
    M = (found[roles.RATE].matrices["Q"] @ found[roles.RATE].matrices["K"].mT).detach()
    assert all((M[i] - M[0]).norm() > 0.5 * M[0].norm() for i in (1, 2))


@settles("C030", "C035", "C036")
def test_a_lookup_is_the_limit_of_large_scores():
    """Equal weights are mean pooling, moderate scores a blend, and a factor of 1,000 the ordinary lookup."""
    unit_keys, stock = torch.eye(4, dtype=torch.float64), torch.tensor([10.0, 20.0, 30.0, 40.0], dtype=torch.float64)
    answers = {c: ((c * unit_keys @ unit_keys[2]).softmax(dim=0) @ stock).item() for c in (0, 1, 5, 20, 1000)}
    assert abs(answers[0] - stock.mean()) < 1e-12  # equal weights: mean pooling
    assert 25 < answers[1] < answers[5] < answers[20] < 30  # a blend
    assert answers[1000] == 30  # one weight is 1 and the others round to 0: the ordinary lookup


@settles("C033", "C034")
def test_a_weight_measures_a_key_against_all_others():
    """Two copies of the best key share its weight; the output is linear in the values, and in nothing else."""
    unit_keys = torch.eye(4, dtype=torch.float64)
    before = (5 * unit_keys @ unit_keys[2]).softmax(dim=0)
    after = (5 * torch.cat([unit_keys, unit_keys[2:3]]) @ unit_keys[2]).softmax(dim=0)
    assert (after[2] - after[4]).abs() < 1e-12 and round(after[2].item(), 3) == 0.495 and (after[:4] < before).all()

    generator = torch.Generator().manual_seed(0)
    q, k, v, v2 = (torch.randn(s, generator=generator, dtype=torch.float64) for s in ((3, 5), (7, 5), (7, 2), (7, 2)))
    output, attend = (q @ k.T).softmax(dim=-1) @ v, lambda q, v: (q @ k.T).softmax(dim=-1) @ v
    assert (output > v.amin(dim=0)).all() and (output < v.amax(dim=0)).all()  # between the values
    torch.testing.assert_close(attend(q, 2 * v + v2), 2 * output + attend(q, v2))
    assert (attend(2 * q, v) - 2 * output).abs().max() > 0.1


@settles("C037")
def test_differentiable_is_not_learned():
    """The projections are learned; weights are computed anew from each input, for any length."""
    generator = torch.Generator().manual_seed(0)
    layer = tl.MultiHeadAttention(16, 4)
    maps = [layer(x, x, x, return_weights=True)[1] for x in torch.randn(2, 1, 7, 16, generator=generator)]
    assert (maps[0] - maps[1]).abs().max() > 0.01  # same parameters, other input, other weights
    for length in (3, 11):  # the same parameters serve every length
        assert layer(*3 * [torch.randn(1, length, 16, generator=generator)]).shape == (1, length, 16)
    q, k, v = (torch.randn(1, n, 5, generator=generator, dtype=torch.float64, requires_grad=True) for n in (3, 7, 7))
    assert torch.autograd.gradcheck(lambda *leaves: tl.scaled_dot_product_attention(*leaves)[0], (q, k, v))


FEATURES = [[5], [0, 2], [0, 3], [1, 4], [5]]  # of: a fluffy blue creature roamed
PHRASE = torch.stack([torch.eye(6, dtype=torch.float64)[row].sum(dim=0) for row in FEATURES])
"""The example of three texts, from the features adjective, noun, fluffy, blue, creature, other."""


def asking_matrices():
    """Return W_Q, W_K and W_V with which nouns ask, and adjectives answer with what they mean."""
    W_Q, W_K, W_V = (torch.zeros(6, n, dtype=torch.float64) for n in (2, 2, 6))
    W_Q[1, 0], W_K[0, 0], W_V[2, 2], W_V[3, 3] = 10.0, 1.0, 1.0, 1.0
    return W_Q, W_K, W_V


def head(words, mask=None, **instead):
    """Return output and weights of the head that asks for adjectives, some of its matrices replaced."""
    W_Q, W_K, W_V = (dict(zip(("W_Q", "W_K", "W_V"), asking_matrices(), strict=True)) | instead).values()
    return tl.scaled_dot_product_attention(words @ W_Q, words @ W_K, words @ W_V, mask)


@settles("C011", "C038", "C042", "C044", "C045", "C046")
def test_a_noun_asks_for_its_adjectives():
    """Built by hand. Without queries or keys all weights are equal, without values nothing is handed over."""
    phrase, W_Q, W_K, W_V = PHRASE, *asking_matrices()
    context, weights = head(phrase, tl.causal_mask(5)[0, 0])
    assert (weights[3, 1:3] - 0.5).abs().max() < 1e-2 and (context[3, 2:4] - 0.5).abs().max() < 1e-2
    assert [row.nonzero().flatten().tolist() for row in weights] == [list(range(i + 1)) for i in range(5)]
    for without in ({"W_Q": 0 * W_Q}, {"W_K": 0 * W_K}):  # nobody asks, or nobody answers: all weights are equal
        assert (head(phrase, **without)[1] - 0.2).abs().max() < 1e-12
    nothing_handed_over, same_weights = head(phrase, W_V=0 * W_V)
    assert nothing_handed_over.abs().max() == 0 and torch.equal(same_weights, head(phrase)[1])
    grid = (W_K.T @ phrase.T).T @ (W_Q.T @ phrase.T) / math.sqrt(2)  # tokens as columns: [keys, queries]
    torch.testing.assert_close(W_V.T @ phrase.T @ grid.softmax(dim=0), head(phrase)[0].T)


@settles("C012", "C043")
def test_content_alone_cannot_ask_for_in_front_of():
    """An adjective behind its noun gets the weight, too; with positions, a position can be all that counts."""
    generator = torch.Generator().manual_seed(0)
    noun_first, phrase = PHRASE[[3, 1]], PHRASE  # creature fluffy
    unmasked, masked = head(noun_first)[1][0, 1], head(noun_first, tl.causal_mask(2)[0, 0])[1][0, 1]
    assert round(unmasked.item(), 3) == 0.999 and masked == 0

    order = torch.randperm(5, generator=generator)  # without positions and mask, distance has no influence at all
    torch.testing.assert_close(head(phrase[order])[0], head(phrase)[0][order])
    positions, content = tl.sinusoidal_encoding(12, 16).double(), torch.randn(12, 16, generator=generator).double()
    asks, holds = torch.cat([100 * positions, 0 * content], dim=1), torch.cat([positions, content], dim=1)
    by_position = tl.scaled_dot_product_attention(asks, holds, content)[1]
    assert by_position.diagonal().min() > 0.9997


@settles("C008")
def test_a_recurrent_network_has_to_wait():
    """The longest chain of operations grows with the length for an RNN, and not for attention.

    That is a chain and not a time: multiply-adds grow with the length and its square, and are equal at the width.
    """

    def longest_chain(node):
        return 1 + max((longest_chain(before) for before, _ in node.next_functions if before is not None), default=0)

    def chains(length):
        x, W, U = (torch.randn(n, 64, requires_grad=True) for n in (length, 64, 64))
        state = torch.zeros(1, 64)
        for row in x.split(1):
            state = torch.tanh(row @ W + state @ U)
        return longest_chain(state.grad_fn), longest_chain(((x @ x.T).softmax(dim=-1) @ x).grad_fn)

    assert 2 * 64 * 64**2 == 2 * 64**2 * 64
    assert chains(64)[0] - chains(16)[0] == 3 * 48 and chains(64)[1] == chains(4)[1]


@settles("C049", "C051", "C050", "C023")
def test_a_dot_product_is_length_times_length_times_cosine():
    """One of several scores that give proper weights; "self" says where vectors come from, not how scores are made."""
    draws = torch.Generator().manual_seed(2)
    a, short, far = torch.tensor([1.0, 0.0]), torch.tensor([0.1, 0.0]), torch.tensor([3.0, 4.0])
    assert a @ short / a.norm() / short.norm() > a @ far / a.norm() / far.norm()
    assert a @ short < a @ far and abs(a @ far - a.norm() * far.norm() * math.cos(math.atan2(4, 3))) < 1e-6

    x = torch.randn(7, 4, generator=draws)
    w_a, w_b, u = (torch.randn(shape, generator=draws) for shape in ((4, 6), (4, 6), (6,)))
    unit = x / x.norm(dim=-1, keepdim=True)
    additive = ((x @ w_a)[:, None] + (x @ w_b)[None, :]).tanh() @ u
    for scores in (x @ x.T, unit @ unit.T, -torch.cdist(x, x).square(), additive):
        weights = scores.softmax(dim=-1)
        assert (weights > 0).all() and torch.allclose(weights.sum(dim=-1), torch.ones(7))
    cross, _ = tl.scaled_dot_product_attention(x, *torch.randn(2, 5, 4, generator=draws))  # dot products without "self"
    assert cross.shape == (7, 4)


@settles("C052")
def test_trained_vectors_of_related_words_are_similar_to_a_degree():
    """More than a third of the nearest neighbours of 237 nouns are related, in random tables under a tenth."""
    draws = torch.Generator().manual_seed(2)
    translator = tl.load_trained("context")
    senses = [set(sense.cues) for entries in AMBIGUOUS.values() for sense in entries]
    cues = sorted(set.union(*senses))
    related = torch.tensor([[any({a, b} <= sense for sense in senses) and a != b for b in cues] for a in cues])

    def related_neighbours(table):
        unit = table / table.norm(dim=-1, keepdim=True)
        nearest = (unit @ unit.T).fill_diagonal_(-2).argmax(dim=-1)
        return related[torch.arange(len(cues)), nearest].float().mean().item()

    ids = [translator.src_tokenizer.words.index(cue) for cue in cues]
    learned = translator.model.src_embedding.weight.detach()[ids]
    share = related_neighbours(learned)
    random_tables = [related_neighbours(torch.randn(learned.shape, generator=draws)) for _ in range(3)]
    assert len(cues) == 237 and share > 1 / 3 and max(random_tables) < 0.1


@settles("C019", "C055", "C057")
def test_a_lookup_knows_no_position():
    """A repeated word has one vector until positions are added; weights depend on the input and pass gradients on."""
    draws = torch.Generator().manual_seed(2)
    x = torch.randn(9, 8, generator=draws)[torch.tensor([4, 2, 4, 7])]  # the same word at positions 0 and 2
    positions = tl.sinusoidal_encoding(4, 8)
    bare, placed = ((rows @ rows.T).softmax(dim=-1) @ rows for rows in (x, x + positions))
    assert torch.allclose(bare[0], bare[2]) and not torch.allclose(placed[0], placed[2])

    river, bank, money = torch.tensor([2.0, 0.0]), torch.tensor([1.0, 1.0]), torch.tensor([0.0, 2.0])
    beside = [(torch.stack(pair) @ pair[0]).softmax(dim=0) for pair in ((river, bank), (river, money))]
    assert not torch.allclose(*beside)  # other input, other weights

    table = torch.randn(4, 3, generator=draws).requires_grad_()
    through_weights = (table @ table.T).softmax(dim=-1) @ table.detach()  # the values are held constant
    gradient = torch.autograd.grad(through_weights.square().sum(), table)[0]
    assert gradient.norm() > 0.01


@settles("C024")
def test_a_context_vector_need_not_keep_its_own_meaning():
    """After two rounds few rows are nearest to their own start; with a residual connection all are."""
    for residual in (0, 1):
        start = torch.from_numpy(collapse.tokens(1, seeds=range(3)))
        rows = start
        for _ in range(2):
            rows = (rows @ rows.mT).softmax(dim=-1) @ rows + residual * rows
        kept = (torch.cdist(rows, start).argmin(dim=-1) == torch.arange(10)).double().mean(dim=-1)
        assert kept.min() == 1 if residual else kept.max() < 0.4


@settles("C017", "C021", "C022")
def test_distance_does_not_count():
    """The first of 2,000 tokens reaches the last in one layer; behind a causal mask a word sees itself and before."""
    draws = torch.Generator().manual_seed(2)
    text = (0.3 * torch.randn(2000, 8, generator=draws, dtype=torch.float64)).requires_grad_()
    last = (text @ text[-1]).softmax(dim=0) @ text
    gradient = torch.autograd.grad(last.sum(), text)[0]
    moved = text[torch.tensor([1998, *range(1, 1998), 0, 1999])]
    torch.testing.assert_close((moved @ moved[-1]).softmax(dim=0) @ moved, last)
    seen = tl.causal_mask(7)[0, 0]
    assert gradient[0].all() and seen.sum() == 7 * 8 // 2 and seen.diagonal().all()
