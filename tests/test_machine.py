from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from transformer_lib import _machine

pytestmark = pytest.mark.fast

AMD = "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nvendor_id\t: other\n"
INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Processor\n"


def told(monkeypatch, tmp_path, text=None, elsewhere=""):
    """Let Linux say `text`, or another system `elsewhere`; return whether the processor is Intel's."""
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(_machine, "Path", lambda path: file)
    monkeypatch.setattr(_machine.platform, "processor", lambda: elsewhere)
    return _machine.made_by_intel.__wrapped__()


@pytest.mark.parametrize("text, name, intel", [(AMD, "AMD EPYC", False), (INTEL, "Intel(R) Xeon(R) Processor", True)])
def test_linux_tells_the_name_and_the_maker(monkeypatch, tmp_path, text, name, intel):
    assert told(monkeypatch, tmp_path, text, elsewhere="x86_64") is intel
    assert _machine.processor() == name


def test_other_systems_tell_both_in_one(monkeypatch, tmp_path):
    windows = "Intel64 Family 6 Model 140 Stepping 1, GenuineIntel"
    assert told(monkeypatch, tmp_path, elsewhere=windows) is True and _machine.processor() == windows
    assert told(monkeypatch, tmp_path, elsewhere="arm") is False and _machine.processor() == "arm"


def test_what_nobody_tells_is_the_architecture(monkeypatch, tmp_path):
    assert told(monkeypatch, tmp_path, "CPU implementer\t: 0x41\n") is False
    assert _machine.processor() == _machine.platform.machine()


FREEING = """
import resource, torch
from transformer_lib._machine import keep_freed_memory

def pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.zeros(2**18) for _ in range(101)]  # 1 MiB each
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print([pages() for _ in range(3)][-1])
keep_freed_memory()
print([pages() for _ in range(3)][-1])
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library is told")
def test_memory_that_was_freed_is_kept_for_the_next_tensors():
    at_first = {"MALLOC_MMAP_THRESHOLD_": "131072"}  # so every one of these tensors is given back
    command = [sys.executable, "-c", FREEING]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | at_first).stdout
    given_back, kept = map(int, told.split())
    assert given_back > 1000 and kept < given_back / 10


def test_without_the_gnu_c_library_nothing_is_told(monkeypatch):
    monkeypatch.setattr(_machine.platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(_machine.ctypes, "CDLL", lambda name: pytest.fail("asked for the C library"))
    _machine.keep_freed_memory()
