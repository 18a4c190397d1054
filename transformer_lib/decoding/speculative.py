"""Speculative decoding: a small draft model proposes tokens, and the target checks several in one call.

What is said is the target's: greedily the same tokens, sampled the same distribution (Leviathan et al. 2023, Chen et
al. 2023). Only the number of calls of the target changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeGuard, TypeVar, cast

import torch
from torch import Tensor, nn

from .._validate import check_fraction, check_id_batch, check_id_range, check_int, check_positive, check_tensor
from ..data.tokenizers import EOS_ID, PAD_ID, pad_batch
from ..model.base import TranslationModel
from ..model.evaluating import evaluating
from ..model.one_stack import LanguageModel
from .sampling import exact_softmax, filter_logits
from .stepping import check_model, check_request, check_weights

Model = TranslationModel | LanguageModel
Accept = Callable[[list[int], list[int], int], list[int]]  # (drafted, checked, eos_id) -> what is said
Propose = Callable[[list[int]], list[int]]  # what was said so far, bos first -> the ids that may come next
Draw = Callable[[Tensor], int]  # probabilities [n] -> an index
Outcome = TypeVar("Outcome", bound=Hashable)


@dataclass(frozen=True)
class Round:
    """One call of the target for one sentence: the tokens that were drafted, and those that were said after it."""

    drafted: tuple[int, ...]
    said: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """How many drafted tokens were accepted."""
        agree = [one == other for one, other in zip(self.drafted, self.said, strict=False)]
        return (*agree, False).index(False)


@dataclass(frozen=True)
class Speculated:
    """What was said, ids [batch, 1 + n] as from `greedy_decode`, and every sentence's rounds."""

    ids: Tensor
    rounds: list[list[Round]]

    @property
    def calls(self) -> int:
        """Calls of the target, counted for each sentence: one a round."""
        return len(self._all)

    @property
    def drafted(self) -> int:
        """Tokens that the draft proposed."""
        return sum(len(one.drafted) for one in self._all)

    @property
    def accepted(self) -> int:
        """Drafted tokens that were accepted."""
        return sum(one.accepted for one in self._all)

    @property
    def tested(self) -> int:
        """Drafted tokens that were accepted or rejected; nobody asks about those behind a rejected one."""
        return sum(min(one.accepted + 1, len(one.drafted)) for one in self._all)

    @property
    def tokens(self) -> int:
        """Tokens said, eos among them."""
        return sum(len(one.said) for one in self._all)

    @property
    def acceptance(self) -> float:
        """The share of the tested tokens that were accepted: α. NaN where no token was tested."""
        return self.accepted / self.tested if self.tested else float("nan")

    @property
    def tokens_per_call(self) -> float:
        """Tokens said for each call of the target; decoding without a draft has 1."""
        return self.tokens / self.calls

    @property
    def _all(self) -> list[Round]:
        return [one for sentence in self.rounds for one in sentence]


def tokens_that_stand(drafted: list[int], checked: list[int], eos_id: int) -> list[int]:
    """Return what the target says greedily: the drafted tokens as long as they are its own, then one of its own.

    Args:
        drafted: k ≥ 0 ids. checked: k + 1 ids, the target's likeliest after the prefix, and after each drafted one.
        eos_id: nothing is said after it.
    """
    said = []
    for token, wanted in zip(drafted, checked, strict=False):
        said.append(wanted)
        if token != wanted or wanted == eos_id:
            return said
    return [*said, checked[len(drafted)]]


def acceptance(p: Tensor, q: Tensor) -> tuple[Tensor, Tensor]:
    """Return the probability of accepting each token, and what replaces a rejected one, both [..., vocab_size].

    A token drawn from the draft's q is accepted with min(1, p / q); else one is drawn from the residual, max(0, p − q)
    made to sum to one. Together they say each token with the target's probability p. Where p = q nothing is ever
    rejected, and the residual given is p.

    Args:
        p, q: the target's and the draft's probabilities, [..., vocab_size].
    """
    check_tensor("p", p, min_rank=1)
    if check_tensor("q", q).shape != p.shape:
        raise ValueError(f"q must have p's shape {tuple(p.shape)}, got {tuple(q.shape)}")
    accept = torch.where(q > 0, p / q.clamp_min(torch.finfo(q.dtype).tiny), torch.ones_like(p)).clamp(max=1)
    missing = (p - q).clamp(min=0)
    total = missing.sum(dim=-1, keepdim=True)  # also the probability that a token is rejected
    return accept, torch.where(total > 0, missing / total.clamp_min(torch.finfo(p.dtype).tiny), p)


