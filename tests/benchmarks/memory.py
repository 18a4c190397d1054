"""Peak memory of one self-attention layer, forward and backward: with the grid of weights, and without.

What is counted are the bytes that PyTorch's own allocator holds (`torch.profiler`, profile_memory): the same on every
machine, while the memory that a process holds also contains what the C library keeps for later. Each way has
a separate process, so that one that does not fit fails alone.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

import transformer_lib as tl

WAYS = ("grid", "fused")
D_MODEL, N_HEADS = 256, 8


def peak_bytes(length: int, way: str) -> int:
    """Return the most bytes held at once beyond the layer's weights, for one sentence of `length` tokens."""
    layer = tl.MultiHeadAttention(D_MODEL, N_HEADS)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        x = torch.randn(1, length, D_MODEL, requires_grad=True)
        output = layer(x, x, x, return_weights=way == "grid")
        (output[0] if way == "grid" else output).sum().backward()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    held, most = 0, 0
    for event in sorted((event for event in events if event.get("name") == "[memory]"), key=lambda e: e["ts"]):
        held += event["args"]["Bytes"]
        most = max(most, held)
    return most


def in_own_process(lengths: Sequence[int], way: str) -> list[int | None]:
    """Return `peak_bytes` of each length as a fresh process finds it; None from where its memory did not suffice."""
    command = [sys.executable, "-m", "benchmarks.memory", way, *map(str, lengths)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"memory, {way}: the process ended with status {done.returncode}: {done.stderr[-500:]}", file=sys.stderr)
    found = [int(line) for line in done.stdout.split()]
    return found + [None] * (len(lengths) - len(found))


def growth(lengths: Sequence[int], peaks: Sequence[int | None]) -> float | None:
    """Return the exponent p of peak ~ length^p between the last length and one up to four times shorter."""
    found = [(length, peak) for length, peak in zip(lengths, peaks, strict=True) if peak is not None]
    if len(found) < 2:
        return None
    (short, low), (long, high) = found[max(0, len(found) - 3)], found[-1]
    return round(math.log(high / low) / math.log(long / short), 2)


def measured(lengths: Sequence[int]) -> dict:
    """Return the lengths, and for each way the peaks in bytes and the exponent of their growth."""
    peaks = {way: in_own_process(lengths, way) for way in WAYS}
    ways = {way: {"peak_bytes": found, "exponent": growth(lengths, found)} for way, found in peaks.items()}
    return {"d_model": D_MODEL, "n_heads": N_HEADS, "lengths": list(lengths)} | ways


if __name__ == "__main__":
    for given in sys.argv[2:]:
        print(peak_bytes(int(given), sys.argv[1]), flush=True)
