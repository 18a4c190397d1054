"""Beam search: keep the few likeliest prefixes instead of one (Vaswani et al. 2017, §6.1; Wu et al. 2016, §7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .._paths import PathName
from .._validate import check_int, check_not_negative
from ..fast.stepper import FastStepper
from ..model.base import TranslationModel
from ..model.evaluating import evaluating
from .stepping import Stepper, check_model, check_request, make_stepper


@dataclass(frozen=True)
class Hypothesis:
    """A translation with its score: the summed log-probability divided by the length penalty."""

    ids: tuple[int, ...]  # bos first, eos last if it came
    log_probability: float
    score: float


@dataclass(frozen=True)
class BeamStep:
    """What `on_step` sees of one sentence: the beams kept and the hypotheses that ended."""

    sentence: int
    kept: tuple[tuple[tuple[int, ...], float], ...]  # (ids, summed log-probability), best first
    ended: tuple[Hypothesis, ...]


def length_normaliser(length: int, alpha: float) -> float:
    """Return ((5 + length) / 6)^alpha, the penalty of Wu et al. (2016); `length` counts tokens after bos."""
    return ((5 + length) / 6) ** alpha


_Continuation = tuple[float, int, int]  # summed log-probability, beam of the sentence, next token


@dataclass
class _Sentence:
    """The beams of one source sentence."""

    index: int
    alpha: float
    beam_size: int
    longest: int  # tokens after bos
    beams: list[tuple[tuple[int, ...], float]]  # ids and summed log-probability, best first
    finished: list[Hypothesis] = field(default_factory=list)

    def extend(self, best: list[_Continuation], eos_id: int) -> list[int]:
        """Keep the best continuations, and return which old beam each one extends.

        Args:
            best: the 2 · beam_size best, best first: at most beam_size end in eos.
        """
        kept: list[tuple[tuple[int, ...], float]] = []
        parents: list[int] = []
        for rank, (score, parent, token) in enumerate(best):
            ids = (*self.beams[parent][0], token)
            if token == eos_id:
                if rank < self.beam_size:
                    self.finish(ids, score)
            elif len(kept) < self.beam_size:
                kept.append((ids, score))
                parents.append(parent)
        self.beams = kept
        return parents

    def finish(self, ids: tuple[int, ...], log_probability: float) -> None:
        """File a complete hypothesis."""
        score = log_probability / length_normaliser(len(ids) - 1, self.alpha)
        self.finished.append(Hypothesis(ids, log_probability, score))

    @property
    def done(self) -> bool:
        """Whether nothing is left to extend, or beam_size hypotheses have ended and no beam can still win.

        Each further token adds a log-probability ≤ 0, so whatever a beam grows into has at most the beam's own sum s.
        It is divided by the divisor of its length, of which that of the longest target is the largest, as α ≥ 0; and
        s ≤ 0 divided by more is more. So no beam can reach more than the best one's s divided by the largest divisor.
        Where that is no more than the best score so far, going on to the longest target would not change the result.
        Rounding cannot undo this, because rounded sums and quotients keep the order of the exact ones.

        Stopping at beam_size ended ones alone would let improbable early ends cut off the best sentence. So would
        stopping where all beam_size best continuations end in one step: those behind them are kept, and may win.
        """
        if not self.beams:
            return True
        if len(self.finished) < self.beam_size:
            return False
        if self.beam_size == 1:
            return True  # greedy decoding ends with its one sentence
        attainable = self.beams[0][1] / length_normaliser(self.longest, self.alpha)
        return attainable <= max(hypothesis.score for hypothesis in self.finished)


@torch.no_grad()
def beam_hypotheses(
    model: TranslationModel,
    src: Tensor,
    *,
    beam_size: int,
    max_new_tokens: int,
    length_penalty: float = 0.6,
    use_cache: bool = True,
    path: PathName = "readable",
    on_step: Callable[[BeamStep], None] | None = None,
) -> list[list[Hypothesis]]:
    """Return each sentence's hypotheses, best first. Arguments as for `beam_search`; `on_step` sees every step.

    The first is the best of all that this beam would find in max_new_tokens steps. The others are those that had ended
    by the time when this was certain, at least beam_size of them together, unless max_new_tokens were over.
    """
    check_model("model", model)
    src = check_request(model, src, max_new_tokens)
    check_int("beam_size", beam_size)
    _check_penalty(length_penalty, max_new_tokens)
    eos_id, start = model.config.eos_id, (model.config.bos_id,)
    sentences = [_Sentence(i, length_penalty, beam_size, max_new_tokens, [(start, 0.0)]) for i in range(len(src))]
    with evaluating(model):
        stepper = make_stepper(model, src, max_new_tokens, use_cache=use_cache, path=path)
        active = sentences
        for _ in range(max_new_tokens):
            active = _step(stepper, active, eos_id, on_step)
            if not active:
                break
    for sentence in active:  # ran out of tokens: the unfinished beams compete as they are
        for ids, log_probability in sentence.beams:
            sentence.finish(ids, log_probability)
    return [sorted(s.finished, key=lambda h: -h.score) for s in sentences]


def _check_penalty(alpha: float, longest: int) -> None:
    check_not_negative("length_penalty", alpha)
    try:
        finite = math.isfinite(length_normaliser(longest, alpha))
    except OverflowError:
        finite = False
    if not finite:
        raise ValueError(f"length_penalty must give {longest} tokens a finite divisor, got {alpha}")


def _step(
    stepper: Stepper | FastStepper, active: list[_Sentence], eos_id: int, on_step: Callable[[BeamStep], None] | None
) -> list[_Sentence]:
    """Extend every active sentence by one token and return those that go on; the stepper's rows follow the beams."""
    tgt = stepper.src.new_tensor([ids for s in active for ids, _ in s.beams])  # [beams of all sentences, tgt_len]
    logits = stepper.next_logits(tgt)
    rows, first = [], 0
    for sentence, best in zip(active, _best_continuations(logits, active), strict=True):
        width, ended = len(sentence.beams), len(sentence.finished)
        parents = sentence.extend(best, eos_id)
        if not sentence.done:
            rows += [first + parent for parent in parents]
        first += width
        if on_step is not None:
            on_step(BeamStep(sentence.index, tuple(sentence.beams), tuple(sentence.finished[ended:])))
    stepper.select(torch.tensor(rows, dtype=torch.long, device=tgt.device))
    return [s for s in active if not s.done]


