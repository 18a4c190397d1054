"""The exercises of notebook 25: which tokens count, LoRA, advantages, a reward of one's own, DPO's loss."""

from __future__ import annotations

import math

import torch

from .model import Case, Exercise, Mistake, integers, normal
from .slips import slips

# 25.1 Only the answer counts -----------------------------------------------------------------------------------------


def answer_targets(turns, ignored):
    """Return (inputs, targets) of a conversation, two lists of the same length: which token is to be said after which.

    turns: a list of pairs (role, ids), in order; the role is "system", "user" or "assistant". inputs are all ids of the
    conversation but the last one; targets[i] is the id that follows inputs[i] where the assistant says it, and
    `ignored` elsewhere.
    """
    every = [(token, role) for role, ids in turns for token in ids]
    inputs = [token for token, _ in every[:-1]]
    return inputs, [token if role == "assistant" else ignored for token, role in every[1:]]


def _conversation(label, seed, roles, ignored=-100):
    lengths = integers(seed, (len(roles),), 2, 7).tolist()
    turns = [
        (role, integers(seed + 1 + number, (length,), 3, 50).tolist())
        for number, (role, length) in enumerate(zip(roles, lengths, strict=True))
    ]
    return Case(label, (turns, ignored))


def _conversations():
    user, assistant = "user", "assistant"
    return [
        _conversation("a question and its answer", 25000, (user, assistant)),
        _conversation("two of each", 25010, (user, assistant, user, assistant)),
        _conversation("a system's message first", 25020, ("system", user, assistant), 0),
        _conversation("the last question is not answered", 25030, (user, assistant, user)),
        _conversation("three of each, after a system's message", 25040, ("system", *(user, assistant) * 3), 1),
        _conversation("the assistant begins", 25050, (assistant, user, assistant), 2),
    ]


def _only_the_last_answer(turns, ignored):
    """Return the targets of the last answer alone."""
    inputs, targets = answer_targets(turns, ignored)
    said = max(number for number, (role, _) in enumerate(turns) if role == "assistant")
    start = sum(len(ids) for _, ids in turns[:said])
    return inputs, [ignored if at + 1 < start else target for at, target in enumerate(targets)]


def _each_turn_by_itself(turns, ignored):
    """Shift each turn alone."""
    inputs, targets = [], []
    for role, ids in turns:
        inputs += ids[:-1]
        targets += ids[1:] if role == "assistant" else [ignored] * (len(ids) - 1)
    return inputs, targets


EXERCISE_1 = Exercise(
    "25.1", "Only the answer counts", 6, 2, answer_targets, _conversations,
    slips(
        "turns, ignored", """
            ids, mine = [], []
            for role, part in turns:
                ids += part
                mine += [role == "assistant"] * len(part)
            targets = [token if said else ignored for token, said in zip(ids[1:], mine[1:])]
            return ids[:-1], targets
        """,
        ("not shifted", "zip(ids[1:], mine[1:])", "zip(ids[:-1], mine[:-1])",
         "Your targets are the inputs themselves; targets[i] is the token that comes after inputs[i]."),
        ("who reads", "zip(ids[1:], mine[1:])", "zip(ids[1:], mine)",
         "You ask who says the input. It counts who says the target: so the first token of an answer counts, and what "
         "comes right after the answer does not."),
        ("all of it", "token if said else ignored", "token",
         "Every token counts in your targets, so the model also learns to ask the questions."),
        ("not the user", 'role == "assistant"', 'role != "user"',
         "The system's message counts in your targets; the assistant reads it, and does not say it."),
        ("the questions", 'role == "assistant"', 'role == "user"',
         "Your targets are the user's tokens; those of the assistant are to be learned."),
        ("one input too many", "return ids[:-1]", "return ids",
         "There is one input more than there are targets: nothing follows the last token."),
        ("-100 by heart", "else ignored", "else -100",
         "You mark what does not count by -100; the mark is given as `ignored`."),
        ("the end not learned", '[role == "assistant"] * len(part)',
         '[role == "assistant"] * (len(part) - 1) + [False]',
         "The token that ends an answer does not count in your targets: the assistant would never learn to stop."),
        ("the beginning not learned", '[role == "assistant"] * len(part)',
         '[False] + [role == "assistant"] * (len(part) - 1)',
         "The first token of each answer does not count in your targets; the assistant says it, too."),
        ("not read", "return ids[:-1], targets",
         "return [token if said else ignored for token, said in zip(ids, mine)][:-1], targets",
         "You took what others say out of the inputs as well; it is read, only not learned."),
        ("the last one read", "return ids[:-1], targets", "return ids, targets + [ignored]",
         "Nothing follows the last token, so it is no input: leave it out."),
        ("always zero", "else ignored", "else 0",
         "You mark what does not count by 0; the mark is given as `ignored`, and 0 may be a token."),
    )
    + (Mistake("the last answer", _only_the_last_answer,
               "Only the last answer counts in your targets; all of the assistant's turns do."),
       Mistake("each turn by itself", _each_turn_by_itself,
               "You shift each turn by itself, so nothing leads from one turn to the next: put all ids in one list, "
               "then shift."),),
    returns=("inputs", "targets"),
)  # fmt: skip


