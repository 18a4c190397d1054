"""Freed memory stays with the process: counted by the pages that the system hands out, in a process of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

pytest.importorskip("resource", reason="counts of page faults are a thing of Unix")

PROGRAM = """
import resource, sys, torch
from transformer_lib.allocation import keep_freed_memory

def pages(rounds):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(rounds):
        blocks = [torch.empty(2**20).fill_(1.0) for _ in range(5)]  # 4 MiB each
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

torch.set_num_threads(1)
if sys.argv[1] == "keep":
    keep_freed_memory()
pages(3)
print(pages(7))
"""


OTHERS = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")  # settings that would take part
SET = 5 * 2**22 // 4096  # pages of one set of blocks
TIMES = 3  # without it, some processes keep their blocks by chance


def pages(how):
    own = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    run = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True, env=own)
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the rule is glibc's")
def test_the_pages_of_freed_blocks_are_not_asked_for_again():
    if max(pages("as it comes") for _ in range(TIMES)) < SET:
        pytest.skip("torch has another allocator here, or the system does not count pages")
    assert max(pages("keep") for _ in range(TIMES)) < SET // 10
