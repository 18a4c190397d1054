from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import transformer_lib as tl
from factories import POSITIONS, SIZES, make_model, sources, targets
from transformer_lib._files import write_atomically
from transformer_lib.training.checkpoint import read_checkpoint

pytestmark = pytest.mark.fast

TINY = {"src_vocab_size": 5, "tgt_vocab_size": 7, "d_model": 2, "n_heads": 1, "n_layers": 1, "d_ff": 3, "max_len": 11}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def store(path, model=None, **options):
    model = make_model() if model is None else model
    tl.save_checkpoint(path, model, **options)
    return model


@pytest.mark.parametrize("position", POSITIONS)
def test_a_model_comes_back_as_it_was(path, position):
    model = store(path, make_model(position=position, norm_first=True).train())
    loaded = tl.load_checkpoint(path).model
    assert loaded.config == model.config and not loaded.training
    assert torch.equal(loaded(sources(), targets()), model.eval()(sources(), targets()))
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_type_of_the_weights_is_kept(path, dtype):
    model = store(path, make_model(dtype=dtype))
    loaded = tl.load_checkpoint(path).model
    for own, other in zip(loaded.parameters(), model.parameters(), strict=True):
        assert own.dtype == dtype and torch.equal(own, other)


def test_tied_weights_are_stored_once_and_stay_tied(path):
    model = store(path, make_model(tgt_vocab_size=SIZES["src_vocab_size"], tie_embeddings=True))
    with safe_open(str(path), framework="pt") as file:
        assert [name for name in file.keys() if "embedding" in name or "head" in name] == [  # noqa: SIM118
            "model.src_embedding.weight"
        ]
    loaded = tl.load_checkpoint(path).model
    assert loaded.output_head.weight is loaded.src_embedding.weight is loaded.tgt_embedding.weight
    assert torch.equal(loaded.src_embedding.weight, model.src_embedding.weight)


def test_other_tensors_and_data_come_along(path):
    state = {"rng": torch.get_rng_state(), "step": torch.tensor(7.0), "empty": torch.zeros(0, 3)}
    extra = {"words": ["Ufer", "Straße"], "history": {"loss": [1.5, 0.1 + 0.2]}, "none": None}
    store(path, state=state, extra=extra)
    found = tl.load_checkpoint(path)
    assert found.extra == extra and found.state.keys() == state.keys()
    for name, tensor in state.items():
        assert torch.equal(found.state[name], tensor) and found.state[name].dtype == tensor.dtype
    assert store(path) and tl.load_checkpoint(path).extra == {} and tl.load_checkpoint(path).state == {}


def test_slices_and_transposes_are_stored_by_value(path):
    table = torch.arange(12.0).view(3, 4)
    store(path, state={"column": table[:, 1], "turned": table.T})
    state = tl.load_checkpoint(path).state
    assert state["column"].tolist() == [1, 5, 9] and torch.equal(state["turned"], table.T)


def test_equal_checkpoints_are_equal_files(path, tmp_path):
    contents = set()
    for i in range(8):
        store(tmp_path / f"{i}", make_model(**TINY), state={"step": torch.ones(3)}, extra={"words": ["a"]})
        contents.add((tmp_path / f"{i}").read_bytes())
    assert len(contents) == 1


def test_parts_of_any_model_can_be_read(path):
    model = tl.baselines.GRUTranslator(tl.TransformerConfig(**TINY), hidden=3)
    store(path, model, extra={"words": ["a"]})
    contents = read_checkpoint(path)
    assert contents.config == model.config and contents.kind == "GRUTranslator"
    assert contents.state == {} and contents.extra == {"words": ["a"]}
    assert contents.weights.keys() == model.state_dict().keys()
    with pytest.raises(ValueError, match="must hold a Transformer, got a GRUTranslator"):
        tl.load_checkpoint(path)


def test_folders_are_made(tmp_path):
    store(tmp_path / "new" / "folder" / "model.safetensors")
    assert os.listdir(tmp_path / "new" / "folder") == ["model.safetensors"]


def test_a_path_may_be_a_string(path):
    model = store(str(path))
    assert tl.load_checkpoint(str(path)).model.config == model.config


def test_a_missing_file(path):
    with pytest.raises(FileNotFoundError, match=r"checkpoint .*model.safetensors does not exist"):
        tl.load_checkpoint(path)


