"""Data-parallel training: every process has the whole model and takes its part of each batch.

`launch()` starts two processes on this machine. torchrun starts the same program on one machine or many:

    torchrun --standalone --nproc-per-node 2 -m studies.parallel result

Process 0 then writes result_0.pt, process 1 result_1.pt, each with the weights it ends with. The processes talk
through gloo, which needs no GPU.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor

from transformer_lib._streams import run_command
from transformer_lib.course.lab.parallel import LENGTHS, batch, new_model, summed_loss
from transformer_lib.model.transformer import Transformer
from transformer_lib.training import distributed

SHARES = ("by tokens", "by process")


def step_gradients(model: Transformer, src: Tensor, tgt: Tensor, share: str = "by tokens") -> None:
    """Leave in every parameter's `.grad` the gradient that all processes agree on.

    Args:
        src, tgt: this process's part of the batch.
        share: "by tokens" for the mean over the tokens of all parts; "by process" for the mean of the parts' means.
    """
    model.zero_grad()
    loss, tokens = summed_loss(model, src, tgt)
    together = distributed.together()
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
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "studies.parallel", str(Path(folder, "result"))]
        distributed.launch(command, n_processes)
        return [torch.load(Path(folder, f"result_{rank}.pt")) for rank in range(n_processes)]


def main() -> None:
    """Run one process of the group: by torchrun, or by `launch`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", help="beginning of the file names to write")
    name = parser.parse_args().result
    with distributed.process_group():
        rank, world = distributed.rank(), distributed.world_size()
        torch.save({share: train(rank, world, share=share) for share in SHARES}, f"{name}_{rank}.pt")


if __name__ == "__main__":
    run_command(main)
