"""The exercises of notebook 02: similarity without weights."""

from __future__ import annotations

import torch

from .model import Case, Exercise, normal
from .slips import slips

# 02.1 Compare everything with everything ------------------------------------------------------------------------------


def similarity(query, key):
    """Return the dot product of every query with every key.

    query: [..., q_len, d]; key: [..., k_len, d]; the axes in front broadcast. Returns [..., q_len, k_len].
    """
    return torch.einsum("...id,...jd->...ij", query, key)


def _similarity_cases():
    return [
        Case("2 queries, 3 keys of width 5", tuple(normal(201, (2, 5), (3, 5)))),
        Case("7 queries, 7 keys of width 7", tuple(normal(202, (7, 7), (7, 7)))),
        Case("a batch of 2", tuple(normal(203, (2, 3, 5), (2, 7, 5)))),
        Case("a batch of 5 with 3 heads", tuple(normal(204, (5, 3, 2, 11), (5, 3, 7, 11)))),
        Case("the same keys for the whole batch", tuple(normal(205, (3, 5, 7), (11, 7)))),
        Case("one set of queries for 3 sets of keys", tuple(normal(206, (1, 2, 5), (3, 3, 5)))),
        Case("one query, one key", tuple(normal(207, (1, 3), (1, 3)))),
    ]


EXERCISE_1 = Exercise(
    "02.1", "Compare everything with everything", 5, 1, similarity, _similarity_cases,
    slips(
        "query, key", "return query @ key.transpose(-2, -1)",
        ("all axes", "transpose(-2, -1)", "permute(*range(key.dim())[::-1])",
         "Right for one sentence; with axes in front swap the last two only: key.transpose(-2, -1)."),
        ("swapped", "query @ key.transpose(-2, -1)", "key @ query.transpose(-2, -1)",
         "You compared the right pairs, but here keys are rows; queries must be rows, and keys columns."),
        ("no transpose", ".transpose(-2, -1)", "",
         "You multiplied by the keys as they are; a dot product sums over d, so each key must become a column."),
        ("features", "query @ key.transpose(-2, -1)", "query.transpose(-2, -1) @ key",
         "You compared features with features, [d, d]. Tokens are rows: the second factor is the one to transpose."),
        ("own pairs", "query @ key.transpose(-2, -1)", "(query * key).sum(-1)",
         "You compared each query with one key only, the one in the same row; every pair is asked for."),
        ("scaled", "(-2, -1)", "(-2, -1) / query.shape[-1] ** 0.5",
         "You divided by √d; these scores are plain dot products."),
        ("softmax", "query @ key.transpose(-2, -1)", "(query @ key.transpose(-2, -1)).softmax(-1)",
         "You took the softmax as well; the scores alone are asked for."),
    ),
    gradients=("query", "key"), part="similarity",
)  # fmt: skip


def _dots(X):
    return similarity(X, X)


# 02.2 Directions only ------------------------------------------------------------------------------------------------


def cosine_weights(X, temperature):
    """Return weights that depend on directions only: the softmax of cosine(x_i, x_j) / temperature.

    X: [..., seq_len, d_model], no row is zero; temperature: a positive number. Returns [..., seq_len, seq_len].
    """
    lengths = torch.linalg.vector_norm(X, dim=-1)
    cosines = _dots(X) / (lengths[..., :, None] * lengths[..., None, :])
    return torch.softmax(cosines / temperature, dim=-1)


def _cosine_cases():
    shapes = [
        ("2 tokens of width 3", (2, 3), 1.0),
        ("5 tokens of width 7, cold", (5, 7), 0.1),
        ("7 tokens of width 2, warm", (7, 2), 3.0),
        ("a batch of 3", (3, 5, 2), 0.5),
        ("a square of 5, colder", (5, 5), 0.02),
    ]
    cases = [Case(label, (*normal(211 + i, shape), T)) for i, (label, shape, T) in enumerate(shapes)]
    (tokens,) = normal(219, (3, 11))
    return [*cases, Case("one token a hundred times as long", (tokens * torch.tensor([[1.0], [100.0], [1.0]]), 0.5))]