def tokens_per_call(alpha: float, gamma: int) -> float:
    """Return (1 − α^(γ+1)) / (1 − α) = 1 + α + … + α^γ, the tokens expected of one call that checks γ drafted ones.

    Each is taken to be accepted with the same probability alpha, whatever became of the others, and the text to go on
    (Leviathan et al. 2023, eq. 1).
    """
    alpha = check_fraction("alpha", alpha, below_one=False)
    return float(sum(alpha**k for k in range(check_int("gamma", gamma, minimum=0) + 1)))


def speculative_decode(
    target: Model,
    draft: Model | Propose,
    src: Tensor,
    *,
    max_new_tokens: int,
    gamma: int = 4,
    accept: Accept = tokens_that_stand,
    eos_id: int | None = None,
) -> Speculated:
    """Return what `greedy_decode` says with `target`, in fewer calls of it.

    In each round the draft proposes up to gamma tokens for every sentence, one after another, and one call of the
    target gives its own next token after each of them. A batch goes together, every sentence at its own pace. What was
    read is kept in caches, from which rejected tokens are cut.

    Args:
        target, draft: models of the same words, used in evaluation mode. A `LanguageModel` may draft for a translator:
            it does not see the source. A function may draft, too: given the ids so far, it returns those that it
            expects next, as many as it likes, from which gamma are taken.
        src: source ids [batch, src_len]; if the target is a `LanguageModel`, the prompts [batch, prompt_len], without
            padding, with which the ids begin.
        max_new_tokens: at most this many tokens are said. gamma: drafted at most, each round; fewer after a drafted eos
            and near max_new_tokens.
        accept: what is said, given (drafted, checked, eos_id); see `tokens_that_stand`.
        eos_id: that of a translator is in its config; of a language model it is 2 unless given.

    Raises:
        TypeError, ValueError: src or max_new_tokens does not fit the models; they have different words; a weight of one
            is NaN or infinite; accept returns something else than 1 to len(drafted) + 1 ids, or a drafting function no
            ids of the target's words.
    """

    def judge(drafted: list[int], _proposals: list[Tensor], logits: Tensor, end: int) -> list[int]:
        return accept(drafted, logits.max(dim=-1).indices.tolist(), end)

    way = _Way(lambda logits: logits.max(dim=-1).indices.tolist(), lambda logits: logits, judge)
    return _speculate(target, draft, src, max_new_tokens, gamma, way, eos_id)


def speculative_sample(
    target: Model,
    draft: Model,
    src: Tensor,
    *,
    max_new_tokens: int,
    gamma: int = 4,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
    draw: Draw | None = None,
    eos_id: int | None = None,
) -> Speculated:
    """Return sentences distributed as those of `sample_decode` with `target`, in fewer calls of it.

    Each drafted token is accepted, or replaced and the rest of the draft dropped, as `acceptance` says.

    Args, Raises: as `speculative_decode`; temperature is that of both models; generator makes the draws repeatable.
        draw: returns an index, given probabilities [n], in place of the generator (see `every_outcome`).
    """
    choose = _drawing(generator) if draw is None else draw
    check_positive("temperature", temperature)

    def judge(drafted: list[int], proposals: list[Tensor], logits: Tensor, end: int) -> list[int]:
        return _stand_by_chance(drafted, proposals, shaped(logits), end, choose)

    def shaped(logits: Tensor) -> Tensor:
        return exact_softmax(filter_logits(logits, temperature=temperature))

    way = _Way(lambda probabilities: [choose(row) for row in probabilities], shaped, judge)
    return _speculate(target, draft, src, max_new_tokens, gamma, way, eos_id)


