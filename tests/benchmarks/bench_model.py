"""Our model beside `torch.nn.Transformer`, interleaved in one process: `make bench` prints ratios and decides nothing.

Work: d_model 256, 8 heads, 3 + 3 layers, d_ff 1024, vocabulary 8,000; training on 32 × 32 tokens with padding and
Adam; greedy decoding of 8 sentences to 64 new tokens, ours with its cache, PyTorch's re-reading the target.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import transformer_lib as tl

VOCABULARY, WIDTH, ROUNDS = 8_000, 256, 7
CONFIG = tl.TransformerConfig(
    src_vocab_size=VOCABULARY, tgt_vocab_size=VOCABULARY, d_model=WIDTH, n_heads=8, n_layers=3, d_ff=1024, max_len=128
)


class TorchTransformer(nn.Module):
    """`nn.Transformer` with embeddings, the same sinusoids, and an output head, used in the usual way."""

    def __init__(self) -> None:
        super().__init__()
        self.config = CONFIG
        self.src_embedding, self.tgt_embedding = (nn.Embedding(VOCABULARY, WIDTH) for _ in range(2))
        self.register_buffer("positions", tl.sinusoidal_encoding(CONFIG.max_len, WIDTH))
        self.stack = nn.Transformer(WIDTH, 8, 3, 3, 1024, CONFIG.dropout, batch_first=True)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        x, y = (
            table(ids) * WIDTH**0.5 + self.positions[: ids.shape[1]]
            for table, ids in ((self.src_embedding, src), (self.tgt_embedding, tgt_in))
        )
        hidden = ~tl.causal_mask(tgt_in.shape[1])[0, 0]
        padded = src == 0
        states = self.stack(
            x, y, tgt_mask=hidden, src_key_padding_mask=padded, tgt_key_padding_mask=tgt_in == 0,
            memory_key_padding_mask=padded,
        )
        return self.head(states)

    @torch.no_grad()
    def greedy(self, src: Tensor, new_tokens: int) -> Tensor:
        ids = src.new_full((len(src), 1), 1)
        for _ in range(new_tokens):
            ids = torch.cat((ids, self(src, ids)[:, -1:].argmax(-1)), dim=1)
        return ids


def padded_batch(batch: int, length: int) -> Tensor:
    ids = torch.randint(4, VOCABULARY, (batch, length), generator=torch.Generator().manual_seed(0))
    for row in range(batch):
        ids[row, length - row * length // (2 * batch) :] = 0  # up to half of a row is padding
    return ids


def training_step(model: nn.Module) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    src, tgt = padded_batch(32, 32), padded_batch(32, 33)
    model.train()

    def step() -> None:
        tgt_in, tgt_out = tl.shift_right(tgt)
        loss = tl.translation_loss(model(src, tgt_in), tgt_out, pad_id=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def median_ratio(theirs: Callable[[], object], ours: Callable[[], object]) -> float:
    """Return how many times faster ours is: the median over interleaved rounds, so that a busy machine hits both."""
    ratios = []
    for _ in range(ROUNDS + 1):
        seconds = []
        for work in (theirs, ours):
            start = time.perf_counter()
            work()
            seconds.append(time.perf_counter() - start)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios[1:])  # the first round warms up


def test_training_step():
    ratio = median_ratio(training_step(TorchTransformer()), training_step(tl.Transformer(CONFIG)))
    print(f"\ntraining step: {ratio:.2f} × torch.nn.Transformer ({torch.get_num_threads()} threads)")


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")  # of PyTorch's own encoder
def test_greedy_decoding():
    theirs, ours, src = TorchTransformer().eval(), tl.Transformer(CONFIG).eval(), padded_batch(8, 32)
    ratio = median_ratio(
        lambda: theirs.greedy(src, 64), lambda: tl.greedy_decode(ours, src, max_new_tokens=64, stop_at_eos=False)
    )
    print(f"\ngreedy decoding, 8 × 64 tokens: {ratio:.2f} × torch.nn.Transformer ({torch.get_num_threads()} threads)")