EXERCISE_2 = Exercise(
    "02.2", "Directions only", 7, 2, cosine_weights, _cosine_cases,
    slips(
        "X, temperature", """
            unit = X / X.norm(dim=-1, keepdim=True)
            cosines = unit @ unit.transpose(-2, -1)
            return (cosines / temperature).softmax(-1)
        """,
        ("dot product", " / X.norm(dim=-1, keepdim=True)", "",
         "Your scores still grow with the lengths: divide each by the lengths of both tokens."),
        ("one length", "unit.transpose", "X.transpose",
         "You divided by the length of the first token only; the second one's still counts."),
        ("whole matrix", "dim=-1, keepdim=True", "",
         "You divided by the length of all numbers together; every token has a length of its own."),
        ("all axes", "transpose(-2, -1)", "permute(*range(X.dim())[::-1])",
         "Right for one sentence; with axes in front swap the last two only: X.transpose(-2, -1)."),
        ("axis 1 of the lengths", "dim=-1", "dim=1",
         "Right for one sentence; with a batch in front the features are no longer axis 1: normalise along dim=-1."),
        ("softmax over axis 0", "softmax(-1)", "softmax(0)",
         "Your softmax runs over axis 0; the weights of one query, a row, must sum to one: dim=-1."),
        ("squared", "keepdim=True)", "keepdim=True) ** 2", "You divided by the squared lengths: the root is missing."),
        ("first axis", "dim=-1", "dim=0",
         "You normalised along axis 0; the length of a token is taken along its features, dim=-1."),
        ("after", "(cosines / temperature).softmax(-1)", "cosines.softmax(-1) / temperature",
         "You divided by the temperature after the softmax; divide the cosines before it."),
    ),
    gradients=("X",),
)  # fmt: skip


# 02.3 From weights back to scores ------------------------------------------------------------------------------------


def scores_from_weights(A):
    """Return the symmetric scores [n, n], with entry [0, 0] = 0, of which each row of A is the softmax.

    A: [n, n], all entries positive.
    """
    # π A = π; then π_i A_ij is symmetric and in proportion to exp(S_ij)
    size = len(A)
    system = torch.cat([(A.T - torch.eye(size, dtype=A.dtype))[:-1], torch.ones(1, size, dtype=A.dtype)])
    shares = torch.linalg.solve(system, torch.eye(size, dtype=A.dtype)[-1])
    scores = (shares[:, None] * A).log()
    return scores - scores[0, 0]


def _weights_cases():
    def case(label, seed, shape, scale):
        (X,) = normal(seed, shape, dtype=torch.float64)
        return Case(label, (torch.softmax(scale * X @ X.T, dim=-1),))

    (scores,) = normal(255, (5, 5), dtype=torch.float64)
    return [
        case("2 tokens of width 3", 251, (2, 3), 1.0),
        case("3 tokens of width 7", 252, (3, 7), 0.7),
        case("5 tokens of width 2", 253, (5, 2), 1.0),
        case("7 tokens of width 11", 254, (7, 11), 0.5),
        Case("symmetric scores that are no dot products", (torch.softmax(scores + scores.T, dim=-1),)),
        case("one token", 256, (1, 3), 1.0),
    ]


EXERCISE_3 = Exercise(
    "02.3", "From weights back to scores", 10, 2, scores_from_weights, _weights_cases,
    slips(
        "A", """
            ratios = A[0] / A[:, 0]
            scores = A.log() + ratios.log()[:, None]
            return scores - scores[0, 0]
        """,
        ("logarithm", " + ratios.log()[:, None]", "",
         "The logarithm of a weight is the score minus ln r_i, another number in each row: that is still missing."),
        ("bare logarithm", "scores - scores[0, 0]", "A.log()",
         "The logarithm undoes the exponential, but not the division by the sum of the row; and S[0, 0] is not 0."),
        ("symmetrised", "A.log() + ratios.log()[:, None]", "(A.log() + A.log().T) / 2",
         "You made ln A symmetric by averaging it with its transpose. That spreads the missing ln r_i over row and "
         "column, and does not remove it."),
        ("upside down", "A[0] / A[:, 0]", "A[:, 0] / A[0]",
         "The ratio is upside down: by equation 1, r_i / r_0 is A[0, i] / A[i, 0]."),
        ("column", "[:, None]", "[None, :]", "You added ln r_j to column j; what was divided by r_i is row i."),
        ("constant", " - scores[0, 0]", "", "Right up to a constant: subtract the entry [0, 0] from all."),
        ("entry", "return scores - scores[0, 0]", "scores[0, 0] = 0.0\nreturn scores",
         "You set one entry to 0; the same number must be subtracted from all of them."),
    ),
)  # fmt: skip


