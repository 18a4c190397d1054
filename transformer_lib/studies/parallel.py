"""Data-parallel training: every process has the whole model and takes its part of each batch.

`launch()` starts two processes on this machine. torchrun starts the same program on one machine or many:

    torchrun --standalone --nproc-per-node 2 -m transformer_lib.studies.parallel result

Process 0 then writes result_0.pt, process 1 result_1.pt, each with the weights it ends with. The processes talk
through gloo, which needs no GPU.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

from ..config import TransformerConfig
from ..training import shift_right
from ..transformer import Transformer

SHARES = ("by tokens", "by process")
LENGTHS = (11, 7, 5, 3, 2, 2)  # of the sentences of a batch, bos included; longest first, so the halves are uneven
STORE = "TRANSFORMER_COURSE_STORE"


def new_model() -> Transformer:
    """Return the small model that every process starts with."""
    torch.manual_seed(16)
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 16, "dropout": 0.0, "max_len": 16}
    return Transformer(TransformerConfig(src_vocab_size=13, tgt_vocab_size=13, **sizes)).double()


def batch(step: int) -> tuple[Tensor, Tensor]:
    """Return random source and target ids [6, 11] of one step: sentences of LENGTHS tokens, then padding (0)."""
    generator = torch.Generator().manual_seed(step)
    ids = torch.randint(3, 13, (2, len(LENGTHS), max(LENGTHS)), generator=generator)
    real = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    src, tgt = ids * real
    tgt[:, 0] = 1  # bos
    return src, tgt


def summed_loss(model: Transformer, src: Tensor, tgt: Tensor) -> tuple[Tensor, int]:
    """Return the cross-entropy summed over the real target tokens, and how many these are."""
    (tgt_in, tgt_out), pad_id = shift_right(tgt), model.config.pad_id
    logits = model(src, tgt_in)
    loss = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=pad_id, reduction="sum")
    return loss, int((tgt_out != pad_id).sum())


def step_gradients(model: Transformer, src: Tensor, tgt: Tensor, share: str = "by tokens") -> None:
    """Leave in every parameter's `.grad` the gradient that all processes agree on.

    Args:
        src, tgt: this process's part of the batch.
        share: "by tokens" for the mean over the tokens of all parts; "by process" for the mean of the parts' means.
    """
    model.zero_grad()
    loss, tokens = summed_loss(model, src, tgt)
    together = dist.is_initialized()
    count = torch.tensor(float(tokens))
    if share == "by process":
        count *= dist.get_world_size() if together else 1
    elif together:
        dist.all_reduce(count)  # the sum over the processes, known to each
    (loss / count.double()).backward()
    if together:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)


def train(part: int = 0, parts: int = 1, *, share: str = "by tokens", steps: int = 3) -> Tensor:
    """Return the weights after some steps of SGD on part `part` of `parts` of each batch, as one vector."""
    if parts > len(LENGTHS):
        raise ValueError(f"parts must be at most {len(LENGTHS)}, one sentence for each process, got {parts}")
    model = new_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        src, tgt = (ids.tensor_split(parts)[part] for ids in batch(step))
        step_gradients(model, src, tgt, share)
        optimizer.step()
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def launch(n_processes: int = 2) -> list[dict[str, Tensor]]:
    """Start the processes here, wait, and return what each ends with: {share: weights as one vector}.

    Raises:
        RuntimeError: a process failed; the message is its exception.
    """
    root = Path(__file__).resolve().parents[2]
    with tempfile.TemporaryDirectory() as folder:
        shared = {**_loopback(), **os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": str(n_processes),
                  STORE: Path(folder, "store").as_uri()}
        command = [sys.executable, "-m", "transformer_lib.studies.parallel", str(Path(folder, "result"))]
        running = [
            subprocess.Popen(command, cwd=root, env={**shared, "RANK": str(rank)}, text=True,
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for rank in range(n_processes)
        ]
        try:
            errors = [process.communicate(timeout=120)[1] for process in running]
            if any(process.returncode for process in running):
                raise RuntimeError(f"a process failed: {_cause(errors)}")
        finally:
            for process in running:
                process.kill()
                process.wait()
        return [torch.load(Path(folder, f"result_{rank}.pt")) for rank in range(n_processes)]


def _loopback() -> dict[str, str]:
    """Return what tells gloo to stay on this machine's own interface, whatever its host name resolves to."""
    names = {name for _, name in socket.if_nameindex()} & {"lo", "lo0"}
    return {"GLOO_SOCKET_IFNAME": names.pop()} if names else {}


def _cause(errors: list[str]) -> str:
    """Return the exception of the process that failed first: the others only say that they lost it."""
    lines = [line for error in errors for line in error.splitlines() if line.strip()]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Interrupt)\b", line)]
    return next((line for line in raised if "Connection" not in line), (raised or lines[-1:] or ["no message"])[0])


def main() -> None:
    """Run one process of the group: by torchrun, or by `launch`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", help="beginning of the file names to write")
    name = parser.parse_args().result
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group("gloo", init_method=os.environ.get(STORE, "env://"), rank=rank, world_size=world)
    try:
        torch.save({share: train(rank, world, share=share) for share in SHARES}, f"{name}_{rank}.pt")
        dist.barrier()  # who left early would break the connection under the others' last words
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
