"""Folders in Hugging Face's format: the model that they say, in the memory of its weights, or a clear error."""

from __future__ import annotations

import json
import pickle
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

import transformer_lib as tl
from small_tokenizer import train
from transformer_lib.model.interop import files

pytestmark = pytest.mark.fast
LLAMA = {"model_type": "llama", "vocab_size": 29, "hidden_size": 21, "num_attention_heads": 3, "head_dim": 10}
LLAMA |= {"num_hidden_layers": 2, "intermediate_size": 11, "rope_theta": 500.0, "tie_word_embeddings": True}
IDS = torch.tensor([[5, 3, 23, 7, 0], [1, 28, 2, 3, 11]])


def weights_of(seed=0):
    """The weights of a Llama of two layers, by the names of a file."""
    torch.manual_seed(seed)
    parts = {"self_attn.q_proj": (30, 21), "self_attn.k_proj": (30, 21), "self_attn.v_proj": (30, 21)}
    parts |= {"self_attn.o_proj": (21, 30), "mlp.gate_proj": (11, 21), "mlp.up_proj": (11, 21)}
    parts |= {"mlp.down_proj": (21, 11), "input_layernorm": (21,), "post_attention_layernorm": (21,)}
    names = {f"model.layers.{layer}.{name}.weight": shape for layer in range(2) for name, shape in parts.items()}
    names |= {"model.embed_tokens.weight": (29, 21), "model.norm.weight": (21,)}
    return {name: torch.randn(shape) for name, shape in names.items()}


