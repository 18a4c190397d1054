"""GGUF files: what the package `gguf` reads and writes, bit for bit, and a clear word on each that is damaged."""

from __future__ import annotations

import os
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import transformer_lib as tl
from gguf_files import (
    BOOL,
    LIST,
    NUMBER_OF,
    TEXT,
    U32,
    entry,
    file_bytes,
    guessed,
    random_blocks,
    stored_bytes,
    text,
    value,
    write,
)
from real_model import real_gguf
from transformer_lib.data import gguf

peer = pytest.importorskip("gguf")
pytestmark = pytest.mark.fast

DECODED = [kind for kind in gguf.TYPES.values() if kind.decode]
OTHERS = [kind for kind in gguf.TYPES.values() if not kind.decode]
NAME = {"ids": lambda kind: kind.name}
METADATA = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.rope.freq_base": 100000.0,
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.ggml.tokens": ["<|im_end|>", "Ġthe", "ß", "", "🙂"],
    "tokenizer.ggml.token_type": [3, 1, 1, 1, 1],
    "scores": [0.5, -1.25],
    "flags": [True, False, True],
}


def tensor(name: str, shape: tuple[int, ...], seed: int = 0) -> tuple[str, tuple[int, ...], bytes]:
    kind = gguf.TYPES[NUMBER_OF[name]]
    n_blocks = int(np.prod(shape)) // kind.n_weights
    return name, shape, random_blocks(kind, n_blocks, seed).tobytes()


TENSORS = {
    "token_embd.weight": tensor("Q8_0", (7, 64)),
    "blk.0.attn_q.weight": tensor("Q4_1", (5, 3, 32), 1),
    "blk.0.attn_norm.weight": tensor("F32", (13,), 2),
    "one": tensor("F16", (), 3),
}


@pytest.fixture
def small(tmp_path):
    return write(tmp_path / "small.gguf", METADATA, TENSORS)


def read_bytes(tmp_path, content: bytes) -> gguf.File:
    path = tmp_path / "given.gguf"
    path.write_bytes(content)
    return gguf.read(path)


# --- Beside the package of llama.cpp --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", gguf.TYPES.values(), **NAME)
def test_names_and_sizes_of_types_are_those_of_ggml(kind):
    number = peer.GGMLQuantizationType(NUMBER_OF[kind.name])
    assert (number.name, *peer.GGML_QUANT_SIZES[number]) == kind[:3]


@pytest.mark.parametrize("kind", DECODED, **NAME)
@pytest.mark.parametrize("seed", [0, 1])
def test_blocks_are_decoded_bit_for_bit(kind, seed):
    blocks = random_blocks(kind, 31, seed)
    before = blocks.copy()
    ours = kind.decode(blocks)
    theirs = peer.dequantize(blocks, peer.GGMLQuantizationType(NUMBER_OF[kind.name]))
    assert ours.dtype == np.float32 and ours.shape == (31, kind.n_weights)
    np.testing.assert_array_equal(ours, theirs.reshape(ours.shape))
    np.testing.assert_array_equal(blocks, before)