# 25.2 A layer beside a layer -----------------------------------------------------------------------------------------


def adapted(x, weight, A, B, alpha):
    """Return (output, merged) of a linear layer with a low-rank adapter beside it.

    x: [..., in]; weight: [out, in], as `torch.nn.Linear` has it; A: [r, in]; B: [out, r]. What the adapter says is
    added to what the layer says, times alpha / r. output: [..., out]. merged: the one weight [out, in] with which a
    linear layer without adapter gives the same output.
    """
    scale = alpha / A.shape[0]
    merged = torch.einsum("or,ri->oi", B, A).mul(scale).add(weight)
    narrow = torch.einsum("...i,ri->...r", x, A)
    return torch.einsum("...i,oi->...o", x, weight) + scale * torch.einsum("...r,or->...o", narrow, B), merged


def _adapter_case(label, seed, shape, out, rank, alpha, zero=False):
    x, weight, a, b = normal(seed, shape, (out, shape[-1]), (rank, shape[-1]), (out, rank))
    return Case(label, (x, weight, a, torch.zeros_like(b) if zero else b, alpha))


def _adapter_cases():
    return [
        _adapter_case("one token, rank 1", 25100, (3,), 2, 1, 3.0),
        _adapter_case("5 tokens, rank 2", 25101, (5, 7), 3, 2, 5.0),
        _adapter_case("a batch, rank 3", 25102, (2, 5, 11), 7, 3, 16.0),
        _adapter_case("B is 0, as at the start", 25103, (5, 7), 11, 3, 16.0, zero=True),
        _adapter_case("as wide as it is long", 25104, (3, 5), 5, 2, 7.0),
        _adapter_case("alpha is r", 25105, (2, 3), 13, 5, 5.0),
    ]


