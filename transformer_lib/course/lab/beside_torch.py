"""The same model twice, by hand and in PyTorch: the same numbers, the same batches, two losses (notebook 18)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from ... import by_hand
from ...by_hand import Ids, Parameters, Sizes
from ...data.batches import Batches
from ...data.corpora import Pair, load_corpus
from ...data.tokenizers import WordTokenizer
from ...model.config import TransformerConfig
from ...model.transformer import Transformer
from ...training.loss import shift_right, translation_loss
from . import gradient_slips as task
from . import tape


@contextmanager
def double_precision() -> Iterator[None]:
    """Let PyTorch make its tensors in float64, those of a model's positions too."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def new_model(sizes: Sizes) -> Transformer:
    """Return a fresh model of PyTorch with these sizes, in its default dtype."""
    shared = {name: getattr(sizes, name) for name in Sizes.__dataclass_fields__}
    return Transformer(TransformerConfig(**shared, dropout=0.0, max_len=64))


def twins(sizes: Sizes = task.SIZES, seed: int = 0) -> tuple[Transformer, Parameters]:
    """Return a model of PyTorch in double precision, and a copy of its parameters for `by_hand`."""
    torch.manual_seed(seed)
    with double_precision():
        model = new_model(sizes)
    return model, {name: values.detach().numpy().copy() for name, values in model.named_parameters()}


def gradients(model: Transformer, src: Ids, tgt: Ids) -> Parameters:
    """Return what autograd finds for the parameters, by name; src [batch, src_len], tgt [batch, 1 + tgt_len]."""
    tgt_in, tgt_out = shift_right(torch.from_numpy(tgt))
    model.zero_grad()
    translation_loss(model(torch.from_numpy(src), tgt_in), tgt_out, pad_id=model.config.pad_id).backward()
    return {name: values.grad.numpy().copy() for name, values in model.named_parameters() if values.grad is not None}


def train_in_torch(
    model: Transformer, batches: Iterable[tuple[Ids, Ids]], rate: Callable[[int], float], label_smoothing: float = 0.0
) -> list[float]:
    """Do with autograd and PyTorch's Adam what `by_hand.train` does; return the losses."""
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9), []
    for step, batch in enumerate(batches, start=1):
        src, tgt = (torch.from_numpy(np.ascontiguousarray(ids)) for ids in batch)
        tgt_in, tgt_out = shift_right(tgt)
        optimizer.param_groups[0]["lr"] = rate(step)
        optimizer.zero_grad()
        logits = model(src, tgt_in)
        loss = translation_loss(logits, tgt_out, pad_id=model.config.pad_id, label_smoothing=label_smoothing)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def race(steps: int = 150, seed: int = 0, sizes: Sizes = task.SIZES) -> tuple[list[float], list[float]]:
    """Return the losses of both, by hand and in PyTorch, while they learn to reverse the same letters.

    Both use Adam with β₁ = .9 and β₂ = .98, gradients clipped to norm 1, and the same warm-up and cosine.
    """
    model, parameters = twins(sizes, seed)
    rate = partial(by_hand.cosine_rate, total_steps=steps, peak=task.PEAK, warmup_steps=min(task.WARMUP, steps))
    ours = by_hand.train(parameters, sizes, task.batches(steps, seed), rate)
    return ours, train_in_torch(model, task.batches(steps, seed), rate)


@dataclass(frozen=True)
class Translation:
    """The context corpus for a small model: its sizes, the batches of one pass, and held-out pairs to translate."""

    sizes: Sizes
    batches: list[tuple[Ids, Ids]]
    heldout: list[Pair]
    tokenizers: tuple[WordTokenizer, WordTokenizer]

    def said(self, parameters: Parameters) -> list[str]:
        """Return the model's translations of the held-out sentences, decoded greedily."""
        ids = self.tokenizers[0].encode_batch([pair.src for pair in self.heldout]).numpy()
        rows = by_hand.greedy(parameters, self.sizes, ids, max_new_tokens=24)
        return [self.tokenizers[1].decode(row.tolist()) for row in rows]


def translation(d_model: int = 64, batch_size: int = 32, every: int = 4) -> Translation:
    """Return the context corpus for a model with one layer on each side, four heads and d_ff = 2 d_model.

    Of the held-out pairs it has one in `every`.
    """
    corpus = load_corpus("context")
    sides = zip(*((pair.src, pair.tgt) for pair in corpus["train"]), strict=True)
    english, german = (WordTokenizer.from_texts(side) for side in sides)
    sizes = Sizes(
        src_vocab_size=len(english),
        tgt_vocab_size=len(german),
        d_model=d_model,
        n_heads=4,
        n_layers=1,
        d_ff=2 * d_model,
    )
    src = [english.encode(pair.src) for pair in corpus["train"]]
    tgt = [german.encode(pair.tgt, bos=True, eos=True) for pair in corpus["train"]]
    batches = [(src.numpy(), tgt.numpy()) for src, tgt in Batches(src, tgt, batch_size).epoch(0)]
    return Translation(sizes, batches, corpus["heldout"][::every], (english, german))


def clock(sizes: Sizes, batches: Sequence[tuple[Ids, Ids]], find: tape.Gradients | None = None) -> dict[str, float]:
    """Return the seconds of one training step by hand and in PyTorch, both in single precision: means over the batches.

    With `find`, a function like `tape.gradients`, also those of a step on the tape. The first step of each is not
    counted, and neither is the time in which other programs had the processor.
    """
    parameters = by_hand.new_parameters(sizes, dtype=np.float32)
    model = new_model(sizes)
    runs = {
        "by hand": lambda some: by_hand.train(parameters, sizes, some, lambda step: 0.001, label_smoothing=0.1),
        "PyTorch": lambda some: train_in_torch(model, some, lambda step: 0.001, label_smoothing=0.1),
    }
    if find is not None:
        on_tape = by_hand.new_parameters(sizes, dtype=np.float32)
        runs["the tape"] = lambda some: tape.train(find, on_tape, sizes, some, lambda step: 0.001, label_smoothing=0.1)
    seconds = {}
    for name, run in runs.items():
        run(batches[:1])
        started = time.thread_time()
        run(batches[1:])
        seconds[name] = (time.thread_time() - started) / (len(batches) - 1)
    return seconds
