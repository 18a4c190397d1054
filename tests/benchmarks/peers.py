"""The candidates. Each has a model, a loss, and greedy decoding; `train` is the loop that its users write."""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import transformer_lib as tl

from .work import BOS, EOS, PAD, Repeat, Work

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
    training_note, decoding_note = f"the step of tl.train: {FUSED}, padding left out", "a cache"

    def __init__(self, work: Work, *, precision: str = "float32") -> None:
        model = tl.Transformer(work.config())
        super().__init__(work, model, model.output_head)
        precision = "bfloat16" if work.bfloat16 else precision
        if precision == "bfloat16":
            self.training_note += "; products in bfloat16"
        self.options = {} if precision == "float32" else {"precision": precision}
        if not set(self.options) <= set(tl.training.TrainingOptions.__dataclass_fields__):
            raise Missing("tl.train has no option precision")

    def train(self, steps: int) -> tuple[list[float], list[float]]:
        losses, clock = [], []

        def note_step(step: int, loss: float) -> None:
            losses.append(loss)
            clock.append(time.perf_counter())

        batches = Repeat(self.pair, steps)
        same = {"label_smoothing": 0.0, "clip_norm": None}
        tl.train(self.model, batches, on_step=note_step, progress=False, **same, **self.options)
        return losses, clock

    def greedy(self, src: Tensor, new_tokens: int) -> Tensor:
        return tl.greedy_decode(self.model, src, max_new_tokens=new_tokens, stop_at_eos=False)

    def beam(self, src: Tensor, new_tokens: int) -> Tensor:
        return tl.beam_search(self.model, src, beam_size=self.work.beam_size, max_new_tokens=new_tokens)


class TorchModel(nn.Module):
    """`nn.Transformer` between embeddings with the same sinusoids and an output head."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.src_embedding, self.tgt_embedding = (nn.Embedding(work.vocabulary, work.d_model) for _ in range(2))
        self.register_buffer("positions", tl.sinusoidal_encoding(work.max_len, work.d_model))
        self.dropout = nn.Dropout(work.dropout)
        sizes = (work.d_model, work.n_heads, work.n_layers, work.n_layers, work.d_ff, work.dropout)
        self.stack = nn.Transformer(*sizes, batch_first=True)
        self.head = nn.Linear(work.d_model, work.vocabulary, bias=False)

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        x = table(ids) * table.embedding_dim**0.5 + self.positions[: ids.shape[1]]
        return self.dropout(x)

    def encode(self, src: Tensor) -> Tensor:
        return self.stack.encoder(self.embed(self.src_embedding, src), src_key_padding_mask=src == PAD)

    def states(self, tgt_in: Tensor, memory: Tensor, src: Tensor) -> Tensor:
        hidden = ~tl.causal_mask(tgt_in.shape[1], device=src.device)[0, 0]
        return self.stack.decoder(
            self.embed(self.tgt_embedding, tgt_in), memory, tgt_mask=hidden, tgt_key_padding_mask=tgt_in == PAD,
            memory_key_padding_mask=src == PAD, tgt_is_causal=True,
        )

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        return self.head(self.states(tgt_in, self.encode(src), src))


class Torch(Peer):
    """`torch.nn.Transformer` as one uses it: Adam as it comes (or fused), decoding that reads the target again.

    Its one argument `dropout` also acts on the attention weights and inside the feed-forward network, where the paper
    has none; with `as_paper` it does not. (On a CPU, dropout of the weights rules the fused attention out.)
    """

    note = "biases in attention, a norm after each stack"
    decoding_note = "no cache: the whole model again for each token"

    def __init__(self, work: Work, *, fused: bool | None = None, as_paper: bool = False) -> None:
        model = TorchModel(work)
        if as_paper:
            for layer in (*model.stack.encoder.layers, *model.stack.decoder.layers):
                layer.dropout.p = layer.self_attn.dropout = 0.0
            for layer in model.stack.decoder.layers:
                layer.multihead_attn.dropout = 0.0
        dropout = "" if as_paper else "; dropout also of attention weights and of the hidden layer"
        self.training_note = (FUSED if fused else "Adam as it comes") + dropout
        super().__init__(work, model, model.head, fused=fused)

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
            ids = torch.cat((ids, self.model.head(last).argmax(-1, keepdim=True)), dim=1)
        return ids
