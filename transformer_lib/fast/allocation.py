"""Memory that one training step frees, kept for the next."""

from __future__ import annotations

import torch

LARGEST = 2**25 - 2**16  # bytes; glibc's limit rises no further than to 32 MiB


def keep_freed_memory() -> None:
    """Have the C library keep freed blocks of some MiB, instead of giving them back to the system.

    A training step frees tens of MiB and asks for them again, and the system clears each page before it hands it out.
    glibc, Linux's C library, returns what is larger than the largest block that was allocated for itself and freed so
    far (see "dynamic mmap threshold" in the manual page mallopt(3)): so one such block, never touched, is enough. From
    then on the process keeps freed blocks of up to 32 MiB, and some 64 MiB at the end of its heap. Other allocators
    have rules of their own (torch brings one along on some platforms), and nothing changes there.
    """
    torch.empty(LARGEST, dtype=torch.uint8, device="cpu")
