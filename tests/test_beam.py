from __future__ import annotations

import math
import random
from functools import partial
from itertools import product

import pytest
import torch

import transformer_lib as tl
from factories import BATCH, POSITIONS, make_config, make_model, sources, with_frequent_eos
from transformer_lib.model.base import TranslationModel

pytestmark = pytest.mark.fast

EOS = 2


def next_log_probabilities(model, row, beams):
    with torch.no_grad():
        logits = model(row.expand(len(beams), -1), torch.tensor([ids for _, ids in beams]))
    return logits[:, -1].log_softmax(dim=-1).tolist()


def log_probability(model, row, ids):
    """Of a whole target, from one pass of the model."""
    with torch.no_grad():
        log_probs = model(row[None], torch.tensor([ids[:-1]]))[0].log_softmax(dim=-1)
    return sum(float(log_probs[i, token]) for i, token in enumerate(ids[1:]))


def plain_beam_search(next_log_probs, beam_size, steps, alpha, eos_id=EOS):
    """Beam search for one sentence with lists, which never stops before its last step: [(score, ids)], best first.

    next_log_probs: from [(log-probability, ids)] of the beams to the log-probabilities of the next token after each.
    """
    beams, finished = [(0.0, (1,))], []

    def finish(total, ids):
        finished.append((total / ((5 + len(ids) - 1) / 6) ** alpha, ids))

    for _ in range(steps):
        continuations = [
            (total + log_p, (*ids, token))
            for (total, ids), log_probs in zip(beams, next_log_probs(beams), strict=True)
            for token, log_p in enumerate(log_probs)
        ]
        continuations.sort(reverse=True)
        for total, ids in continuations[:beam_size]:
            if ids[-1] == eos_id:
                finish(total, ids)
        beams = [(total, ids) for total, ids in continuations if ids[-1] != eos_id][:beam_size]
    for total, ids in beams:
        finish(total, ids)
    return sorted(finished, reverse=True)


class Tabled(TranslationModel):
    """Says each next token with a given probability: a function of the tokens so far returns one for each token."""

    def __init__(self, probabilities, vocab_size):
        super().__init__()
        self.config = make_config(src_vocab_size=vocab_size, tgt_vocab_size=vocab_size)
        self.probabilities = probabilities

    def encode(self, src):
        return src[..., None].double()

    def decode(self, tgt_in, memory, src, *, cache=None):
        prefixes = [[tuple(row[:end]) for end in range(1, len(row) + 1)] for row in tgt_in.tolist()]
        table = [[self.probabilities(prefix) for prefix in row] for row in prefixes]
        return torch.tensor(table, dtype=torch.float64).log()

    def log_probs(self, beams):
        return [[math.log(p) if p else -math.inf for p in self.probabilities(ids)] for _, ids in beams]


def drawn(seed, words):
    """Random probabilities of tokens after every prefix, made so that beams often end together.

    The first token is one of the words, nearly as likely as one another; in one of the next steps all sentences end
    with a probability around a half; in the others one word leads, or eos.
    """
    bend = random.Random(seed).choice((2, 3))

    def probabilities(prefix):
        rng = random.Random(f"{seed} {prefix}")
        chances = dict.fromkeys(range(3 + words), 0.0)
        if len(prefix) == 1:
            chances |= {3 + word: 1 + 0.01 * rng.random() for word in range(words)}
        else:
            chances[EOS] = rng.uniform(0.5, 0.52) if len(prefix) == bend else rng.choice((0.0, 0.1, 1.0))
            chances[rng.randrange(3, 3 + words)] = 1 - chances[EOS]
            chances[rng.randrange(3, 3 + words)] += 0.1 * rng.random()
        return [chance / sum(chances.values()) for chance in chances.values()]

    return probabilities


def lively_model(seed=0, **options):
    return with_frequent_eos(make_model(seed, scale=2.0, norm_first=True, **options), sources(seed=seed), 11)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("use_cache", [False, True])