EXERCISE_2 = Exercise(
    "25.2", "A layer beside a layer", 8, 2, adapted, _adapter_cases,
    slips(
        "x, weight, A, B, alpha", """
            scale = alpha / len(A)
            output = x @ weight.T + scale * (x @ A.T @ B.T)
            merged = weight + scale * (B @ A)
            return output, merged
        """,
        ("no scale", "alpha / len(A)", "1.0", "The adapter counts alpha / r times; you add it as it is."),
        ("alpha alone", "alpha / len(A)", "alpha", "The adapter counts alpha / r times, and you multiply by alpha."),
        ("whole numbers", "alpha / len(A)", "alpha // len(A)", "// drops what is behind the point: alpha / r."),
        ("root of the rank", "alpha / len(A)", "alpha / len(A) ** 0.5",
         "You divide alpha by the root of the rank; LoRA divides by the rank."),
        ("upside down", "alpha / len(A)", "len(A) / alpha", "You multiply by r / alpha; it is alpha / r."),
        ("both scaled",
         "output = x @ weight.T + scale * (x @ A.T @ B.T)\nmerged = weight + scale * (B @ A)",
         "merged = scale * (weight + B @ A)\noutput = x @ merged.T",
         "You multiply the layer, too, by alpha / r; only the adapter is."),
        ("merged without gradients", "weight + scale * (B @ A)", "(weight + scale * (B @ A)).detach()",
         "All values are right, and your layer would learn. But no gradient goes through the merged weight, and here "
         "both results are asked: compute it without no_grad or detach."),
        ("over out", "len(A)", "len(B)", "You divide alpha by B's number of rows; the rank r is A's."),
        ("over in", "len(A)", "A.shape[1]", "You divide alpha by the width of x; the rank r is A's number of rows."),
        ("in place of the layer", "x @ weight.T + ", "",
         "What the layer itself says is missing: the adapter is beside it, not in its place."),
        ("merged without the scale", "scale * (B @ A)", "B @ A",
         "The output is right, but B A enters the merged weight without alpha / r."),
        ("the difference", "weight + scale * (B @ A)", "scale * (B @ A)",
         "Your merged weight is only what the adapter adds; the layer's own weight belongs to it."),
        ("detached", "scale * (x @ A.T @ B.T)", "scale * (x @ A.T @ B.T).detach()",
         "The values are right, but no gradient of the output reaches A and B, so they would never learn."),
    ),
    gradients=("A", "B"), returns=("output", "merged"),
)  # fmt: skip


# 25.3 Better than the others -----------------------------------------------------------------------------------------


def group_advantages(rewards):
    """Return how much better each text is than its group, [groups, size].

    rewards: [groups, size], a row for each group. In each row the mean of what is returned is 0, and its standard
    deviation (torch's `std`) 1. Where all rewards of a row are the same, all of it is 0.
    """
    rows = []
    for row in rewards.double():
        apart = row - sum(row) / len(row)
        spread = (sum(apart**2) / (len(row) - 1)) ** 0.5
        rows.append(apart / spread if spread > 1e-9 else torch.zeros_like(row))
    return torch.stack(rows).to(rewards.dtype)


def _group_case(label, seed, groups, size, equal=()):
    rewards = normal(seed, (groups, size))[0] * (1 + torch.arange(groups)[:, None]) + 5 * torch.arange(groups)[:, None]
    for row in equal:
        rewards[row] = row + 1.0
    return Case(label, (rewards,))


def _rewards_of(label, seed, groups, size):
    right = integers(seed, (groups, size), 0, 2).float()
    right[:, 0], right[:, 1] = 0.0, 1.0
    return Case(label, (right,))


def _group_cases():
    return [
        _rewards_of("one group of 5, right or wrong", 25200, 1, 5),
        _group_case("3 groups of 7", 25201, 3, 7),
        _group_case("2 groups of 2", 25202, 2, 2),
        _group_case("in one of 3 groups all are the same", 25203, 3, 5, equal=(1,)),
        _rewards_of("5 groups of 11, right or wrong", 25204, 5, 11),
        _group_case("all are the same", 25205, 2, 3, equal=(0, 1)),
    ]


