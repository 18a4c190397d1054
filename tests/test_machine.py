from __future__ import annotations

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
