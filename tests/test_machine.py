from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from transformer_lib import _machine

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]

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
import ctypes, resource
from transformer_lib._machine import keep_freed_memory

library, size = ctypes.CDLL(None), 2**20
library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]

def new_pages():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [library.malloc(size) for _ in range(101)]
    for block in blocks:
        ctypes.memset(block, 1, size)
    for block in blocks:
        library.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print([new_pages() for _ in range(3)][-1])
keep_freed_memory()
print([new_pages() for _ in range(3)][-1])
"""


@pytest.mark.skipif(not _machine.uses_glibc(), reason="only the GNU C library is told")
def test_memory_that_was_freed_is_kept():
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    environment["MALLOC_MMAP_THRESHOLD_"] = "131072"  # so at first each of these blocks is given back
    command = [sys.executable, "-c", FREEING]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    given_back, kept = map(int, done.stdout.split())
    assert given_back > 100 and kept < given_back / 10


@pytest.mark.parametrize("system, library", [("Linux", "musl"), ("Darwin", ""), ("Windows", "")])
def test_other_c_libraries_are_told_nothing(monkeypatch, system, library):
    monkeypatch.setattr(_machine.platform, "system", lambda: system)
    monkeypatch.setattr(_machine.platform, "libc_ver", lambda: (library, ""))
    monkeypatch.setattr(_machine.ctypes, "CDLL", lambda name: pytest.fail("asked for the C library"))
    _machine.keep_freed_memory()


def test_the_second_setting_is_not_made_alone(monkeypatch):
    told = []
    library = SimpleNamespace(mallopt=lambda setting, value: told.append(setting) or 0)  # 0: refused
    monkeypatch.setattr(_machine, "uses_glibc", lambda: True)
    monkeypatch.setattr(_machine.ctypes, "CDLL", lambda name: library)
    _machine.keep_freed_memory()
    assert told == [_machine._MMAP_THRESHOLD]