EXERCISE_3 = Exercise(
    "25.3", "Better than the others", 5, 1, group_advantages, _group_cases,
    slips(
        "rewards", """
            apart = rewards - rewards.mean(dim=1, keepdim=True)
            spread = rewards.std(dim=1, keepdim=True)
            return apart / (spread + 1e-4)
        """,
        ("one mean for all", "rewards.mean(dim=1, keepdim=True)", "rewards.mean()",
         "You subtract the mean of all groups; each group is compared with itself alone."),
        ("one spread for all", "rewards.std(dim=1, keepdim=True)", "rewards.std()",
         "You divide by the spread of all groups together; each group has its own."),
        ("all as one group",
         "rewards.mean(dim=1, keepdim=True)\nspread = rewards.std(dim=1, keepdim=True)",
         "rewards.mean()\nspread = rewards.std()",
         "You take all groups for one; each row is compared with itself alone."),
        ("columns for both", "rewards.mean(dim=1, keepdim=True)\nspread = rewards.std(dim=1, keepdim=True)",
         "rewards.mean(dim=0, keepdim=True)\nspread = rewards.std(dim=0, keepdim=True).nan_to_num(0.0)",
         "Your means and deviations are those of the columns; a group is a row."),
        ("no keepdim", "rewards.mean(dim=1, keepdim=True)\nspread = rewards.std(dim=1, keepdim=True)",
         "rewards.mean(dim=1)\nspread = rewards.std(dim=1)",
         "Without keepdim=True the means lie along a row, so column j is compared with group j."),
        ("columns", "rewards.mean(dim=1, keepdim=True)", "rewards.mean(dim=0, keepdim=True)",
         "You compare across groups, column by column; a group is a row."),
        ("not divided", "apart / (spread + 1e-4)", "apart",
         "The mean is right, but each row is still to be divided by its standard deviation."),
        ("variance", "rewards.std(", "rewards.var(", "You divide by the variance; the standard deviation is its root."),
        ("0 / 0", "apart / (spread + 1e-4)", "apart / spread",
         "Where all rewards of a group are the same you get NaN, 0 / 0, and one NaN ends a training: return 0 there."),
        ("no mean", "rewards - rewards.mean(dim=1, keepdim=True)", "rewards",
         "You divide without subtracting the mean, so all texts with a reward are pushed up, however good the others "
         "were."),
        ("the other deviation", "std(dim=1, keepdim=True)", "std(dim=1, keepdim=True, correction=0)",
         "You divide the squares by n; torch's std divides them by n − 1."),
    ),
    rtol=2e-3,
)  # fmt: skip


# 25.4 A reward that is hard to cheat ---------------------------------------------------------------------------------

ENOUGH = 5  # words


def reward(texts, right):
    """Return one number for each text of a group: what it earns.

    texts: a list of strings, what the writer has said in this step; right: a list of booleans, what the grammar says
    of each. You decide how much a text earns, if only (1) one that is not right earns less than every right one of five
    or more words that was said once; (2) of two right texts with the same number of words, the one that was said more
    often earns less apiece, on the average of its copies; (3) a right text of fewer than five words earns less than
    every right one of five or more, where both were said once. Words are what split() finds.
    """
    return [
        (1.0 if len(text.split()) >= ENOUGH else 0.25) / sum(other == text for other in texts) if good else 0.0
        for text, good in zip(texts, right, strict=True)
    ]


def _unfair(texts, right, earned):
    """Say which cheat pays, or which of the demands is not met; None if the reward is one that is asked for."""
    values = [float(value) for value in earned]
    if len(values) != len(texts) or not all(map(math.isfinite, values)):
        return f"Return {len(texts)} finite numbers, one for each text."
    mean = {text: sum(v for t, v in zip(texts, values, strict=True) if t == text) / texts.count(text) for text in texts}
    good = {text: ok for text, ok in zip(texts, right, strict=True)}
    for first in mean:
        for second in mean:
            problem = _problem(first, second, mean, good, texts)
            if problem:
                return problem
    return None


def _problem(first, second, mean, good, texts):
    """Say what is wrong if the first earns as much as the second and should not; else None."""
    length, other = len(first.split()), len(second.split())
    if not good[second] or mean[first] < mean[second] - 1e-9:
        return None
    once = texts.count(second) == 1
    if not good[first]:
        if once and other >= ENOUGH:
            return (
                f"A text that is not right earns {mean[first]:g}, a right one {mean[second]:g}: “{first}”, “{second}”"
            )
        return None
    if length == other and texts.count(first) > texts.count(second):
        return (
            f"Repeating pays: “{first}” was said {texts.count(first)} times and earns {mean[first]:g} each time, "
            f"“{second}”, as long, {texts.count(second)} times, and earns {mean[second]:g}."
        )
    if once and texts.count(first) == 1 and length < ENOUGH <= other:
        return f"Brevity pays: “{first}” earns {mean[first]:g}, “{second}” {mean[second]:g}."
    return None