def written(folder, weights=None, config=LLAMA):
    folder.mkdir(exist_ok=True)
    save_file(weights_of() if weights is None else weights, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def in_shards(folder, weights, count=3):
    """Write the weights in several files with an index, as large models come."""
    written(folder, weights)
    (folder / "model.safetensors").unlink()
    places = {name: f"model-{number % count:05}-of-{count:05}.safetensors" for number, name in enumerate(weights)}
    for file in set(places.values()):
        save_file({name: weights[name] for name in weights if places[name] == file}, folder / file)
    (folder / files.INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return folder


@torch.no_grad()
def test_one_file_or_several_give_the_same_model(tmp_path):
    wanted = tl.interop.load_hf(weights_of(), LLAMA)(IDS)
    whole = tl.interop.load_folder(written(tmp_path / "whole"))
    assert not whole.training and isinstance(whole, tl.modern.LanguageModel)
    assert torch.equal(whole(IDS), wanted)
    shards = in_shards(tmp_path / "shards", weights_of())
    (shards / "other.safetensors").write_bytes(b"not in the index")
    assert torch.equal(tl.interop.load_folder(str(shards))(IDS), wanted)
    assert torch.equal(tl.interop.load_hf(shards)(IDS), wanted)


def test_the_whole_file_counts_more_than_others_beside_it(tmp_path):
    folder = written(tmp_path / "folder")
    save_file({"tok_embeddings.weight": torch.ones(29, 21)}, folder / "consolidated.safetensors")
    assert len(list(tl.interop.load_folder(folder).parameters())) == 20
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    save_file(weights_of(), folder / "b.safetensors")
    with pytest.raises(ValueError, match=r"b.safetensors must not have what another file .* 'model.embed_tokens.w"):
        tl.interop.load_folder(folder)


@torch.no_grad()
def test_gpt2_and_bert_of_the_course():
    from transformer_lib.course.lab import speakers

    for kind, made, read in (
        ("gpt2", tl.LanguageModel, speakers.gpt2),
        ("bert", tl.MaskedLanguageModel, speakers.bert),
    ):
        model = tl.interop.load_folder(speakers.folder(kind))
        assert type(model) is made and not model.training
        assert torch.equal(model(IDS), read()(IDS))


@torch.no_grad()
def test_a_sentence_encoder(tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 29, "hidden_size": 33, "num_attention_heads": 3, "num_hidden_layers": 2}
    config = transformers.BertConfig(**sizes, intermediate_size=37, max_position_embeddings=17)
    theirs = transformers.BertModel(config).eval()
    theirs.save_pretrained(tmp_path)
    model = tl.interop.load_folder(tmp_path)
    assert type(model) is tl.TextEncoder
    torch.testing.assert_close(model(IDS), theirs(IDS).last_hidden_state, rtol=0, atol=1e-6)


@torch.no_grad()
def test_types_and_devices(tmp_path):
    halves = {name: weight.bfloat16() for name, weight in weights_of().items()}
    folder = written(tmp_path / "folder", halves)
    assert {p.dtype for p in tl.interop.load_folder(folder).parameters()} == {torch.bfloat16}
    wider = tl.interop.load_folder(folder, dtype=torch.float64)
    assert torch.equal(wider.norm.weight, halves["model.norm.weight"].double())
    assert {p.device.type for p in tl.interop.load_folder(folder, device="meta").parameters()} == {"meta"}
    mixed = written(tmp_path / "mixed", halves | {"model.norm.weight": torch.ones(21)})
    with pytest.raises(ValueError, match="dtype must be given .* several types, here torch.bfloat16, torch.float32"):
        tl.interop.load_folder(mixed)
    assert tl.interop.load_folder(mixed, dtype=torch.float32)(IDS).isfinite().all()
    for wrong in (torch.int8, "float32", 32):
        with pytest.raises(TypeError, match=f"dtype must be a torch.dtype of floats or None, got {wrong!r}"):
            tl.interop.load_folder(folder, dtype=wrong)


def test_every_type_of_numbers_is_read_as_it_is_stored(tmp_path):
    kinds = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16)
    tensors = {str(kind): torch.arange(-3, 4).to(kind) for kind in kinds}
    tensors |= {"bytes": torch.arange(7, dtype=torch.uint8), "signed": torch.arange(-3, 4, dtype=torch.int8)}
    tensors |= {"flags": torch.tensor([True, False, True]), "one": torch.tensor(3.5), "none": torch.ones(0, 3)}
    save_file(tensors, tmp_path / "model.safetensors")
    found = {name: entry.read() for name, entry in files.open_weights(tmp_path).items()}
    assert found.keys() == tensors.keys()
    for name, tensor in load_file(tmp_path / "model.safetensors").items():
        assert found[name].dtype == tensor.dtype and torch.equal(found[name], tensor)
    save_file({"eight": torch.ones(3).to(torch.float8_e4m3fn)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="model.safetensors must have tensors of F64, .* BOOL, got one of F8_E4M3"):
        files.open_weights(tmp_path)["eight"].read()


def test_each_weight_is_read_once_into_memory_that_the_model_keeps(tmp_path, monkeypatch):
    folder, read, own = written(tmp_path / "folder"), [], files.Stored.read

    def watched(entry):
        read.append(own(entry))
        return read[-1]

    monkeypatch.setattr(files.Stored, "read", watched)
    model = tl.interop.load_folder(folder)
    assert len(read) == 20 == len(list(model.parameters()))
    assert {p.data_ptr() for p in model.parameters()} == {tensor.data_ptr() for tensor in read}
    before = model.norm.weight.clone()
    (folder / "model.safetensors").write_bytes(b"")  # nothing of the model lies in the file any more
    assert torch.equal(model.norm.weight, before)


def test_a_configuration_is_refused_before_a_weight_is_read(tmp_path, monkeypatch):
    folder = written(tmp_path / "folder", config=LLAMA | {"model_type": "gemma2"})
    monkeypatch.setattr(files.Stored, "read", lambda entry: pytest.fail("a weight was read"))
    with pytest.raises(ValueError, match="got 'gemma2', which has an RMSNorm with a gain of 1"):
        tl.interop.load_folder(folder)


def changed(weights, **changes):
    return weights | {f"model.{name.replace('__', '.')}": tensor for name, tensor in changes.items()}


def test_weights_that_do_not_fit(tmp_path):
    weights = weights_of()
    lacking = {name: tensor for name, tensor in weights.items() if "layers.1.mlp.up_proj" not in name}
    for wrong, message in (
        (lacking, "state_dict must have 'layers.1.mlp.up_proj.weight'"),
        (changed(weights, norm__bias=torch.ones(21)), "must have what the model has, got besides norm.bias"),
        (changed(weights, norm__weight=torch.ones(22)), r"'norm.weight'\] must give .* \(21,\), got \(22,\)"),
        (
            changed(weights, norm__weight=torch.ones(21, dtype=torch.int8)),
            "must give a weight of floats, got torch.int8",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            tl.interop.load_folder(written(tmp_path / "folder", wrong))


@pytest.mark.parametrize("cut_at", [0, 7, 100, -1])
def test_a_file_that_ends_too_early_is_refused(cut_at, tmp_path):
    folder = written(tmp_path / "folder")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:cut_at])
    with pytest.raises(ValueError, match="model.safetensors must be a whole .safetensors file, got: "):
        tl.interop.load_folder(folder)


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path):
    entries = files.open_weights(written(tmp_path / "folder"))
    content = (tmp_path / "folder/model.safetensors").read_bytes()
    (tmp_path / "folder/model.safetensors").write_bytes(content[:-1])
    last = max(entries.values(), key=lambda entry: entry.start)
    with pytest.raises(ValueError, match="must be a whole .safetensors file, got the beginning of one"):
        last.read()


def test_headers_that_lie_are_refused(tmp_path):
    """A tensor that ends behind the file, or one of another size than its shape says."""
    folder = written(tmp_path / "folder")
    for shape, end in (([3], 16), ([5], 12)):
        header = json.dumps({"a": {"dtype": "F32", "shape": shape, "data_offsets": [0, end]}}).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(12))
        with pytest.raises(ValueError, match="must be a whole .safetensors file"):
            tl.interop.load_folder(folder)