# 02.4 Two tokens, round after round -----------------------------------------------------------------------------------


def distance_after(distance, rounds):
    """Return how far apart two tokens of equal length are after averaging each other for some rounds, a number.

    distance: between them at first, from 0 to 60; rounds: how often, from 0 on. Every round computes new weights.
    """
    x = torch.tensor([[0.5 * distance, 1.0], [-0.5 * distance, 1.0]], dtype=torch.float64)
    for _ in range(rounds):
        x = torch.softmax(x @ x.T, dim=-1) @ x
    return torch.linalg.vector_norm(x[0] - x[1]).item()


def _distance_cases():
    found = [(1.0, 1), (2.0, 1), (2.0, 3), (3.0, 7), (1.0, 2), (4.0, 20), (2.5, 0), (60.0, 5)]
    return [Case(f"{start:g} apart, {rounds} round{'s' * (rounds != 1)}", (start, rounds)) for start, rounds in found]


EXERCISE_4 = Exercise(
    "02.4", "Two tokens, round after round", 15, 3, distance_after, _distance_cases,
    slips(
        "distance, rounds", """
            for _ in range(rounds):
                p = 1 / (1 + math.exp(min(distance**2 / 2, 700.0)))
                distance = distance * (1 - 2 * p)
            return distance
        """,
        ("always one round", "range(rounds)", "range(1)",
         "You computed one round, whatever their number, and even where there is none."),
        ("overflow", "min(distance**2 / 2, 700.0)", "distance**2 / 2",
         "Right until e^(D²/2) overflows: multiply numerator and denominator by e^(−D²/2), or use tanh."),
        ("one moves", "1 - 2 * p", "1 - p",
         "You multiplied by 1 − p, as if one of the two stood still. Both move a share p: the factor is 1 − 2p."),
        ("squared gap", "distance**2 / 2", "distance**2",
         "You used tanh(D²/2). The difference u of the two scores is half of the squared distance, since |x − y|² = 2 "
         "(x·x − x·y), and the factor is tanh(u/2): half of that again."),
        ("quarter gap", "distance**2 / 2", "distance**2 / 4",
         "1 − 2/(1 + e^u) is tanh(u/2), and u is D²/2: the factor is tanh(D²/4)."),
    )
    + slips(
        "distance, rounds", """
            x = torch.tensor([[distance / 2, 1.0], [-distance / 2, 1.0]], dtype=torch.float64)
            for _ in range(rounds):
                x = (x @ x.T).softmax(-1) @ x
            return (x[0] - x[1]).norm().item()
        """,
        ("first weights", "for _ in range(rounds):\n    x = (x @ x.T).softmax(-1) @ x",
         "x = torch.linalg.matrix_power((x @ x.T).softmax(-1), rounds) @ x",
         "You kept the weights of the first round; the tokens come closer, and every round computes new ones."),
        ("unequal lengths", "[[distance / 2, 1.0], [-distance / 2, 1.0]]", "[[distance, 0.0], [0.0, 0.0]]",
         "Your two tokens do not have the same length: put them at ±D/2."),
    ),
    rtol=1e-3,
)  # fmt: skip


# 02.5 Scores to order ------------------------------------------------------------------------------------------------


def scores_to_order(X, S):
    """Return the matrix W for which x_i W x_jᵀ is the wanted score S[i, j], for all tokens i, j.

    X: [n, n], invertible, tokens are rows; S: [n, n]. Returns W [n, n].
    """
    return torch.linalg.solve(X, torch.linalg.solve(X, S.T).T)


def _order_cases():
    def case(label, seed, size):
        X, S = normal(seed, (size, size), (size, size), dtype=torch.float64)
        return Case(label, (X + 2 * torch.eye(size, dtype=torch.float64), S))

    ring = 4 * torch.eye(5, dtype=torch.float64).roll(1, dims=1)  # token i wants i + 1
    (tokens,) = normal(244, (5, 5), dtype=torch.float64)
    return [
        case("2 tokens", 241, 2),
        case("3 tokens", 242, 3),
        case("7 tokens", 243, 7),
        Case("each of 5 tokens looks for the next", (tokens + 2 * torch.eye(5, dtype=torch.float64), ring)),
    ]


