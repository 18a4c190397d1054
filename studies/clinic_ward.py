"""The ward of the bug clinic (notebook 17).

`python -m studies.clinic_ward` writes data/ward.safetensors.
"""

from __future__ import annotations

import argparse

import torch
from safetensors.torch import save
from torch import Tensor

from transformer_lib._files import write_atomically
from transformer_lib._streams import run_command
from transformer_lib.course.clinic.recipe import Recipe, trained
from transformer_lib.course.clinic.ward import NUMBERS, WARD

COMMAND = "python -m studies.clinic_ward"


def content(recipe: Recipe | None = None) -> dict[str, Tensor]:
    """Return, of each patient that is trained at all, "number.parameter" and "number.log" [2, steps]."""
    tensors = {}
    for (name, seed), number in NUMBERS.items():
        model, log = trained(name, seed, recipe or Recipe())
        tensors |= {f"{number}.{key}": value.detach() for key, value in model.named_parameters()}
        tensors[f"{number}.log"] = torch.tensor([log.loss, log.accuracy], dtype=torch.float64)
    return tensors


def main() -> None:
    """Train the ward and write it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    write_atomically(WARD, save(content(), metadata={"command": COMMAND}))


if __name__ == "__main__":
    run_command(main)
