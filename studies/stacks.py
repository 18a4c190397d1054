"""Can one translate without an encoder? One stack that reads source and target, beside two (notebook 19)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from transformer_lib.baselines import count_parameters
from transformer_lib.course.lab import translators
from transformer_lib.course.lab.stacks import ARMS, PASSES
from transformer_lib.data.batches import Batches
from transformer_lib.data.corpora import Corpus, Pair, load_corpus
from transformer_lib.data.metrics import exact_matches, sense_choices, sense_matches
from transformer_lib.data.tokenizers import WordTokenizer
from transformer_lib.decoding.translator import Translator
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.model.base import TranslationModel
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.decoder_only import DecoderOnlyTranslator, padding_first
from transformer_lib.training.evaluation import loss_per_token
from transformer_lib.training.gradients import BatchGradient, count_targets
from transformer_lib.training.loop import train
from transformer_lib.training.options import TrainingOptions
from transformer_lib.training.schedules import make_schedule

from .engine import Step, Steps, Study
from .translators import SHORT_PAIRS, chance

RECIPE = {**translators.TRAINING, "progress": False}
PRE_NORM_ROTARY = {"norm_first": True, "position": "rotary"}
COUNTED = (12, 14)  # words of the pair whose multiply-adds are counted: source, and target with bos


@dataclass(frozen=True)
class Setup:
    """One run: a name of ARMS, passes over the corpus, the seed of weights and order."""

    arm: str
    passes: int
    seed: int


def new_translator(pairs: Sequence[Pair], arm: str, seed: int) -> Translator:
    """Return the untrained translator of an arm, with the vocabularies of `pairs`."""
    src, tgt = (WordTokenizer.from_texts(texts) for texts in ((p.src for p in pairs), (p.tgt for p in pairs)))
    sizes = {**translators.SIZES, **PRE_NORM_ROTARY, "n_layers": ARMS[arm].n_layers}
    torch.manual_seed(seed)
    model = ARMS[arm].new(TransformerConfig(src_vocab_size=len(src), tgt_vocab_size=len(tgt), **sizes))
    return Translator(model, src, tgt)


class LossOfBoth(nn.Module):
    """The loss of the target's tokens and of the source's words from the second on, each with the same weight.

    A source word is predicted by the table that looks the source's words up, so the model has no new parameters.
    What is returned is the mean over all these, times the number of the target's tokens: `BatchGradient` divides
    by that.
    """

    def __init__(self, model: DecoderOnlyTranslator, label_smoothing: float, source_weight: float = 1.0) -> None:
        super().__init__()
        self.model, self.label_smoothing, self.source_weight = model, label_smoothing, source_weight

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the loss of src [batch, src_len] and tgt [batch, tgt_len], in nats."""
        model, pad_id, width = self.model, self.model.config.pad_id, src.shape[1]
        states = model.states(tgt[:, :-1], model.encode(src), src)
        source = padding_first(src, pad_id)
        said = source[:, 1:].masked_fill(source[:, :-1] == pad_id, pad_id)  # nothing predicts a first word
        parts = (
            (model.output_head(states[:, width:]), tgt[:, 1:], 1.0),
            (F.linear(states[:, : width - 1], model.src_embedding.weight), said, self.source_weight),
        )
        loss, counted = torch.zeros(()), 0.0
        for logits, labels, weight in parts:
            loss = loss + weight * self._summed(logits, labels)
            counted += weight * int((labels != pad_id).sum())
        return loss * count_targets(tgt, pad_id) / counted

    def _summed(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            ignore_index=self.model.config.pad_id,
            label_smoothing=self.label_smoothing,
            reduction="sum",
        )