def test_a_beam_that_cuts_nothing_finds_every_target(alpha, use_cache):
    """With five words and three steps there are 1 + 4 + 16 + 4·16 targets; a beam of 4³ keeps all of them."""
    model = make_model(scale=2.0, src_vocab_size=5, tgt_vocab_size=5)
    row = torch.tensor([3, 4, 4, 3])
    found = tl.beam_hypotheses(
        model, row[None], beam_size=5**3, max_new_tokens=3, length_penalty=alpha, use_cache=use_cache
    )[0]
    targets = [
        (1, *ids)
        for length in (1, 2, 3)
        for ids in product(range(5), repeat=length)
        if EOS not in ids[:-1] and (ids[-1] == EOS or length == 3)
    ]
    assert sorted(h.ids for h in found) == sorted(targets) and len(targets) == 85
    for hypothesis in found:
        wanted = log_probability(model, row, hypothesis.ids)
        assert hypothesis.log_probability == pytest.approx(wanted, abs=1e-4)
        penalty = ((5 + len(hypothesis.ids) - 1) / 6) ** alpha
        assert hypothesis.score == pytest.approx(wanted / penalty, abs=1e-4)
    scores = [h.score for h in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("beam_size", [2, 5])
def test_it_equals_plain_beam_search(beam_size):
    for seed in (0, 1):
        model, src = lively_model(seed), sources(seed=seed)
        options = {"beam_size": beam_size, "max_new_tokens": 11, "length_penalty": 0.6}
        for use_cache in (False, True):
            found = tl.beam_hypotheses(model, src, **options, use_cache=use_cache)
            best = tl.beam_search(model, src, **options, use_cache=use_cache)
            assert best.shape == (BATCH, max(len(ranked[0].ids) for ranked in found))
            for ours, row, said in zip(found, src, best.tolist(), strict=True):
                after = partial(next_log_probabilities, model, row)
                theirs = plain_beam_search(after, beam_size, 11, 0.6, model.config.eos_id)
                scores = {ids: score for score, ids in theirs}
                assert len(ours) >= beam_size and ours[0].ids == theirs[0][1]
                assert [h.score for h in ours] == pytest.approx([scores[h.ids] for h in ours], abs=1e-4)
                assert said == [*ours[0].ids, *[0] * (len(said) - len(ours[0].ids))]


# Next-word probabilities: bos -> 3 or 4, .5 each; 3 -> eos .51, 5 .49; 4 -> eos .51, 6 .49; from there on 1 to the end.
ENDS_EARLY = {
    1: {3: 0.5, 4: 0.5},
    3: {EOS: 0.51, 5: 0.49},
    4: {EOS: 0.51, 7: 0.49},
    5: {6: 1.0},
    6: {8: 1.0},
    8: {EOS: 1.0},
    7: {9: 1.0},
    9: {EOS: 1.0},
    EOS: {EOS: 1.0},
}


def ends_early(prefix):
    return [ENDS_EARLY[prefix[-1]].get(token, 0.0) for token in range(10)]


@pytest.mark.parametrize("steps", [5, 11])
def test_beams_behind_those_that_all_end_at_once_may_win(steps):
    """After two steps both best continuations are ends, of .255; behind them are beams of .245 that go on with 1."""
    model = Tabled(ends_early, 10)
    ranked = tl.beam_hypotheses(model, torch.tensor([[3]]), beam_size=2, max_new_tokens=steps)[0]
    assert ranked[0].ids == (1, 3, 5, 6, 8, EOS)
    assert ranked[0].score == pytest.approx(math.log(0.5 * 0.49) / (10 / 6) ** 0.6) == pytest.approx(-1.035, abs=5e-4)
    assert [h.score for h in ranked if h.ids == (1, 3, EOS)] == [pytest.approx(-1.246, abs=5e-4)]


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("beam_size", [2, 3, 5])
def test_stopping_early_never_changes_the_result(beam_size, alpha):
    early = 0
    for seed in range(24):
        words = (beam_size, beam_size + 2)[seed % 2]
        model, steps = Tabled(drawn(seed, words), 3 + words), []
        options = {"beam_size": beam_size, "max_new_tokens": 9, "length_penalty": alpha}
        found = tl.beam_hypotheses(model, torch.tensor([[3]]), **options, on_step=steps.append)[0]
        score, ids = plain_beam_search(model.log_probs, beam_size, 9, alpha)[0]
        assert found[0].ids == ids and found[0].score == pytest.approx(score, abs=1e-12)
        assert len(steps) == 9 or len(found) >= beam_size
        early += len(steps) < 9
    assert early > 0 or alpha == 2.0  # where what is longer nearly always may win


def test_one_beam_is_greedy_decoding():
    """Its sentence ends with probability .51, though what is second best then would score more."""
    model = Tabled(lambda prefix: [0, 0, 0, 0.6, 0.4, *[0] * 5] if prefix == (1,) else ends_early(prefix), 10)
    found = tl.beam_search(model, torch.tensor([[3]]), beam_size=1, max_new_tokens=11)
    assert torch.equal(found, tl.greedy_decode(model, torch.tensor([[3]]), max_new_tokens=11))
    assert found.tolist() == [[1, 3, EOS]]
    for seed in range(3):
        model, src = lively_model(seed), sources(seed=seed)
        greedy = tl.greedy_decode(model, src, max_new_tokens=11)
        assert torch.equal(tl.beam_search(model, src, beam_size=1, max_new_tokens=11), greedy)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_scores_of_logits_in_16_bits_are_added_up_in_32(dtype):
    model, src = lively_model(), sources()[:1]
    model.output_head.register_forward_hook(lambda _module, _inputs, logits: logits.to(dtype) / 4)  # many words likely
    for hypothesis in tl.beam_hypotheses(model, src, beam_size=3, max_new_tokens=19)[0]:
        with torch.no_grad():
            log_probs = model(src, torch.tensor([hypothesis.ids[:-1]]))[0].double().log_softmax(dim=-1)
        wanted = sum(log_probs[i, token].item() for i, token in enumerate(hypothesis.ids[1:]))
        assert hypothesis.log_probability == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("position", POSITIONS)
def test_a_cache_changes_nothing(position):
    model, src = lively_model(position=position), sources()
    with_cache, without = (
        tl.beam_search(model, src, beam_size=3, max_new_tokens=19, use_cache=use_cache) for use_cache in (True, False)
    )
    assert torch.equal(with_cache, without)


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_improbable_early_ends_do_not_cut_off_the_likely_sentence(alpha):
    """Words 3, 4, 5, … in a row have probability .9 each, eos .09; the sentence ends after the word 9."""
    model = make_model()

    def logits(_module, args, _output):
        hidden_ids = args[0][..., 0].round().long()
        rows = torch.full((*hidden_ids.shape, 29), 1e-6)
        rows.scatter_(-1, (hidden_ids + 1).clamp(3, 9)[..., None], 0.9)
        rows[..., EOS] = torch.where(hidden_ids == 9, 5.0, 0.09)
        return rows.log()

    model.decoder.register_forward_hook(lambda _m, args, _o: args[0])  # the embeddings go straight to the head
    model._embed = lambda embedding, ids, start=0: ids[..., None].float().expand(*ids.shape, 30).contiguous()
    model.output_head.register_forward_hook(logits)
    for beam_size in (1, 2, 3):
        options = {"beam_size": beam_size, "max_new_tokens": 11, "length_penalty": alpha}
        best = tl.beam_search(model, torch.tensor([[3, 4]]), **options, use_cache=False)
        assert best.tolist() == [[1, 3, 4, 5, 6, 7, 8, 9, EOS]]


def test_targets_that_never_end_compete_as_they_are():
    model, never = make_model(), torch.zeros(29)
    never[EOS] = 1e9
    model.output_head.register_forward_hook(lambda _module, _inputs, logits: logits - never)
    for ranked in tl.beam_hypotheses(model, sources(), beam_size=3, max_new_tokens=4):
        assert [len(h.ids) for h in ranked] == [5, 5, 5] and all(EOS not in h.ids for h in ranked)


def test_every_step_can_be_watched():
    model, src, steps = lively_model(), sources(), []
    found = tl.beam_hypotheses(model, src, beam_size=2, max_new_tokens=11, on_step=steps.append)
    for i in range(BATCH):
        mine = [step for step in steps if step.sentence == i]
        ended = [hypothesis for step in mine for hypothesis in step.ended]
        assert set(ended) <= set(found[i])
        for number, step in enumerate(mine, start=1):
            assert all(len(ids) == number + 1 for ids, _ in step.kept)
            assert all(len(h.ids) == number + 1 and h.ids[-1] == model.config.eos_id for h in step.ended)
            scores = [score for _, score in step.kept]
            assert scores == sorted(scores, reverse=True) and len(scores) <= 2
        assert len(ended) >= 2 or len(mine) == 11
    assert any(step.ended for step in steps)


def test_a_vocabulary_smaller_than_the_beam():
    model = make_model(src_vocab_size=4, tgt_vocab_size=4)
    ranked = tl.beam_hypotheses(model, torch.tensor([[3]]), beam_size=7, max_new_tokens=1)[0]
    assert sorted(h.ids for h in ranked) == [(1, 0), (1, 1), (1, 2), (1, 3)]


def test_the_model_returns_to_its_mode():
    model = make_model(dropout=0.5).train()
    one, other = (tl.beam_search(model, sources(), beam_size=2, max_new_tokens=5) for _ in range(2))
    assert torch.equal(one, other) and model.training


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"beam_size": 0}, ValueError, "beam_size must be at least 1, got 0"),
        ({"beam_size": 2.0}, TypeError, "beam_size must be an int, got 2.0"),
        ({"length_penalty": -0.1}, ValueError, "length_penalty must be at least 0, got -0.1"),
        ({"length_penalty": 1e4}, ValueError, "length_penalty must give 3 tokens a finite divisor, got 10000.0"),
        ({"length_penalty": math.inf}, ValueError, "length_penalty must give 3 tokens a finite divisor, got inf"),
    ],
)
def test_bad_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        tl.beam_search(make_model(), sources(), **{"beam_size": 2, "max_new_tokens": 3, **options})