class Runs:
    """What a pickle may do: run anything."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.pth", "last.ckpt", "model.pkl"])
def test_a_pickle_is_refused_unopened(name, tmp_path):
    folder = written(tmp_path / "folder")
    (folder / name).write_bytes(pickle.dumps(Runs()))
    tl.interop.load_folder(folder)  # passes it by
    (folder / "model.safetensors").unlink()
    said = f"weights must be in .safetensors files, got {name}: a pickle may run any code when opened"
    with pytest.raises(ValueError, match=said):
        tl.interop.load_folder(folder)
    with pytest.raises(ValueError, match=said):
        tl.interop.load_hf(folder / name)


def test_code_in_a_folder_is_not_run(tmp_path, monkeypatch):
    folder = written(tmp_path / "folder", config=LLAMA | {"auto_map": {"AutoModelForCausalLM": "modeling.Own"}})
    (folder / "modeling.py").write_text("raise SystemExit('code of the folder was run')")
    monkeypatch.chdir(folder)
    assert isinstance(tl.interop.load_folder(folder), tl.modern.LanguageModel)


def test_files_that_are_missing_or_broken(tmp_path):
    with pytest.raises(ValueError, match="path must be a folder on this machine, .* got 'some/model'"):
        tl.interop.load_folder("some/model")
    folder = written(tmp_path / "folder")
    with pytest.raises(ValueError, match="path must be a folder on this machine"):
        tl.interop.load_folder(folder / "model.safetensors")
    for content, message in (
        (b"{", "config.json must be JSON, got: "),
        (b"\xff", "config.json must be JSON, got: "),
        (b"[]", "config.json must hold a JSON object, got a list"),
    ):
        (folder / "config.json").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            tl.interop.load_folder(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match="config must be given, or be in config.json beside the weights"):
        tl.interop.load_folder(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=f"weights must be .* a folder with one, got {folder}, which has none"):
        tl.interop.load_folder(folder)


def test_an_index_that_does_not_fit(tmp_path):
    folder = in_shards(tmp_path / "folder", weights_of())
    (folder / "model-00001-of-00003.safetensors").unlink()
    with pytest.raises(ValueError, match="weights must be .*, got .*model-00001-of-00003.safetensors, which has none"):
        tl.interop.load_folder(folder)
    for places, message in (
        ({"weight_map": {"a": "../model.safetensors"}}, "must name .safetensors files of its folder, got '../model"),
        ({"weight_map": {"a": "model.bin"}}, "must name .safetensors files of its folder, got 'model.bin'"),
        ({"weight_map": {}}, "index.json must have a weight_map, got {}"),
        ({"metadata": {}}, "index.json must have a weight_map, got None"),
    ):
        (folder / files.INDEX).write_text(json.dumps(places))
        with pytest.raises(ValueError, match=message):
            tl.interop.load_folder(folder)


# With a tokenizer ----------------------------------------------------------------------------------------------------


def test_a_model_comes_with_its_tokenizer(tmp_path):
    folder = written(tmp_path / "folder")
    train("gpt2").save(str(folder / "tokenizer.json"))
    model, tokenizer = tl.load_pretrained(str(folder), dtype=torch.float64)
    assert model.norm.weight.dtype == torch.float64 and not model.training
    text = "Show me the money!"
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_tokenizer_that_is_missing_or_of_another_kind(tmp_path):
    folder = written(tmp_path / "folder")
    alone = "tl.interop.load_folder returns the model alone"
    with pytest.raises(ValueError, match=f"path must be a folder with a tokenizer.json, got .* without; {alone}"):
        tl.load_pretrained(folder)
    (folder / "tokenizer.json").write_text('{"model": {"type": "WordPiece"}}')
    with pytest.raises(ValueError, match=f"WordPiece.*; {alone}"):
        tl.load_pretrained(folder)