_WORDS = ["der", "Mann", "sah", "das", "Ufer", "und", "die", "Frau", "fand", "ein", "Buch", "am", "Tisch"]


def _said(seed, lengths, copies, wrong=()):
    """Return texts of these lengths, each as often as `copies` says, and which are right."""
    texts, right = [], []
    for number, (length, times) in enumerate(zip(lengths, copies, strict=True)):
        picked = integers(seed + number, (length,), 0, len(_WORDS)).tolist()
        texts += [" ".join(_WORDS[word] for word in picked) + "." + "!" * number] * times  # no two are alike
        right += [number not in wrong] * times
    return texts, right


def _saying_case(label, seed, lengths, copies, wrong=()):
    return Case(label, _said(seed, lengths, copies, wrong))


def _saying_cases():
    return [
        _saying_case("one right, one wrong", 25400, (7, 7), (1, 1), wrong=(1,)),
        _saying_case("one of them three times", 25410, (7, 7, 5), (3, 1, 1)),
        _saying_case("a short one and a long one", 25420, (2, 11), (1, 1)),
        _saying_case("one wrong and repeated, one long", 25430, (11, 6), (2, 1), wrong=(0,)),
        _saying_case("twice, once, and three times", 25440, (6, 6, 6, 3), (2, 1, 3, 1)),
        _saying_case("all are wrong", 25450, (5, 3, 7), (1, 2, 1), wrong=(0, 1, 2)),
        Case("a few long words", (["Wissenschaftlerinnen beschrieben Briefmarken.", "Er sah es am See."], [True] * 2)),
        _saying_case("the first group once more", 25400, (7, 7), (1, 1), wrong=(1,)),
        _saying_case("seven, of all kinds", 25460, (5, 5, 2, 13, 13, 7, 3), (2, 1, 1, 5, 1, 1, 2), wrong=(5,)),
    ]


EXERCISE_4 = Exercise(
    "25.4", "A reward that is hard to cheat", 10, 2, reward, _saying_cases,
    slips(
        "texts, right", """
            earned = []
            for text, good in zip(texts, right):
                length = min(len(text.split()) / 5, 1)
                earned.append(good * length / texts.count(text))
            return earned
        """,
        ("repeats", " / texts.count(text)", "",
         "Repeating pays: a text earns its full reward each time that it is said. A writer will find the one sentence "
         "that is always right."),
        ("short ones", "good * length", "good * 1.0",
         "Brevity pays: a right text of two words earns as much as one of eleven, and is easier to get right."),
        ("letters", "min(len(text.split()) / 5, 1)", "len(text)",
         "You count letters: a few long words earn more than five short ones. text.split() finds the words."),
        ("right or wrong", "good * length", "length",
         "Nothing in your reward asks whether a text is right."),
        ("the shorter the better", "min(len(text.split()) / 5, 1)", "1 / len(text.split())",
         "The shorter a text, the more it earns: brevity pays."),
        ("twice is free", "texts.count(text)", "max(1, texts.count(text) - 1)",
         "A text that is said twice earns as much each time as one that is said once."),
        ("only right or wrong", "good * length / texts.count(text)", "float(good)",
         "A right text earns 1, however short it is, and however often it is said. Both cheats pay."),
        ("a bonus for copies", " / texts.count(text)", " * texts.count(text)",
         "The more often a text is said, the more it earns each time."),
    ),
    judge=_unfair,
)  # fmt: skip


# 25.5 Which of the two? ----------------------------------------------------------------------------------------------


def dpo_loss(chosen, rejected, reference_chosen, reference_rejected, beta):
    """Return DPO's loss, one number: the mean over pairs of −log σ(β · margin).

    chosen, rejected: [batch], log p of the better and of the worse answer of each pair under the model that learns;
    reference_chosen, reference_rejected: [batch], the same under the model it was. The margin is by how much the log
    probability of the better answer has grown more than that of the worse one. A margin may be −10,000.
    """
    grown = torch.stack([chosen - reference_chosen, rejected - reference_rejected])
    margins = beta * (grown[0] - grown[1])
    return torch.logaddexp(torch.zeros_like(margins), -margins).mean()