EXERCISE_5 = Exercise(
    "02.5", "Scores to order", 8, 2, scores_to_order, _order_cases,
    slips(
        "X, S", """
            inverse = torch.linalg.inv(X)
            return inverse @ S @ inverse.T
        """,
        ("inverse once", " @ inverse.T", "", "X W would be S: the tokens are on both sides of W."),
        ("other transpose", "inverse @ S @ inverse.T", "inverse.T @ S @ inverse",
         "The transpose is on the wrong side: the first factor is X, the last one Xᵀ."),
        ("reciprocals", "torch.linalg.inv(X)", "1 / X",
         "You took the reciprocal of each number; the inverse of a matrix is torch.linalg.inv(X)."),
        ("no transpose", "inverse.T", "inverse", "The factor on the right is Xᵀ: its inverse is the transpose of X⁻¹."),
        ("product", "torch.linalg.inv(X)", "X.T",
         "X W Xᵀ = S is undone by inverses; transposes undo it only where X is a rotation."),
    ),
)  # fmt: skip


# 02.6 Where repeated averaging ends ----------------------------------------------------------------------------------


def settled_shares(X):
    """Return the shares [seq_len] with which all tokens enter the common limit of A X, A A X, A A A X, …

    X: [seq_len, d_model]; A = softmax(X Xᵀ), over rows, computed once and kept.
    """
    weights = torch.softmax(X @ X.T, dim=-1)
    size = len(X)
    # π A = π and Σ π = 1, as one linear system: the last equation replaces one that follows from the others.
    system = torch.cat([(weights.T - torch.eye(size, dtype=X.dtype))[:-1], torch.ones(1, size, dtype=X.dtype)])
    return torch.linalg.solve(system, torch.eye(size, dtype=X.dtype)[-1])


def _limit_cases():
    def case(label, seed, shape, scale):
        (X,) = normal(seed, shape, dtype=torch.float64)
        return Case(label, (scale * X,))

    return [
        case("2 tokens of width 3", 231, (2, 3), 0.7),
        case("5 tokens of width 2", 232, (5, 2), 0.5),
        case("7 tokens of width 7", 233, (7, 7), 0.3),
        case("3 tokens of width 11", 234, (3, 11), 0.4),
        Case("one token", (torch.tensor([[0.3, 0.5]], dtype=torch.float64),)),
        case("5 tokens of width 8, which mix slowly", 235, (5, 8), 1.2),
    ]


def _stopped_early(call, case, result):
    """Name a row of a power of A, which is on the way to the limit and not there."""
    if not isinstance(result, torch.Tensor) or result.shape != (len(case.args[0]),):
        return None
    weights = torch.softmax(case.args[0] @ case.args[0].T, dim=-1)
    for power in (1, 2, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 100_000):
        rows = torch.linalg.matrix_power(weights, power)
        if (rows - result).abs().amax(dim=-1).min() < 1e-9:
            return (
                f"That is a row of A to the power {power}. The limit is the right place to look, but some sentences "
                "need millions of rounds and more. Which shares does one round leave as they are?"
            )
    return None


def _drifted(call, case, result):
    """Name shares in the right proportions that do not sum to one, as a very high power of A has them."""
    if not isinstance(result, torch.Tensor) or result.shape != (len(case.args[0]),) or not result.sum() > 0:
        return None
    total = result.sum().item()
    if abs(total - 1) < 1e-7 or not torch.allclose(result / total, settled_shares(case.args[0]), rtol=1e-5):
        return None
    return (
        f"Your shares have the right proportions, but they sum to {total:.6g}. If that is a very high power of A: "
        "every multiplication rounds a little, and it adds up. Which shares does one round leave as they are?"
    )


EXERCISE_6 = Exercise(
    "02.6", "Where repeated averaging ends", 15, 3, settled_shares, _limit_cases,
    slips(
        "X", """
            totals = (X @ X.T).exp().sum(-1)
            return totals / totals.sum()
        """,
        ("equal", "(X @ X.T).exp().sum(-1)", "torch.ones_like(X[:, 0])",
         "Equal shares are the limit only if all rows of exp(X Xᵀ) have the same sum."),
        ("totals", " / totals.sum()", "",
         "Those are the sums of the rows of exp(X Xᵀ); as shares they must sum to one."),
        ("diagonal", "exp().sum(-1)", "softmax(-1).diagonal()", "You took the weight that each token gives itself."),
        ("columns", "exp().sum(-1)", "softmax(-1).mean(0)",
         "Those are the shares after one step, averaged over tokens; the limit is something else."),
        ("softmax of lengths", "exp().sum(-1)", "diagonal().exp()",
         "You used a token's score with itself; its scores with all the others count too."),
    ),
    rtol=1e-5, probes=(_stopped_early, _drifted),
)  # fmt: skip