def every_outcome(run: Callable[[Draw], Outcome]) -> dict[Outcome, float]:
    """Return each outcome of run(draw) with its probability, by running it once for every way its draws can fall.

    Args:
        run: does something at random, all of it by draw(probabilities [n]), which returns an index. The draws that are
            possible multiply: some thousand are a second's work.
    """
    outcomes: dict[Outcome, float] = {}
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        draw = _Replayed(waiting.pop(), waiting)
        outcome = run(draw)
        outcomes[outcome] = outcomes.get(outcome, 0.0) + draw.probability
    return outcomes


class _Replayed:
    """Draws as its script says; from there on it takes what is first possible, and files the rest as new scripts."""

    def __init__(self, script: tuple[int, ...], waiting: list[tuple[int, ...]]) -> None:
        self.script, self.waiting = script, waiting
        self.made: tuple[int, ...] = ()
        self.probability = 1.0

    def __call__(self, probabilities: Tensor) -> int:
        chances = probabilities.tolist()
        if len(self.made) < len(self.script):
            chosen = self.script[len(self.made)]
        else:
            chosen, *others = (i for i, chance in enumerate(chances) if chance > 0)
            self.waiting += [(*self.made, other) for other in others]
        self.made = (*self.made, chosen)
        self.probability *= chances[chosen]
        return chosen


def _drawing(generator: torch.Generator | None) -> Draw:
    return lambda probabilities: int(torch.multinomial(probabilities, 1, generator=generator))


def _stand_by_chance(drafted: list[int], q: list[Tensor], p: Tensor, eos_id: int, draw: Draw) -> list[int]:
    """Return what is said of the drafted tokens, drawn from q (k of [vocab_size]), under p [k + 1, vocab_size]."""
    said = []
    for token, q_here, p_here in zip(drafted, q, p, strict=False):
        accept, residual = acceptance(p_here, q_here)
        accepted = draw(torch.stack((1 - accept[token], accept[token]))) == 1
        said.append(token if accepted else draw(residual))
        if not accepted or token == eos_id:
            return said
    return [*said, draw(p[len(drafted)])]


@dataclass(frozen=True)
class _Way:
    """How tokens are chosen.

    shape: logits -> what `propose` and `judge` go by, [..., vocab_size]. propose: [rows, vocab_size] -> ids. judge:
    (drafted, what they were chosen by, the target's logits [k + 1, vocab_size], eos_id) -> what is said.
    """

    propose: Callable[[Tensor], list[int]]
    shape: Callable[[Tensor], Tensor]
    judge: Callable[[list[int], list[Tensor], Tensor, int], list[int]]


def _speculate(
    target: Model, draft: Model | Propose, src: Tensor, max_new_tokens: int, gamma: int, way: _Way, eos_id: int | None
) -> Speculated:
    check_int("gamma", gamma)
    src, starts, end = _check(target, draft, src, max_new_tokens, eos_id)
    longest = len(starts[0]) + max_new_tokens
    rows, rounds = starts, _nothing_yet(starts)
    quiet = evaluating(draft) if _is_model(draft) else nullcontext()
    with torch.no_grad(), evaluating(target), quiet:
        small, large = _drafter(draft, src, gamma, longest, way, end, _words(target)), _reader(target, src)
        growing = list(range(len(rows)))
        while growing:
            prefixes = [rows[i] for i in growing]
            drafts, proposals = small.draft(prefixes)
            counts = [len(drafted) + 1 for drafted in drafts]
            checked = large.after([a + b for a, b in zip(prefixes, drafts, strict=True)], counts)
            for i, drafted, proposed, logits in zip(growing, drafts, proposals, checked, strict=True):
                said = _check_said(way.judge(list(drafted), proposed, logits, end), drafted, logits.shape[-1])
                said = said[: longest - len(rows[i])]
                rows[i] = rows[i] + said
                rounds[i].append(Round(tuple(drafted), tuple(said)))
            stay = [k for k, i in enumerate(growing) if end not in rounds[i][-1].said and len(rows[i]) < longest]
            growing = [growing[k] for k in stay]
            small.select(stay)
            large.select(stay)
    return Speculated(pad_batch(rows, _pad_id(target)).to(src.device), rounds)


def _nothing_yet(rows: list[list[int]]) -> list[list[Round]]:
    return [[] for _ in rows]