@pytest.mark.parametrize("name", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"])
def test_weights_come_back_within_half_a_step_of_their_rounding(name):
    kind = gguf.TYPES[NUMBER_OF[name]]
    weights = np.random.default_rng(0).normal(size=(17, 32)).astype(np.float32)
    found = kind.decode(peer.quantize(weights, peer.GGMLQuantizationType[name]))
    steps = {"Q4_0": 8, "Q5_0": 16, "Q8_0": 127}  # from 0 to the largest weight; else from the lowest to the highest
    largest = (
        np.abs(weights).max(1) / steps[name] if name in steps else np.ptp(weights, axis=1) / (2 ** int(name[1]) - 1)
    )
    clipped = 1 if name in ("Q4_0", "Q5_0") else 0.51  # the far end has one step less
    assert (np.abs(found - weights).max(1) <= clipped * largest + 0.01).all()


def test_a_block_of_four_bits_by_hand():
    """A scale of 2, a minimum of −3; byte j holds weights j (low half) and j + 16 (high half)."""
    block = np.frombuffer(struct.pack("<ee16B", 2.0, -3.0, 0x51, *[0] * 14, 0xF0), np.uint8)
    [weights] = gguf.decode_q4_1(block[None])
    assert (weights[0], weights[16], weights[15], weights[31]) == (2 * 1 - 3, 2 * 5 - 3, -3, 2 * 15 - 3)
    assert set(weights[[*range(1, 15), *range(17, 31)]]) == {-3.0}


def test_a_file_of_the_package_is_read(tmp_path):
    writer = peer.GGUFWriter(tmp_path / "theirs.gguf", "llama")
    writer.add_block_count(30)
    writer.add_rope_freq_base(1e5)
    writer.add_token_list(["a", "Ġb", "ß"])
    writer.add_token_types([3, 1, 1])
    writer.add_add_bos_token(False)
    writer.add_int64("far", -(2**40))
    writer.add_float64("third", 1 / 3)
    weights = np.random.default_rng(0).normal(size=(5, 7, 32)).astype(np.float32)
    writer.add_tensor("plain", weights)
    writer.add_tensor("rounded", peer.quantize(weights, peer.GGMLQuantizationType.Q4_1), raw_dtype=3)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = tl.gguf.read(tmp_path / "theirs.gguf")
    assert file.metadata == {
        "general.architecture": "llama",
        "llama.block_count": 30,
        "llama.rope.freq_base": 1e5,
        "tokenizer.ggml.tokens": ["a", "Ġb", "ß"],
        "tokenizer.ggml.token_type": [3, 1, 1],
        "tokenizer.ggml.add_bos_token": False,
        "far": -(2**40),
        "third": 1 / 3,
    }
    assert {name: (found.shape, found.type) for name, found in file.tensors.items()} == {
        "plain": ((5, 7, 32), "F32"),
        "rounded": ((5, 7, 32), "Q4_1"),
    }
    np.testing.assert_array_equal(file.tensors["plain"].array(), weights)
    theirs = peer.dequantize(peer.quantize(weights, peer.GGMLQuantizationType.Q4_1), peer.GGMLQuantizationType.Q4_1)
    np.testing.assert_array_equal(file.tensors["rounded"].array(), theirs)


def test_the_package_reads_a_file_of_the_tests_alike(small):
    ours, theirs = gguf.read(small), peer.GGUFReader(small)
    said = {name: found.contents() for name, found in theirs.fields.items() if not name.startswith("GGUF.")}
    assert ours.metadata == METADATA == said
    for found in theirs.tensors:
        mine = ours.tensors[found.name]
        assert (mine.type, mine.offset, mine.n_bytes) == (found.tensor_type.name, found.data_offset, found.n_bytes)
        np.testing.assert_array_equal(mine.array().ravel(), peer.dequantize(found.data, found.tensor_type).ravel())


@pytest.mark.slow
def test_the_real_file_is_read_as_the_package_reads_it():
    path = real_gguf()
    ours, theirs = gguf.read(path), peer.GGUFReader(path)
    said = {name: found.contents() for name, found in theirs.fields.items() if not name.startswith("GGUF.")}
    assert ours.metadata == said
    assert list(ours.tensors) == [found.name for found in theirs.tensors]
    for found in theirs.tensors:
        array = peer.dequantize(found.data, found.tensor_type)
        np.testing.assert_array_equal(ours.tensors[found.name].array(), array, err_msg=found.name)


# --- What is read -----------------------------------------------------------------------------------------------------


def test_tensors_stay_in_the_file_until_they_are_asked_for(small):
    content = small.read_bytes()
    file = gguf.read(small)
    assert list(file.tensors) == list(TENSORS) and file.version == 3 and file.path == small
    for name, (kind, shape, stored) in TENSORS.items():
        found = file.tensors[name]
        assert (found.name, found.type, found.shape) == (name, kind, shape)
        assert found.blocks().tobytes() == stored == content[found.offset : found.offset + found.n_bytes]
        assert not found.blocks().flags.writeable and not found.blocks().flags.owndata
        assert found.array().flags.writeable and found.array().shape == shape


@pytest.mark.parametrize("alignment", [1, 8, 64])
def test_another_alignment(tmp_path, alignment):
    tensors = {"odd": tensor("F16", (3,)), "even": tensor("F32", (5,), 1), "block": tensor("Q6_K", (256,), 2)}
    file = gguf.read(write(tmp_path / "a.gguf", {"general.alignment": alignment}, tensors, alignment=alignment))
    for name, (kind, _, stored) in tensors.items():
        blocks = np.frombuffer(stored, np.uint8).reshape(-1, gguf.TYPES[NUMBER_OF[kind]].n_bytes)
        np.testing.assert_array_equal(file.tensors[name].array(), gguf.TYPES[NUMBER_OF[kind]].decode(blocks).ravel())


def test_a_file_without_tensors_and_one_of_version_2(tmp_path):
    assert dict(read_bytes(tmp_path, file_bytes()).tensors) == {}
    assert read_bytes(tmp_path, file_bytes([("a", guessed("b"))], version=2)).metadata == {"a": "b"}


@pytest.mark.parametrize("kind", OTHERS, **NAME)
def test_a_type_that_is_not_decoded_is_named_and_harms_nothing_else(tmp_path, kind):
    stored = ("F32", (3,), struct.pack("<3f", 1, 2, 5))
    other = (kind.name, (2, kind.n_weights), bytes(2 * kind.n_bytes))
    file = gguf.read(write(tmp_path / "a.gguf", {}, {"other": other, "plain": stored}))
    assert file.tensors["plain"].array().tolist() == [1, 2, 5]
    assert file.tensors["other"].blocks().shape == (2, kind.n_bytes)
    with pytest.raises(ValueError, match=f"other must be of one of the types F32, .*BF16, got {kind.name}"):
        file.tensors["other"].array()


# --- What is refused --------------------------------------------------------------------------------------------------

FOUR = bytes(128)
REFUSED = {
    "empty": (b"", "must be a GGUF file, got an empty one"),
    "magic": (file_bytes(magic=b"GGML"), r"must be a GGUF file, which begins with b'GGUF', got b'GGML'"),
    "version 1": (file_bytes(version=1), "must be of version 2 or 3 of GGUF, little-endian .*, got version 1"),
    "big-endian": (file_bytes(version=3 << 24), "little-endian .*, got version 50331648"),
    "tensors": (file_bytes(counts=(2**63, 0)), "must have 9223372036854775808 tensors from here .*, got .* too few"),
    "metadata": (
        file_bytes(counts=(0, 2**40)),
        "must have 1099511627776 entries of metadata from here .*, got .* too few",
    ),
    "one key more": (
        file_bytes([("a", guessed(1))], counts=(0, 2)),
        "must have a key of each name once .*got '' as one",
    ),
    "many keys more": (
        file_bytes([("a", guessed(1))], counts=(0, 4)),
        "must have 4 entries of metadata from here .*, too few",
    ),
    "one tensor more": (
        file_bytes((), [entry("w", (3,), 0, 0)], FOUR, counts=(2, 0)),
        "must have a tensor of each name once .*got '' as one",
    ),
    "long text": (
        file_bytes([("a", struct.pack("<IQ", TEXT, 2**62))]),
        "must have 4611686018427387904 bytes of a text",
    ),
    "long list": (file_bytes([("a", struct.pack("<IIQ", LIST, U32, 2**62))]), "must have 4611686018427387904 values"),
    "long texts": (
        file_bytes([("a", struct.pack("<IIQ", LIST, TEXT, 99) + bytes(70))]),
        "must have 99 values from here",
    ),
    "list of lists": (
        file_bytes([("a", struct.pack("<IIQ", LIST, LIST, 1) + guessed([1]))]),
        "no lists of lists, before here .*, got type 9",
    ),
    "kind of value": (file_bytes([("a", struct.pack("<I", 13) + bytes(8))]), "types? of values .*, got type 13"),
    "boolean": (file_bytes([("a", value(BOOL, 2))]), "must have booleans of 0 or 1 before here .*, got 2"),
    "key": (file_bytes([(b"\xff", guessed(1))]), r"must have a key in UTF-8 before here .*, got b'\\xff'"),
    "two keys": (file_bytes([("a", guessed(1)), ("a", guessed(1))]), "must have a key of each name once .*'a' twice"),
    "two tensors": (
        file_bytes((), [entry("w", (3,), 0, 0), entry("w", (3,), 0, 32)], FOUR),
        "must have a tensor of each name once before here .*, got 'w' twice",
    ),
    "same bytes": (
        file_bytes((), [entry("v", (9,), 0, 0), entry("w", (3,), 0, 32)], FOUR),
        "must have each tensor in bytes of its own, got 'v' and 'w' in the same",
    ),
    "axes": (file_bytes((), [entry("w", (1,) * 5, 0, 0)], FOUR), "must have at most 4 axes .*, got 5"),
    "no weights": (file_bytes((), [entry("w", (3, 0), 0, 0)], FOUR), r"whole blocks .* of 'w', got shape \(3, 0\)"),
    "half a block": (
        file_bytes((), [entry("w", (32, 3), 3, 0)], FOUR),
        r"must have whole blocks of 32 weights \(Q4_1\) in each row of 'w', got shape \(32, 3\)",
    ),
    "a scalar in blocks": (
        file_bytes((), [entry("w", (), 8, 0)], FOUR),
        r"\(Q8_0\) in each row of 'w', got shape \(\)",
    ),
    "unknown type": (file_bytes((), [entry("w", (3,), 99, 0)], FOUR), "for 'w', got number 99, which is unknown"),
    "outside": (
        file_bytes((), [entry("w", (33,), 0, 0)], FOUR),
        r"must have the 132 bytes of 'w' within its \d+, at a multiple of 32, got them 0 after",
    ),
    "far outside": (
        file_bytes((), [entry("w", (3,), 0, 2**62)], FOUR),
        "within its .*got them 4611686018427387904 after",
    ),
    "not aligned": (file_bytes((), [entry("w", (3,), 0, 4)], FOUR), "at a multiple of 32, got them 4 after byte"),
    "absurd": (file_bytes((), [entry("w", (2**40, 2**40, 2**40), 0, 0)], FOUR), "must have the 5.* bytes of 'w'"),
    **{
        f"alignment {wrong}": (
            file_bytes([("general.alignment", guessed(wrong))]),
            "must have a power of two as general.alignment, got",
        )
        for wrong in (0, 24, True, "32", 32.0)
    },
}


@pytest.mark.parametrize(("content", "message"), REFUSED.values(), ids=REFUSED)
def test_a_damaged_file_is_refused_and_nothing_is_allocated_for_it(tmp_path, content, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=f"^given.gguf {message}" if message[:4] == "must" else message):
            read_bytes(tmp_path, content)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path):
    metadata = {"a": 1, "b": ["x", "yz"], "c": [2, 3], "d": True}
    content = stored_bytes(metadata, {"v": tensor("F32", (3,)), "w": tensor("Q4_1", (2, 32))})
    last = read_bytes(tmp_path, content).tensors["w"]
    whole = last.offset + last.n_bytes
    for length in range(whole):
        with pytest.raises(ValueError, match="^given.gguf must "):
            read_bytes(tmp_path, content[:length])
    assert list(read_bytes(tmp_path, content[:whole]).tensors) == ["v", "w"]  # the last padding may be missing


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_bytes_that_are_changed_give_another_file_or_a_clear_error(tmp_path_factory, data):
    content = bytearray(stored_bytes(METADATA, TENSORS))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        wide = data.draw(st.sampled_from([b"\0", b"\xff", b"\xff" * 8, struct.pack("<Q", 2**62), b"\x01", b"\x09"]))
        content[at : at + len(wide)] = wide
    path = tmp_path_factory.getbasetemp() / f"changed-{os.getpid()}.gguf"
    path.write_bytes(content)
    try:
        file = gguf.read(path)
    except ValueError as error:
        assert str(error).startswith(f"{path.name} must ")
        return
    for found in file.tensors.values():
        assert len(found.blocks().ravel()) == found.n_bytes <= len(content)


def test_what_is_no_path_and_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        gguf.read(tmp_path / "none.gguf")
    with pytest.raises(TypeError):
        gguf.read(3)


def test_a_text_that_is_no_utf_8_is_quoted(tmp_path):
    with pytest.raises(ValueError, match=r"must have a text in UTF-8 before here \(byte \d+\), got b'\\xc3\('"):
        read_bytes(tmp_path, file_bytes([("a", struct.pack("<I", TEXT) + text(b"\xc3("))]))
