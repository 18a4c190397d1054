"""Every command of the repository can be shown on any console, and ends quietly when nobody reads on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_lib import _streams
from transformer_lib._streams import run_command

ROOT = Path(__file__).parents[1]
COMMANDS = sorted(
    path
    for folder in ("studies", "transformer_lib", "docs", "tests")
    for path in (ROOT / folder).rglob("*.py")
    if path.name == "__main__.py" or '\nif __name__ == "__main__":\n' in path.read_text(encoding="utf-8")
)
# A process of ours starts these and reads what they say: the last needs nothing of this library, in a container too.
BENCHMARKS = {f"tests/benchmarks/{name}.py" for name in ("llama", "memory")}
NO_COMMAND = BENCHMARKS | {"transformer_lib/course/teaching/assignments/run.py"}

# Asks each command for its help, on consoles of these encodings and where nobody reads, and prints how each ends.
ASK = """
import itertools, json, os, runpy, sys, warnings
from pathlib import Path

root, encodings, *commands = sys.argv[1:]
warnings.filterwarnings("ignore", category=RuntimeWarning, module="runpy")  # some are imported before they are run
sys.path[:0] = [root, root + "/tests", root + "/docs"]
own = sys.stdout
for command, encoding in itertools.product(commands, ["", *encodings.split()]):
    reading, writing = os.pipe()
    if not encoding:
        os.close(reading)
    sys.argv = [command, "--help"]
    sys.stdout = open(writing, "w", encoding=encoding or "ascii")
    path = Path(command).with_suffix("")
    try:
        if path.parts[0] in ("studies", "transformer_lib"):
            runpy.run_module(".".join(path.parts).removesuffix(".__main__"), run_name="__main__", alter_sys=True)
        elif path.name == "__main__":
            runpy.run_module(path.parent.name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(Path(root, command)), run_name="__main__")
        ended = None
    except SystemExit as left:
        ended = left.code
    except Exception as error:
        ended = repr(error)
    try:
        sys.stdout.close()
    except Exception as error:
        ended = f"{ended}, then {error!r}"
    said = os.read(reading, 2**16).decode(encoding) if encoding else ""
    own.write(json.dumps([f"{encoding or 'nobody'}: {command}", ended, said[:6]]) + "\\n")
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no pipe that says that nobody reads")
def test_every_command_shows_its_help_on_any_console_and_ends_quietly_where_nobody_reads():
    names = [path.relative_to(ROOT).as_posix() for path in COMMANDS]
    names = [name for name in names if name not in NO_COMMAND]
    assert len(names) > 55
    consoles = ("ascii", "cp932")
    words = [sys.executable, "-c", ASK, ROOT, " ".join(consoles), *names]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, timeout=300)
    assert done.stderr == ""
    found = {name: found for name, *found in map(json.loads, done.stdout.splitlines())}
    wanted = {f"{console}: {name}": [0, "usage:"] for console in consoles for name in names}
    assert found == wanted | {f"nobody: {name}": [141, ""] for name in names}


def run(code, **options):
    """Run this code as a command, and return the process."""
    load = f"import os, runpy, sys\nrun_command = runpy.run_path({_streams.__file__!r})['run_command']"  # without torch
    program = f"{load}\n\ndef main():\n{code}\n\nrun_command(main)"
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, cwd=ROOT, **options)


def ended(process):
    """Return the exit status of a process, and what it wrote as errors."""
    said = process.communicate(timeout=120)[1]
    return process.returncode, said


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipe")
@pytest.mark.parametrize("code", ["    print('a' * 10**6)", "    print('a')", "    print('a', flush=True)"])
def test_a_reader_that_has_gone_is_no_error(code):
    process = run(code, stdout=subprocess.PIPE)
    process.stdout.close()
    assert ended(process) == (141, "")


@pytest.mark.skipif(os.name == "nt", reason="Windows does not tell which pipe it was")
def test_another_pipe_that_breaks_is_an_error():
    code = "    reading, writing = os.pipe()\n    os.close(reading)\n    os.write(writing, b'a')"
    status, said = ended(run(code, stdout=subprocess.PIPE))
    assert status == 1 and "BrokenPipeError" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    ("code", "end"),
    [
        ("    print('a')", (1, "standard output cannot be written: No space left on device\n")),
        ("    print('a', flush=True)", (1, "error: [Errno 28] No space left on device\n")),
        ("    print('a')\n    sys.exit('wrong')", (1, "wrong\n")),
    ],
)
def test_a_full_disk_is_said_once(code, end):
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        assert ended(run(code, stdout=full, env=buffered)) == end


def test_a_file_that_cannot_be_written_is_named_in_one_line(tmp_path):
    (tmp_path / "file").touch()
    status, said = ended(run(f"    os.mkdir({str(tmp_path / 'file' / 'folder')!r})"))
    assert status == 1 and said.count("\n") == 1
    assert said.startswith("error: ") and str(tmp_path / "file" / "folder") in said


@pytest.mark.parametrize(("returned", "status"), [(None, None), (0, 0), (3, 3)])
def test_a_command_leaves_with_what_it_returns(returned, status):
    with pytest.raises(SystemExit) as left:
        run_command(lambda: returned)
    assert left.value.code == status


def test_what_was_stopped_from_the_keyboard_says_so_by_its_status():
    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as left:
        run_command(stopped)
    assert left.value.code == 130


def test_a_character_that_the_console_lacks_is_shown_by_its_number():
    process = run("    print('ä ○')\n    print('ß', file=sys.stderr)", stdout=subprocess.PIPE, env=console("ascii"))
    said, errors = process.communicate(timeout=120)
    assert (process.returncode, said, errors) == (0, "\\xe4 \\u25cb\n", "\\xdf\n")


def console(encoding):
    return os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