def train_on_both(
    model: DecoderOnlyTranslator, batches: Batches, source_weight: float = 1.0, **options: Any
) -> list[float]:
    """Train with `LossOfBoth` as `tl.train` does with its own, and return the losses; without a source's they agree."""
    given = TrainingOptions(**options)
    passes = given.epochs or 1
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    shape = {"learning_rate": given.learning_rate, "warmup_steps": given.warmup_steps, "d_model": model.config.d_model}
    rate = make_schedule(given.schedule, total_steps=passes * len(batches), **shape)
    gradient = BatchGradient(LossOfBoth(model, given.label_smoothing, source_weight), pad_id=model.config.pad_id)
    model.train()
    losses: list[float] = []
    for number in range(passes):
        for src, tgt in batches.epoch(number):
            for group in optimizer.param_groups:
                group["lr"] = rate(len(losses) + 1)
            optimizer.zero_grad(set_to_none=True)
            losses.append(gradient.add(src, tgt))
            nn.utils.clip_grad_norm_(model.parameters(), given.clip_norm or math.inf)
            optimizer.step()
    return losses


def train_arm(translator: Translator, pairs: Sequence[Pair], setup: Setup, **changes: Any) -> list[float]:
    """Train as the arm of the set-up is trained, and return the loss of each step; `changes` are options of `train`."""
    model, batches = translator.model, translator.batches(pairs, translators.BATCH_SIZE, seed=setup.seed)
    options = {**RECIPE, "epochs": setup.passes, **changes}
    if ARMS[setup.arm].source_loss:
        assert isinstance(model, DecoderOnlyTranslator)
        return train_on_both(model, batches, **options)
    return train(model, batches, path=fastest_path(model), **options).loss


def scores_of(translate: Callable[[list[str]], list[str]], pairs: Sequence[Pair]) -> dict[str, float]:
    """Return shares: exactly right; right but for the ambiguous word; its sense right; right where one is named."""
    said = translate([pair.src for pair in pairs])
    blind = [text in (pair.tgt, *pair.contrast) for text, pair in zip(said, pairs, strict=True)]
    right_of = {
        "exact match": exact_matches(said, pairs),
        "exact but for the sense": blind,
        "sense accuracy": sense_matches(said, pairs),
        "sense choice": sense_choices(said, pairs),
    }
    return {name: round(sum(right) / len(right), 4) for name, right in right_of.items() if right}


def multiply_adds(model: TranslationModel) -> int:
    """Return how many multiply-adds the matrix products of one pair of COUNTED words take, counted by PyTorch."""
    src, tgt_in = (torch.full((1, length), 5) for length in COUNTED)
    # The plain products for attention: PyTorch's counter overlooks its fused kernel for processors.
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        model(src, tgt_in)
    return counter.get_total_flops() // 2


def run_setup(corpus: Corpus, setup: Setup) -> dict[str, Any]:
    """Train and measure one set-up."""
    translator = new_translator(corpus["train"], setup.arm, setup.seed)
    losses = train_arm(translator, corpus["train"], setup)
    model, path = translator.model, fastest_path(translator.model)
    validation = loss_per_token(model, translator.batches(corpus["validation"], 64), path=path)

    def translate(texts: list[str]) -> list[str]:
        return translator.translate(texts, path=path)

    scores = {split: scores_of(translate, corpus[split]) for split in translators.TEST_SPLITS}
    return {
        "parameters": count_parameters(model),
        "multiply_adds": multiply_adds(model),
        "loss": round(sum(losses[-20:]) / 20, 4),
        "validation loss": round(validation, 4),
        "scores": scores,
    }


def short_run(corpus: Corpus, arm: str) -> list[float]:
    """Return the losses of the first SHORT_PAIRS pairs' single epoch, seed 0: quick to repeat."""
    pairs = corpus["train"][:SHORT_PAIRS]
    losses = train_arm(new_translator(pairs, arm, 0), pairs, Setup(arm, 1, 0), warmup_steps=10)
    return [round(loss, 4) for loss in losses]


def steps(seeds: Sequence[int]) -> Steps:
    """Train every arm with both budgets."""
    corpus = load_corpus("context")
    for split in translators.TEST_SPLITS:
        yield Step(("chance", split), lambda pairs: round(chance(pairs), 4), corpus[split])
    for arm in ARMS:
        yield Step(("short", arm), short_run, corpus, arm)
    for seed, passes, arm in itertools.product(seeds, PASSES, ARMS):  # all arms and both budgets with each seed
        setup = Setup(arm, passes, seed)
        yield Step(("runs", setup), run_setup, corpus, setup)


STUDY = Study("stacks", __doc__, steps, by_seed=True, indent=1)


if __name__ == "__main__":
    STUDY.command()
