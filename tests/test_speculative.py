"""Speculative decoding says what the target says: the same tokens, or tokens of the same distribution."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import Tensor

import transformer_lib as tl
from factories import POSITIONS, SIZES, greedy_by_forward, make_config, make_model, sources, with_frequent_eos
from transformer_lib.decoding.speculative import Round, Speculated
from transformer_lib.model.base import TranslationModel

fast = pytest.mark.fast
EOS = 2


def lively(seed: int, scale: float = 2.0, **options) -> tl.Transformer:
    """A model whose likeliest words vary; with a slightly smaller scale it says much the same, but not all."""
    return make_model(seed, scale=scale, norm_first=True, **options)


class Table(TranslationModel):
    """A model without attention: the next token depends on the two before, and on the first word of the source."""

    def __init__(self, seed: int, words: int = 4) -> None:
        super().__init__()
        self.config = make_config(src_vocab_size=7, tgt_vocab_size=words)
        generator = torch.Generator().manual_seed(seed)
        self.logits = 2 * torch.randn(7, words, words, words, generator=generator, dtype=torch.float64)
        self.logits[..., 0] = self.logits[..., 1] = -math.inf  # neither padding nor bos is said

    def encode(self, src: Tensor) -> Tensor:
        return src[:, :1]

    def decode(self, tgt_in, memory, src, *, cache=None):
        before = torch.cat((tgt_in[:, :1], tgt_in[:, :-1]), dim=1)
        return self.logits[memory, before, tgt_in]


def by_chain_rule(model: TranslationModel, src: Tensor, max_new_tokens: int) -> dict[tuple[int, ...], float]:
    """The probability of every sentence that the model can say, token by token."""
    found, growing = {}, {(1,): 1.0}
    for step in range(max_new_tokens):
        longer = {}
        for ids, probability in growing.items():
            shares = model(src, torch.tensor([ids]))[0, -1].softmax(dim=-1).tolist()
            longer |= {(*ids, token): probability * share for token, share in enumerate(shares) if share > 0}
        ended = {ids: value for ids, value in longer.items() if ids[-1] == EOS or step == max_new_tokens - 1}
        found |= ended
        growing = {ids: value for ids, value in longer.items() if ids not in ended}
    return found


# Greedy: the same tokens -----------------------------------------------------------------------------------


@fast
@pytest.mark.parametrize("gamma", [1, 2, 3, 5, 40])
def test_the_tokens_are_those_of_greedy_decoding(gamma):
    src = sources(padded=True)
    target = with_frequent_eos(lively(2), src, 19)
    ended = greedy_by_forward(target, src, 19)
    assert len({row.index(target.config.eos_id, 1) for row in ended.tolist()}) == len(src)
    for draft in (lively(2), lively(2, 1.8), lively(1, n_layers=1)):
        found = tl.speculative_decode(target, draft, src, max_new_tokens=19, gamma=gamma)
        assert torch.equal(found.ids, ended)
        said = [[1, *(token for one in rounds for token in one.said)] for rounds in found.rounds]
        assert torch.equal(tl.pad_batch(said), ended)


@fast
@pytest.mark.parametrize("position", POSITIONS)
def test_every_kind_of_position_may_speculate(position):
    target, draft, src = lively(1, position=position), lively(1, 1.8, position=position), sources()
    found = tl.speculative_decode(target, draft, src, max_new_tokens=13, gamma=3)
    assert torch.equal(found.ids, tl.greedy_decode(target, src, max_new_tokens=13))
    assert 0 < found.accepted < found.drafted  # so the caches were cut, and were of use


@fast
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 37])
def test_the_limit_is_kept(limit):
    target, src = lively(0), sources()
    for draft in (target, lively(0, 1.8), make_model(1)):
        found = tl.speculative_decode(target, draft, src, max_new_tokens=limit, gamma=3)
        assert torch.equal(found.ids, tl.greedy_decode(target, src, max_new_tokens=limit))


@fast
def test_a_sentence_goes_at_its_own_pace_in_a_batch_as_alone():
    target, draft, src = lively(3), lively(3, 1.8), sources()
    found = tl.speculative_decode(target, draft, src, max_new_tokens=17)
    alone = [tl.speculative_decode(target, draft, row[None], max_new_tokens=17) for row in src]
    assert [one.rounds[0] for one in alone] == found.rounds
    assert len({len(rounds) for rounds in found.rounds}) > 1
    assert found.calls == sum(one.calls for one in alone)


@fast
def test_a_draft_that_is_the_target_is_always_right():
    target, src = make_model(0), sources()
    found = tl.speculative_decode(target, target, src, max_new_tokens=17, gamma=4)
    assert found.acceptance == 1 and found.accepted == found.drafted == found.tested
    lengths = [sum(len(one.said) for one in rounds) for rounds in found.rounds]
    assert [len(rounds) for rounds in found.rounds] == [math.ceil(n / 5) for n in lengths]


@fast
def test_the_target_reads_each_new_token_once():
    target, draft, src, read = lively(3), lively(3, 1.8), sources()[:1], []
    decode = target.decode
    target.decode = lambda tgt, *rest, **options: read.append(tgt.shape[1]) or decode(tgt, *rest, **options)
    found = tl.speculative_decode(target, draft, src, max_new_tokens=17, gamma=3)
    assert read == [len(one.drafted) + 1 for one in found.rounds[0]]


@pytest.mark.parametrize("split", ["heldout", "compositional", "hard"])
def test_every_test_sentence_is_translated_as_before(split):
    translator, draft = tl.load_trained(), tl.load_trained("draft")
    src = translator.src_tokenizer.encode_batch([pair.src for pair in tl.load_corpus("context")[split]])
    found = tl.speculative_decode(translator.model, draft.model, src, max_new_tokens=40)
    assert torch.equal(found.ids, tl.greedy_decode(translator.model, src, max_new_tokens=40))
    assert found.tokens_per_call > 2.7


@fast
def test_another_judge_may_be_given():
    target, src, asked = make_model(0), sources(), []

    def cautious(drafted, checked, eos_id):
        asked.append((len(drafted), len(checked), eos_id))
        return checked[:1]

    found = tl.speculative_decode(target, make_model(1), src, max_new_tokens=7, gamma=3, accept=cautious)
    assert torch.equal(found.ids, tl.greedy_decode(target, src, max_new_tokens=7))
    assert found.tokens == found.calls and {(k, n - k, end) for k, n, end in asked} <= {(k, 1, EOS) for k in range(4)}
    trusting = tl.speculative_decode(
        target, make_model(1), src, max_new_tokens=7, gamma=3, accept=lambda drafted, checked, _: [*drafted, 5]
    )
    assert not torch.equal(trusting.ids, found.ids)


# Sampling: the same distribution ---------------------------------------------------------------------------


@fast
@pytest.mark.parametrize(("seed", "gamma", "words"), [(0, 2, 5), (1, 2, 5), (2, 1, 6), (3, 3, 5)])
def test_every_sentence_has_the_target_s_probability(seed, gamma, words):
    target, draft, src = Table(seed, words), Table(seed + 17, words), torch.tensor([[5, 3]])

    def run(draw):
        found = tl.speculative_sample(target, draft, src, max_new_tokens=3, gamma=gamma, draw=draw)
        return tuple(found.ids[0].tolist())

    found, wanted = tl.speculative.every_outcome(run), by_chain_rule(target, src, 3)
    assert found.keys() == wanted.keys() and len(found) > 6
    assert max(abs(found[ids] - wanted[ids]) for ids in wanted) < 1e-12
    drafts = by_chain_rule(draft, src, 3)
    assert max(abs(drafts[ids] - wanted[ids]) for ids in wanted) > 0.05  # the draft's own would not do


@fast
def test_so_it_is_with_attention_and_a_temperature():
    small = {"dtype": torch.float64, "tgt_vocab_size": 5, "scale": 2.0}
    target, draft, src = make_model(0, **small), make_model(1, n_layers=1, **small), sources()[1:2]
    options = {"max_new_tokens": 2, "gamma": 1, "temperature": 0.7}
    found = tl.speculative.every_outcome(
        lambda draw: tuple(tl.speculative_sample(target, draft, src, draw=draw, **options).ids[0].tolist())
    )
    with torch.no_grad():
        target.output_head.weight /= 0.7
    wanted = by_chain_rule(target, src, 2)
    assert max(abs(found[ids] - wanted[ids]) for ids in wanted) < 1e-12 and found.keys() == wanted.keys()


@fast
def test_the_generator_makes_the_draws_repeatable():
    target, draft, src = make_model(0), make_model(1), sources()

    def ids(seed):
        generator = torch.Generator().manual_seed(seed)
        return tl.speculative_sample(target, draft, src, max_new_tokens=7, generator=generator).ids

    assert torch.equal(ids(3), ids(3)) and not torch.equal(ids(3), ids(4))
    cold = tl.speculative_sample(target, draft, src, max_new_tokens=7, temperature=1e-4).ids
    assert torch.equal(cold, tl.greedy_decode(target, src, max_new_tokens=7))


@fast
def test_acceptance_and_residual_by_hand():
    p, q = torch.tensor([0.5, 0.3, 0.2, 0.0]), torch.tensor([0.25, 0.6, 0.0, 0.15])
    accept, residual = tl.speculative.acceptance(p, q)
    torch.testing.assert_close(accept, torch.tensor([1.0, 0.5, 1.0, 0.0]))
    torch.testing.assert_close(residual, torch.tensor([0.25 / 0.45, 0.0, 0.2 / 0.45, 0.0]))
    same = tl.speculative.acceptance(p, p)
    assert torch.equal(same[0], torch.ones(4)) and torch.equal(same[1], p)


@fast
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_accepted_and_replaced_tokens_together_have_the_target_s_probability(dtype):
    p, q = torch.randn(2, 3, 7, 11, dtype=dtype, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    accept, residual = tl.speculative.acceptance(p, q)
    rejected = 1 - (q * accept).sum(dim=-1, keepdim=True)
    torch.testing.assert_close(q * accept + rejected * residual, p, rtol=0, atol=10 * torch.finfo(dtype).eps)
    torch.testing.assert_close((q * accept).sum(dim=-1), torch.minimum(p, q).sum(dim=-1))


@fast
def test_every_outcome_of_two_dice():
    def run(draw):
        first = draw(torch.tensor([0.5, 0.5, 0.0]))
        return first + (draw(torch.tensor([0.25, 0.75])) if first else 0)

    assert tl.speculative.every_outcome(run) == {0: 0.5, 1: 0.125, 2: 0.375}


# Counts ----------------------------------------------------------------------------------------------------


@fast
@pytest.mark.parametrize(
    ("drafted", "checked", "said"),
    [
        ([5, 6, 7], [5, 6, 7, 8], [5, 6, 7, 8]),
        ([5, 6, 7], [5, 9, 7, 8], [5, 9]),
        ([5, 6], [4, 6, 7], [4]),
        ([], [5], [5]),
        ([5, EOS], [5, EOS, 9], [5, EOS]),
        ([5, 6], [5, EOS, 9], [5, EOS]),
        ([EOS, 6], [3, 6, 7], [3]),
        ([5, 6], [5, 6, EOS], [5, 6, EOS]),
    ],
)
def test_what_stands_of_a_draft(drafted, checked, said):
    assert tl.speculative.tokens_that_stand(drafted, checked, EOS) == said


@fast
def test_rounds_are_counted():
    rounds = [[Round((5, 6, 7), (5, 9)), Round((5, 6), (5, 6, 7))], [Round((), (3,)), Round((4, 5), (8,))]]
    found = Speculated(torch.zeros(2, 1), rounds)
    assert [one.accepted for sentence in rounds for one in sentence] == [1, 2, 0, 0]
    assert (found.calls, found.drafted, found.accepted, found.tested, found.tokens) == (4, 7, 3, 5, 7)
    assert found.acceptance == 3 / 5 and found.tokens_per_call == 7 / 4
    assert math.isnan(Speculated(torch.zeros(1, 1), [[Round((), (3,))]]).acceptance)


@fast
def test_the_formula_counts_tokens_of_independent_draws():
    assert tl.speculative.tokens_per_call(1, 4) == 5 and tl.speculative.tokens_per_call(0, 4) == 1
    for alpha, gamma in itertools.product((0.3, 0.8), (1, 2, 5)):
        wanted = sum(  # over how many of the γ are accepted before the first rejected one
            (k + 1) * alpha**k * (1 - alpha if k < gamma else 1) for k in range(gamma + 1)
        )
        assert tl.speculative.tokens_per_call(alpha, gamma) == pytest.approx(wanted, abs=1e-12)
        assert wanted == pytest.approx((1 - alpha ** (gamma + 1)) / (1 - alpha), abs=1e-12)


# Language models -------------------------------------------------------------------------------------------


def writer(seed: int, n_layers: int = 2) -> tl.LanguageModel:
    torch.manual_seed(seed)
    model = tl.LanguageModel(29, n_layers, 30, 3, 17, norm_first=True, max_len=23)
    with torch.no_grad():
        model.embedding.weight.mul_(3)
    return model


@fast
def test_a_language_model_goes_on_as_it_would_alone():
    target, prompts = writer(0).train(), torch.tensor([[1, 5, 11], [1, 7, 3]])
    ids = prompts
    for _ in range(13):
        ids = torch.cat([ids, target(ids)[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    end = int(ids[0, 9])
    first = ids[0, 3:].tolist().index(end)
    found = tl.speculative_decode(target, writer(1), prompts, max_new_tokens=13, gamma=3, eos_id=end)
    assert target.training
    assert found.ids[0, : 4 + first].tolist() == ids[0, : 4 + first].tolist()
    assert found.ids[0, 4 + first :].eq(0).all()
    itself = tl.speculative_decode(target, target, prompts[1:], max_new_tokens=13, eos_id=end)
    assert itself.acceptance == 1


@fast
def test_a_language_model_may_draft_for_a_translator():
    target, src = make_model(0), sources()
    found = tl.speculative_decode(target, writer(0), src, max_new_tokens=13)
    assert torch.equal(found.ids, tl.greedy_decode(target, src, max_new_tokens=13))


# What is refused -------------------------------------------------------------------------------------------


@fast
@pytest.mark.parametrize("gamma", [1, 3, 7])
def test_a_function_may_draft(gamma):
    target, src = lively(3), sources(11, 5, seed=4)
    wanted = tl.greedy_decode(target, src, max_new_tokens=13)
    asked = []

    def knows(ids):  # what is right for the first sentence, and much too long
        asked.append(ids)
        return wanted[0].tolist()[len(ids) :] * 3

    found = tl.speculative_decode(target, knows, src, max_new_tokens=13, gamma=gamma)
    assert torch.equal(found.ids, wanted)
    assert all(len(one.drafted) <= gamma for sentence in found.rounds for one in sentence)
    length = len(found.rounds[0][0].said)
    assert length == min(gamma + 1, int((wanted[0] != 0).sum()) - 1) and asked[0] == [1]
    alone = tl.speculative_decode(target, lambda ids: [], src, max_new_tokens=13)
    assert torch.equal(alone.ids, wanted) and alone.tokens_per_call == 1


def test_a_function_that_drafts_no_ids_is_refused():
    target, src = lively(3), sources(2, 5, seed=4)
    for drafted in ([99], [-1], (5, 7), [5.0], None):
        with pytest.raises(TypeError, match="draft must return a list of ids below"):
            tl.speculative_decode(target, lambda ids, drafted=drafted: drafted, src, max_new_tokens=5)
    with pytest.raises(TypeError, match="draft must be a module .*, or a function of the ids so far, got int$"):
        tl.speculative_decode(target, 5, src, max_new_tokens=5)


def test_what_does_not_fit_is_refused():
    target, src = make_model(0), sources()
    with pytest.raises(ValueError, match="draft must say the target's 29 words, got 31"):
        tl.speculative_decode(target, make_model(0, tgt_vocab_size=31), src, max_new_tokens=3)
    with pytest.raises(ValueError, match="max_new_tokens must fit the draft's max_len = 5, got 7 tokens to read"):
        tl.speculative_decode(target, make_model(0, max_len=5), src, max_new_tokens=7)
    with pytest.raises(ValueError, match="max_new_tokens must fit the target's max_len = 23, got 24"):
        tl.speculative_decode(writer(0), writer(1), torch.tensor([[1, 5]]), max_new_tokens=23)
    with pytest.raises(TypeError, match="draft must be a LanguageModel, as the target is, got Transformer"):
        tl.speculative_decode(writer(0), target, src, max_new_tokens=3)
    with pytest.raises(ValueError, match="eos_id must be that of the target's config, 2, got 5"):
        tl.speculative_decode(target, target, src, max_new_tokens=3, eos_id=5)
    with pytest.raises(ValueError, match="gamma must be at least 1, got 0"):
        tl.speculative_decode(target, target, src, max_new_tokens=3, gamma=0)
    with pytest.raises(ValueError, match="temperature must be positive, got 0"):
        tl.speculative_sample(target, target, src, max_new_tokens=3, temperature=0)
    with pytest.raises(ValueError, match=rf"src must hold ids in \[0, {SIZES['src_vocab_size']}\)"):
        tl.speculative_decode(target, target, src + 20, max_new_tokens=3)
    with pytest.raises(ValueError, match=r"q must have p's shape \(3,\), got \(4,\)"):
        tl.speculative.acceptance(torch.ones(3), torch.ones(4))


@fast
@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ([], ValueError, "accept must return 1 to 3 ids for 2 drafted, got"),
        ([3, 3, 3, 3], ValueError, "accept must return 1 to 3 ids for 2 drafted, got"),
        ([29], TypeError, "accept must return a list of ids below 29, got"),
        ([3.0], TypeError, "accept must return a list of ids below 29, got"),
        (None, TypeError, "accept must return a list of ids below 29, got None"),
    ],
)
def test_a_judge_that_returns_something_else_is_refused(said, error, message):
    target = make_model(0)
    with pytest.raises(error, match=message):
        tl.speculative_decode(target, target, sources(), max_new_tokens=5, gamma=2, accept=lambda *_: said)