def _pairs_case(label, seed, size, beta, scale=5.0, start=False, margin=0.0):
    chosen, rejected, first, second = (scale * values - 20 for values in normal(seed, *[(size,)] * 4))
    if start:
        first, second = chosen.clone(), rejected.clone()
    return Case(label, (chosen + margin, rejected, first, second, beta))


def _pairs_cases():
    return [
        _pairs_case("one pair", 25300, 1, 0.1),
        _pairs_case("5 pairs", 25301, 5, 0.1),
        _pairs_case("7 pairs, another beta", 25302, 7, 0.5),
        _pairs_case("3 pairs, the model is still its reference", 25303, 3, 0.1, start=True),
        _pairs_case("11 pairs of long answers", 25304, 11, 0.05, scale=30.0),
        _pairs_case("2 pairs, both judged very wrongly", 25305, 2, 0.1, margin=-10000.0),
    ]


EXERCISE_5 = Exercise(
    "25.5", "Which of the two?", 8, 2, dpo_loss, _pairs_cases,
    slips(
        "chosen, rejected, reference_chosen, reference_rejected, beta", """
            margin = (chosen - reference_chosen) - (rejected - reference_rejected)
            return -torch.nn.functional.logsigmoid(beta * margin).mean()
        """,
        ("no reference", "(chosen - reference_chosen) - (rejected - reference_rejected)", "chosen - rejected",
         "The reference is missing: what counts is how far each log probability has moved, not how large it is."),
        ("the wrong way round", "(chosen - reference_chosen) - (rejected - reference_rejected)",
         "(rejected - reference_rejected) - (chosen - reference_chosen)",
         "Your loss falls when the worse answer becomes likelier."),
        ("added", ") - (rejected", ") + (rejected",
         "You add both movements; the margin is the difference of the two."),
        ("reference added", "- reference_rejected", "+ reference_rejected",
         "The reference's log p of the worse answer enters with the wrong sign."),
        ("no minus", "return -torch", "return torch",
         "The sign is missing: −log σ is what falls when the margin grows."),
        ("no log", "logsigmoid(", "sigmoid(", "You average the probabilities σ; the loss is −log σ."),
        ("beta outside", "torch.nn.functional.logsigmoid(beta * margin)",
         "(beta * torch.nn.functional.logsigmoid(margin))", "β multiplies the margin, inside the sigmoid."),
        ("over beta", "beta * margin", "margin / beta", "You divide the margin by β; multiply."),
        ("references exchanged", "(chosen - reference_chosen) - (rejected - reference_rejected)",
         "(chosen - reference_rejected) - (rejected - reference_chosen)",
         "The references have changed places: each answer is compared with its own log probability from before."),
        ("mean first", "logsigmoid(beta * margin)", "logsigmoid(beta * margin.mean())",
         "You average the margins; each pair has its own −log σ, and these are averaged."),
        ("a small number in the log", "torch.nn.functional.logsigmoid(beta * margin)",
         "(torch.sigmoid(beta * margin) + 1e-8).log()",
         "A small number added inside the logarithm hides the −∞: the loss stops at 18, and nothing is learned from "
         "the worst pairs. torch.nn.functional.logsigmoid is exact."),
        ("one minus", "return -torch.nn.functional.logsigmoid(beta * margin).mean()",
         "return (1 - torch.sigmoid(beta * margin)).mean()", "You average 1 − σ; the loss is −log σ."),
        ("no beta", "beta * margin", "margin", "β is missing: it multiplies the margin."),
        ("summed", ".mean()", ".sum()", "You sum over the pairs; the loss is their mean."),
        ("log of sigmoid", "torch.nn.functional.logsigmoid(beta * margin)", "torch.sigmoid(beta * margin).log()",
         "Where a margin is far below 0, the loss becomes ∞: the sigmoid is rounded to 0, or the exponential in it "
         "overflows. torch.nn.functional.logsigmoid computes all of it in one."),
    ),
    gradients=("chosen", "rejected"),
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