@dataclass
class _ModelDrafts:
    """A model that drafts up to gamma tokens after each prefix; the target says the last token of the `longest`."""

    reader: _Reader
    gamma: int
    longest: int
    way: _Way
    end: int

    def draft(self, prefixes: list[list[int]]) -> tuple[list[list[int]], list[list[Tensor]]]:
        """Return the tokens that are drafted after each prefix, and what each was chosen by."""
        drafts: list[list[int]] = [[] for _ in prefixes]
        proposals: list[list[Tensor]] = [[] for _ in prefixes]
        for _ in range(self.gamma):
            open_rows = [
                i
                for i, (prefix, drafted) in enumerate(zip(prefixes, drafts, strict=True))
                if len(prefix) + len(drafted) < self.longest - 1 and self.end not in drafted
            ]
            if not open_rows:
                break
            logits = self.reader.after([a + b for a, b in zip(prefixes, drafts, strict=True)], [1] * len(prefixes))
            shaped = self.way.shape(torch.cat([logits[i] for i in open_rows]))  # [open rows, vocab_size]
            for i, token, chosen_by in zip(open_rows, self.way.propose(shaped), shaped, strict=True):
                drafts[i].append(token)
                proposals[i].append(chosen_by)
        return drafts, proposals

    def select(self, kept: list[int]) -> None:
        """Keep the batch rows `kept`."""
        self.reader.select(kept)


@dataclass
class _FunctionDrafts:
    """A function that drafts, given the ids so far: nothing is kept between rounds."""

    propose: Propose
    gamma: int
    longest: int
    end: int
    vocab_size: int

    def draft(self, prefixes: list[list[int]]) -> tuple[list[list[int]], list[list[Tensor]]]:
        """Return the tokens that are drafted after each prefix; they were chosen by nothing that can be shown."""
        return [self._after(prefix) for prefix in prefixes], [[] for _ in prefixes]

    def _after(self, prefix: list[int]) -> list[int]:
        drafted = self.propose(list(prefix))
        known = range(self.vocab_size)
        if not isinstance(drafted, list) or not all(isinstance(one, int) and one in known for one in drafted):
            raise TypeError(f"draft must return a list of ids below {self.vocab_size}, got {drafted!r:.80}")
        drafted = drafted[: min(self.gamma, self.longest - 1 - len(prefix))]
        return drafted[: drafted.index(self.end) + 1] if self.end in drafted else drafted

    def select(self, kept: list[int]) -> None:
        """There is nothing to keep."""


def _drafter(
    draft: Model | Propose, src: Tensor, gamma: int, longest: int, way: _Way, end: int, vocab_size: int
) -> _ModelDrafts | _FunctionDrafts:
    if _is_model(draft):
        return _ModelDrafts(_reader(draft, src), gamma, longest, way, end)
    return _FunctionDrafts(cast(Propose, draft), gamma, longest, end, vocab_size)


def _is_model(draft: object) -> TypeGuard[Model]:
    return isinstance(draft, nn.Module)


class _Reader(Protocol):
    """Reads a batch of texts that grow, each at its own pace, and may be cut back."""

    def after(self, rows: list[list[int]], counts: list[int]) -> list[Tensor]:
        """Return each row's logits [count, vocab_size] after its last `count` tokens."""

    def select(self, kept: list[int]) -> None:
        """Keep the batch rows `kept`."""


def _reader(model: Model, src: Tensor) -> _Reader:
    return _TextReader(model, src.device) if isinstance(model, LanguageModel) else _TargetReader(model, src)


class _TargetReader:
    """A translator's decoder with its cache.

    The cache has one length for all rows: it is cut back to what every row has for good, and rows that are ahead read
    some of their tokens again. For one sentence this is only what was rejected.
    """

    def __init__(self, model: TranslationModel, src: Tensor) -> None:
        self.model, self.src, self.memory = model, src, model.encode(src)
        self.cache = model.new_cache()
        self.known = 0  # tokens that every row has read

    def after(self, rows: list[list[int]], counts: list[int]) -> list[Tensor]:
        asked = min(len(row) - count for row, count in zip(rows, counts, strict=True))
        start = min(self.known, asked) if self.cache is not None else 0
        if self.cache is not None:
            self.cache.crop(start)
        new = pad_batch([row[start:] for row in rows], self.model.config.pad_id).to(self.src.device)
        logits = self.model.decode(new, self.memory, self.src, cache=self.cache)
        self.known = min(len(row) for row in rows)
        return _last(logits, [len(row) - start for row in rows], counts)

    def select(self, kept: list[int]) -> None:
        rows = torch.tensor(kept, dtype=torch.long, device=self.src.device)
        self.src, self.memory = self.src[rows], self.memory[rows]
        if self.cache is not None:
            self.cache.select(rows)