def test_a_truncated_file_is_refused(path):
    store(path, make_model(**TINY))
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    for length in (0, 1, 7, 8, 9, header // 2, header - 1, header, header + 1, len(whole) // 2 + 99, len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"checkpoint .* must be a complete safetensors file, got: "):
            tl.load_checkpoint(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(ValueError, match=r"must be a complete safetensors file, got: "):
        tl.load_checkpoint(path)


def test_a_flipped_bit_is_noticed_wherever_it_is(path):
    store(path, make_model(**TINY), extra={"step": 3})
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    positions = [*range(0, header, 7), *range(header, len(whole), 13), len(whole) - 1]
    assert len(positions) > 200
    for number, position in enumerate(positions):
        flipped = bytearray(whole)
        flipped[position] ^= 1 << (number % 8)
        path.write_bytes(flipped)
        with pytest.raises(ValueError, match=r"checkpoint .* must be (a complete|an intact)"):
            tl.load_checkpoint(path)
    path.write_bytes(whole)
    assert tl.load_checkpoint(path).extra == {"step": 3}


@pytest.mark.parametrize(
    "metadata",
    [None, {"transformer_lib": "no JSON"}, {"transformer_lib": "[]"}, {"transformer_lib": "{}"}, {"format": "pt"}],
)
def test_a_foreign_safetensors_file_is_refused(path, metadata):
    save_file({"weight": torch.ones(2)}, str(path), metadata)
    with pytest.raises(ValueError, match=r"checkpoint .* must be an intact one of this library, got: "):
        tl.load_checkpoint(path)


def test_a_config_that_contradicts_itself_is_refused(path, monkeypatch):
    model = make_model(**TINY)
    monkeypatch.setattr(tl.TransformerConfig, "to_dict", lambda self: {**TINY, "d_model": 3, "n_heads": 2})
    store(path, model)
    with pytest.raises(ValueError, match="must be an intact one of this library, got: d_model must be divisible"):
        tl.load_checkpoint(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_ff": 5}, r"encoder.layers.0.feed_forward.expand.weight must have shape \(5, 2\), got \(3, 2\)"),
        ({"n_layers": 2}, r"must hold the model's weights, got missing \['decoder.layers.1.*\], unknown \[\]"),
        ({"position": "learned"}, r"got missing \['position.table'\], unknown \[\]"),
    ],
)
def test_weights_that_do_not_fit_the_config_are_refused(path, monkeypatch, change, message):
    model = make_model(**TINY)
    wrong = model.config.to_dict() | change
    monkeypatch.setattr(tl.TransformerConfig, "to_dict", lambda self: wrong)
    store(path, model)
    with pytest.raises(ValueError, match=message):
        tl.load_checkpoint(path)


class Bomb:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return (os.mkdir, (str(self.target),))


@pytest.mark.parametrize("write", [pickle.dump, torch.save], ids=["pickle", "torch.save"])
def test_a_pickle_is_refused_and_not_run(path, tmp_path, write):
    with path.open("wb") as file:
        write({"model": Bomb(tmp_path / "exploded")}, file)
    with pytest.raises(ValueError, match=r"checkpoint .* must be a complete safetensors file, got: "):
        tl.load_checkpoint(path)
    assert not (tmp_path / "exploded").exists()


class HalfAFile:
    """Takes half of what is written into it, then fails."""

    def __init__(self, file, error):
        self.file, self.error = file, error

    def __enter__(self):
        return self

    def write(self, content):
        self.file.write(content[: len(content) // 2])
        raise self.error

    def __exit__(self, *_):
        self.file.close()


@pytest.mark.parametrize("failing", ["write", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_write_that_fails_leaves_the_old_file_alone(path, monkeypatch, failing, error):
    store(path, make_model(**TINY), extra={"step": 1})
    old, open_file = path.read_bytes(), Path.open

    def fail(*_args):
        raise error

    if failing == "write":
        monkeypatch.setattr(Path, "open", lambda self, mode: HalfAFile(open_file(self, mode), error))
    else:
        monkeypatch.setattr(os, failing, fail)
    with pytest.raises(type(error)):
        store(path, make_model(seed=1, **TINY), extra={"step": 2})
    monkeypatch.undo()
    assert path.read_bytes() == old and os.listdir(path.parent) == [path.name]
    assert tl.load_checkpoint(path).extra == {"step": 1}


def test_the_new_file_is_complete_before_it_takes_its_place(path, monkeypatch):
    store(path, make_model(**TINY), extra={"step": 1})
    seen, replace = [], os.replace

    def look(source, target):
        seen.append((tl.load_checkpoint(source).extra, tl.load_checkpoint(target).extra))
        replace(source, target)

    monkeypatch.setattr(os, "replace", look)
    store(path, make_model(**TINY), extra={"step": 2})
    assert seen == [({"step": 2}, {"step": 1})] and tl.load_checkpoint(path).extra == {"step": 2}


def test_any_bytes_can_be_written(tmp_path):
    write_atomically(tmp_path / "notes", b"\x00\xff")
    assert (tmp_path / "notes").read_bytes() == b"\x00\xff" and os.listdir(tmp_path) == ["notes"]


def test_what_has_no_config_or_one_of_a_subclass_is_refused(path):
    with pytest.raises(TypeError, match="model must be a module with a TransformerConfig as its config, got Linear"):
        tl.save_checkpoint(path, torch.nn.Linear(2, 3))

    class Wider(tl.TransformerConfig):
        pass

    with pytest.raises(ValueError, match="its config is a Wider, which would be read as a TransformerConfig"):
        tl.save_checkpoint(path, tl.Transformer(Wider(**TINY)))
    assert not path.exists()


def test_what_is_no_json_is_refused(path):
    with pytest.raises(TypeError, match="not JSON serializable"):
        store(path, make_model(**TINY), extra={"tensor": torch.ones(2)})
    assert not path.exists()