# 02.7 How far from similarity? ----------------------------------------------------------------------------------------


def unbalanced(A):
    """Return how far the weights are from any that symmetric scores could make, a number: 0 if such scores could.

    A: [n, n], all entries positive, n at least 3, float64. The number is the largest |ln(there / back)| of all rings of
    three tokens i, j, k, where there is A[i, j] A[j, k] A[k, i], and back is A[i, k] A[k, j] A[j, i].
    """
    lean = A.log() - A.T.log()
    # i → j → k → i, for all three at once: [n, n, n]
    rings = lean[:, :, None] + lean[None, :, :] + lean.T[:, None, :]
    return rings.abs().max().item()


def _unbalanced_cases():
    def case(label, scores):
        return Case(label, (torch.softmax(scores, dim=-1),))

    def symmetric(seed, size):
        (scores,) = normal(seed, (size, size), dtype=torch.float64)
        return scores + scores.T

    (X,) = normal(262, (3, 5), dtype=torch.float64)
    (free,) = normal(263, (3, 3), dtype=torch.float64)
    tokens, w_q, w_k = normal(264, (7, 3), (3, 2), (3, 2), dtype=torch.float64)
    (louder,) = normal(265, (5,), dtype=torch.float64)
    hidden, late = symmetric(266, 5), symmetric(267, 5)
    hidden[0, 2] += 1.0  # not on the ring of neighbours
    late[3, 4] += 1.0  # and this one not on the ring of the first three
    return [
        case("3 tokens read one another by X Xᵀ", X @ X.T),
        case("3 tokens, scores as they come", free),
        case("7 tokens with queries and keys", (tokens @ w_q) @ (tokens @ w_k).T),
        case("5 tokens, symmetric scores, and some keys are louder", symmetric(268, 5) + louder),
        case("5 tokens, one score is not symmetric, that of 0 and 2", hidden),
        case("5 tokens, one score is not symmetric, that of 3 and 4", late),
    ]


EXERCISE_7 = Exercise(
    "02.7", "How far from similarity?", 10, 2, unbalanced, _unbalanced_cases,
    slips(
        "A", """
            n = len(A)
            largest = 0.0
            for i, j, k in [(i, j, k) for i in range(n) for j in range(n) for k in range(n)]:
                there = A[i, j] * A[j, k] * A[k, i]
                back = A[i, k] * A[k, j] * A[j, i]
                largest = max(largest, abs(math.log(there / back)))
            return largest
        """,
        ("one ring of three", "[(i, j, k) for i in range(n) for j in range(n) for k in range(n)]", "[(0, 1, 2)]",
         "You went round the ring of tokens 0, 1 and 2 only; take the largest of all rings of three."),
        ("neighbours", "[(i, j, k) for i in range(n) for j in range(n) for k in range(n)]",
         "[(i, i + 1, i + 2) for i in range(n - 2)]",
         "You went round rings of neighbours only; take the largest of all rings of three."),
        ("pairs", "there = A[i, j] * A[j, k] * A[k, i]\n    back = A[i, k] * A[k, j] * A[j, i]",
         "there = A[i, j]\n    back = A[j, i]",
         "You compared the two weights of a pair. Those may differ, since each row has its own sum; on a ring of three "
         "the sums cancel."),
        ("no logarithm", "abs(math.log(there / back))", "float(there / back)",
         "That is the largest ratio; its logarithm is asked for, which is 0 when both products are equal."),
        ("difference", "abs(math.log(there / back))", "abs(float(there - back))",
         "That is the largest difference of the two products; the logarithm of their ratio is asked for."),
        ("the way there", "math.log(there / back)", "math.log(there)",
         "You took the logarithm of the way there alone; it is to be compared with the way back."),
        ("sum", "max(largest, abs(math.log(there / back)))", "largest + abs(math.log(there / back))",
         "You added all rings up; the largest is asked for."),
    ),
    rtol=1e-6,
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5, EXERCISE_6, EXERCISE_7)