def _best_continuations(logits: Tensor, active: list[_Sentence]) -> list[list[_Continuation]]:
    """Return the 2 · beam_size best continuations of each sentence, best first.

    They are among the best of each beam.

    Args:
        logits: of the next token after each beam, [beams of all sentences, vocab_size].
    """
    wanted = 2 * active[0].beam_size
    exact = torch.promote_types(logits.dtype, torch.float32)  # sums in 16 bits would tell few beams apart
    so_far = logits.new_tensor([score for s in active for _, score in s.beams], dtype=exact)
    candidates = logits.log_softmax(dim=-1, dtype=exact).topk(min(wanted, logits.shape[1]))
    totals = candidates.values + so_far[:, None]
    beams = iter(zip(totals.tolist(), candidates.indices.tolist(), strict=True))  # scores and tokens of each
    best = []
    for sentence in active:
        own = enumerate(next(beams) for _ in sentence.beams)
        every = [(score, beam, token) for beam, pairs in own for score, token in zip(*pairs, strict=True)]
        best.append(sorted(every, key=lambda continuation: -continuation[0])[:wanted])
    return best


def beam_search(
    model: TranslationModel,
    src: Tensor,
    *,
    beam_size: int,
    max_new_tokens: int,
    length_penalty: float = 0.6,
    use_cache: bool = True,
    path: PathName = "readable",
) -> Tensor:
    """Translate with beam search and return each sentence's best hypothesis, padded: ids [batch, longest].

    Args:
        model: used in evaluation mode; its mode is restored. src: source ids [batch, src_len].
        beam_size: prefixes kept per sentence; 1 is greedy decoding.
        max_new_tokens: at most this many tokens after bos.
        length_penalty: α of ((5 + length)/6)^α, which divides the summed log-probability; 0 prefers short sentences.
        use_cache, path: as in `greedy_decode`.

    Raises:
        TypeError, ValueError: as for `greedy_decode`; beam_size or length_penalty is out of range.
    """
    hypotheses = beam_hypotheses(
        model,
        src,
        beam_size=beam_size,
        max_new_tokens=max_new_tokens,
        length_penalty=length_penalty,
        use_cache=use_cache,
        path=path,
    )
    best = [torch.tensor(ranked[0].ids, device=src.device) for ranked in hypotheses]
    return torch.nn.utils.rnn.pad_sequence(best, batch_first=True, padding_value=model.config.pad_id)
