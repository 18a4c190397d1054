"""The candidates. Each has a model, a loss, and greedy decoding; `train` is the loop that its users write."""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import transformer_lib as tl
from transformer_lib.baselines import TorchTranslator

from .work import BOS, EOS, PAD, Given, Work

FUSED = "fused Adam"


class Missing(Exception):
    """A candidate cannot take part; the message says why."""


class Peer:
    """A model of someone, and how it is used; a subclass sets `model` and says in the notes what differs."""

    note, training_note, decoding_note = "", "", ""

    def __init__(self, work: Work, model: nn.Module, head: nn.Linear, *, fused: bool | None = True) -> None:
        self.work, self.fused = work, fused
        self.model = model.to(work.device)
        with torch.no_grad():
            head.weight[[PAD, EOS]] = 0.0  # never the likeliest of random logits, so that no sentence ends early
        if work.compiled:
            self.model.compile()
        self.pair = work.pair()

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Return the mean cross-entropy of the real target tokens."""
        raise NotImplementedError

    def greedy(self, src: Tensor, new_tokens: int) -> Tensor:
        """Return the likeliest next tokens [batch, 1 + new_tokens], after bos."""
        raise NotImplementedError

    def beam(self, src: Tensor, new_tokens: int) -> Tensor:
        """Return the same by beam search."""
        raise NotImplementedError

    def train(self, steps: int) -> tuple[list[float], list[float]]:
        """Take some steps with a new optimizer; return the loss of each, and the clock after each."""
        optimizer = torch.optim.Adam(self.model.parameters(), fused=self.fused)
        self.model.train()
        losses, clock = [], []
        for _ in range(steps):
            with torch.autocast(self.work.device, torch.bfloat16, enabled=self.work.bfloat16):
                loss = self.loss(*self.pair)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())  # as one does, to see it fall; it also waits for a GPU
            clock.append(time.perf_counter())
        return losses, clock


class Ours(Peer):
    """This library, through `tl.train`; as for the others, the gradient's norm is not cut."""

    note = "the paper's"
    decoding_note = "a cache"

    def __init__(self, work: Work, *, precision: str = "float32", path: str = "fast") -> None:
        model = tl.Transformer(work.config())
        super().__init__(work, model, model.output_head)
        precision = "bfloat16" if work.bfloat16 else precision
        self.training_note = f"the step of tl.train: {FUSED}"
        if path == "fast":
            self.training_note += ", padding left out"
        if precision == "bfloat16":
            self.training_note += "; products in bfloat16"
        self.path = "readable" if work.compiled else path  # the fast path is not the model that was compiled
        self.options = {"precision": precision, "path": self.path}

    def train(self, steps: int) -> tuple[list[float], list[float]]:
        losses, clock = [], []

        def note_step(step: int, loss: float) -> None:
            losses.append(loss)
            clock.append(time.perf_counter())

        batches = self.batches(steps)
        same = {"label_smoothing": 0.0, "clip_norm": None}
        tl.train(self.model, batches, on_step=note_step, progress=False, **same, **self.options)
        return losses, clock

    def batches(self, steps: int) -> Given:
        """Return what is trained on."""
        return Given([self.pair] * steps)

    def greedy(self, src: Tensor, new_tokens: int) -> Tensor:
        return tl.greedy_decode(self.model, src, max_new_tokens=new_tokens, stop_at_eos=False, path=self.path)

    def beam(self, src: Tensor, new_tokens: int) -> Tensor:
        return tl.beam_search(self.model, src, beam_size=self.work.beam_size, max_new_tokens=new_tokens, path=self.path)


class Torch(Peer):
    """`torch.nn.Transformer` as one uses it: Adam as it comes (or fused), decoding that reads the target again.

    Its one argument `dropout` also acts on the attention weights and inside the feed-forward network, where the paper
    has none; with `as_paper` it does not. (On a CPU, dropout of the weights rules the fused attention out.)
    """

    note = "biases in attention, a norm after each stack"
    decoding_note = "no cache: the whole model again for each token"

    def __init__(self, work: Work, *, fused: bool | None = None, as_paper: bool = False) -> None:
        model = TorchTranslator(work.config())
        stack = model.transformer
        stack.encoder.use_nested_tensor = True  # as it comes: decoding leaves the source's padding out of the encoder
        if as_paper:
            for layer in (*stack.encoder.layers, *stack.decoder.layers):
                layer.dropout.p = layer.self_attn.dropout = 0.0
            for layer in stack.decoder.layers:
                layer.multihead_attn.dropout = 0.0
        dropout = "" if as_paper else "; dropout also of attention weights and of the hidden layer"
        self.training_note = (FUSED if fused else "Adam as it comes") + dropout
        super().__init__(work, model, model.output_head, fused=fused)

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        logits = self.model(src, tgt[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD)

    @torch.no_grad()
    def recomputing(self, src: Tensor, new_tokens: int) -> Tensor:
        """Return the likeliest next tokens as `nn.Transformer.forward` alone gives them."""
        ids = src.new_full((len(src), 1), BOS)
        for _ in range(new_tokens):
            ids = torch.cat((ids, self.model(src, ids)[:, -1:].argmax(-1)), dim=1)
        return ids


class TorchReadingOnce(Torch):
    """The same, decoding as PyTorch's tutorial does: encoder once, decoder again for each token, head for the last."""

    decoding_note = "no cache: encoder once, decoder again for each token, head for the last"

    @torch.no_grad()
    def greedy(self, src: Tensor, new_tokens: int) -> Tensor:
        memory, ids = self.model.encode(src), src.new_full((len(src), 1), BOS)
        for _ in range(new_tokens):
            last = self.model.states(ids, memory, src)[:, -1]
            ids = torch.cat((ids, self.model.output_head(last).argmax(-1, keepdim=True)), dim=1)
        return ids