class _TextReader:
    """A causal language model, which reads every text from its beginning."""

    def __init__(self, model: LanguageModel, device: torch.device) -> None:
        self.model, self.device = model, device

    def after(self, rows: list[list[int]], counts: list[int]) -> list[Tensor]:
        logits = self.model(pad_batch(rows, PAD_ID).to(self.device))
        return _last(logits, [len(row) for row in rows], counts)

    def select(self, kept: list[int]) -> None:
        """There is nothing to keep."""


def _last(logits: Tensor, lengths: Sequence[int], counts: Sequence[int]) -> list[Tensor]:
    """Return the logits [batch, longest, vocab_size] of each row's last `count` tokens, [count, vocab_size] each."""
    return [row[n - count : n] for row, n, count in zip(logits, lengths, counts, strict=True)]


def _check(
    target: Model, draft: Model | Propose, src: Tensor, max_new_tokens: int, eos_id: int | None
) -> tuple[Tensor, list[list[int]], int]:
    """Return src, what every row begins with, and the id that ends it."""
    models: dict[str, Model] = {"target": target} | ({"draft": draft} if _is_model(draft) else {})
    if not callable(draft):
        wanted = "a module with a TransformerConfig as its config, or a function of the ids so far"
        hint = "; take its .model" if isinstance(getattr(draft, "model", None), nn.Module) else ""
        raise TypeError(f"draft must be {wanted}, got {type(draft).__name__}{hint}")
    for name, model in models.items():
        (check_weights if isinstance(model, LanguageModel) else check_model)(name, model)
    if "draft" in models and _words(models["draft"]) != _words(target):
        raise ValueError(f"draft must say the target's {_words(target)} words, got {_words(models['draft'])}")
    if not isinstance(target, LanguageModel):
        src, end = check_request(target, src, max_new_tokens), target.config.eos_id
        if eos_id not in (None, end):
            raise ValueError(f"eos_id must be that of the target's config, {end}, got {eos_id}")
        starts = [[target.config.bos_id] for _ in src]
    else:
        if _is_model(draft) and not isinstance(draft, LanguageModel):
            raise TypeError(f"draft must be a LanguageModel, as the target is, got {type(draft).__name__}")
        src = check_id_range("src", check_id_batch("src", src), _words(target))
        check_int("max_new_tokens", max_new_tokens)
        starts, end = src.tolist(), EOS_ID if eos_id is None else check_int("eos_id", eos_id, minimum=0)
    for name, model in models.items():
        _check_room(name, model, len(starts[0]) - 1 + max_new_tokens)
    return src, starts, end


def _check_room(name: str, model: Model, read: int) -> None:
    longest = model.max_len if isinstance(model, LanguageModel) else model.config.max_len
    if read > longest:
        raise ValueError(f"max_new_tokens must fit the {name}'s max_len = {longest}, got {read} tokens to read")


def _check_said(said: object, drafted: list[int], vocab_size: int) -> list[int]:
    if not isinstance(said, list) or not all(isinstance(one, int) and 0 <= one < vocab_size for one in said):
        raise TypeError(f"accept must return a list of ids below {vocab_size}, got {said!r}")
    if not 1 <= len(said) <= len(drafted) + 1:
        raise ValueError(f"accept must return 1 to {len(drafted) + 1} ids for {len(drafted)} drafted, got {said}")
    return said


def _words(model: Model) -> int:
    return model.embedding.num_embeddings if isinstance(model, LanguageModel) else model.config.tgt_vocab_size


def _pad_id(model: Model) -> int:
    return PAD_ID if isinstance(model, LanguageModel) else model.config.pad_id
