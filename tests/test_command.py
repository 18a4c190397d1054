"""`python -m transformer_lib train` from a folder of sentences to a file of scores, on a corpus written here."""

from __future__ import annotations

import argparse
import gzip
import hashlib
import itertools
import json
import math
import os
import shlex
import signal
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import torch

import transformer_lib as tl
from transformer_lib import command
from transformer_lib.baselines import TorchTranslator
from transformer_lib.command import learning, scores
from transformer_lib.command import preparation as data
from transformer_lib.command.arguments import (
    SPELLED_OTHERWISE,
    add_train,
    begin_folder,
    folder_problem,
    training_options,
)
from transformer_lib.command.translating import load_run
from transformer_lib.data import corpora as corpus
from transformer_lib.training import distributed
from transformer_lib.training.gradients import BatchGradient
from transformer_lib.training.options import may_change

TESTS = Path(__file__).parent
WHO = {"A man": "Ein Mann", "A woman": "Eine Frau", "The dog": "Der Hund", "A child": "Ein Kind"}
DOES = {"sees": "sieht", "hears": "hört", "likes": "mag"}
WHAT = {"the house.": "das Haus.", "a book!": "ein Buch!", "the water, too.": "auch das Wasser."}
TINY = shlex.split("""
    --corpus multi30k --vocab 300 --d-model 16 --heads 2 --layers 1 --d-ff 32 --dropout 0 --max-tokens 200
    --warmup-steps 3 --quiet --device cpu
""")


def write_corpus(folder):
    """Write 36 pairs in the files of Multi30k and return what these files' checksums are."""
    lines = [
        (f"{who} {does} {what}", f"{WHO[who]} {DOES[does]} {WHAT[what]}")
        for who, does, what in itertools.product(WHO, DOES, WHAT)
    ]
    parts = {"train": lines, "val": lines[::7], "test_2016_flickr": lines[::9]}
    checksums = {}
    for name in corpus.MULTI30K_FILES:
        stem, language, _ = name.split(".")
        text = "".join(f"{pair[language == 'de']}\n" for pair in parts[stem])
        (folder / name).write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
        checksums[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    return checksums


@pytest.fixture
def multi30k(tmp_path, monkeypatch):
    """The folder of a tiny corpus that passes for Multi30k."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    monkeypatch.setattr(corpus, "MULTI30K_FILES", write_corpus(folder))
    monkeypatch.setenv("MULTI30K_DIR", str(folder))
    return folder


HELP = add_train(argparse.ArgumentParser().add_subparsers()).format_help()


def parse(words):
    return command.make_parser().parse_args(["train", *words])


def run(out, *options):
    """Run the command; return its status and what it wrote."""
    status = command.main(["train", *TINY, "--out", str(out), *options])
    path = out / "scores.json"
    return status, json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """The calls that would change how this process manages memory."""
    calls = []
    monkeypatch.setattr(command, "keep_freed_memory", lambda: calls.append("keep"))
    return calls


def test_from_sentences_to_scores(multi30k, tmp_path, capsys, memory):
    status, found = run(tmp_path / "out", "--epochs", "3", "--learning-rate", "0.01", "--beam", "2")
    assert status == 0 and memory == ["keep"]
    assert found["pairs"] == {"train": 36, "validation": 6, "test": 4}
    assert found["command"].startswith("transformer-lib train --corpus multi30k --vocab 300")
    assert found["epochs"] == 3 and found["steps"] % 3 == 0 and found["minutes"] >= 0
    assert len(found["validation"]) == 3 and found["validation"][-1] < found["validation"][0]
    assert found["best"] == {"epoch": 3, "loss": pytest.approx(found["validation"][-1], abs=1e-4)}
    assert found["torch"] == torch.__version__ and found["device"] == "cpu"
    assert list(found["scores"]) == ["val, greedy", "test_2016_flickr, greedy", "test_2016_flickr, beam 2"]
    for metrics in found["scores"].values():
        assert list(metrics) == ["BLEU", "BLEU, lower-cased", "chrF"]
        assert all(0 <= mean <= 100 and low <= high for mean, low, high in metrics.values())
    out = capsys.readouterr().out
    assert "BLEU, lower-cased" in out and "test_2016_flickr, beam 2" in out and "epoch 3: validation loss" in out
    written = (tmp_path / "out" / "test_2016_flickr.beam2.txt").read_text(encoding="utf-8")
    assert len(written.splitlines()) == 4


def test_a_trained_model_translates(multi30k, tmp_path):
    """Enough epochs to know the 36 sentences by heart."""
    options = ("--epochs", "20", "--learning-rate", "0.03", "--average", "0.8", "--max-tokens", "100")
    _, found = run(tmp_path / "out", *options, "--beam", "1", "--checkpoint-every", "1000")
    assert found["scores"]["test_2016_flickr, greedy"]["BLEU"][0] > 60
    model = tl.load_checkpoint(tmp_path / "out" / "best.safetensors")
    bpe = tl.BPETokenizer(model.extra["tokenizer"])
    translation = tl.Translator(model.model, bpe, bpe).translate(["A man sees the house."])
    assert translation[0].startswith("Ein Mann")


@pytest.mark.parametrize("model", ["ours", "torch"])
def test_a_stopped_run_goes_on(multi30k, tmp_path, monkeypatch, capsys, model):
    options = ("--epochs", "3", "--model", model, "--dropout", "0.3", "--checkpoint-every", "2")
    _, wanted = run(tmp_path / "whole", *options)

    validate = learning.Validation.__call__

    def stop(self, epoch):
        if epoch == 2:
            raise KeyboardInterrupt
        return validate(self, epoch)

    with monkeypatch.context() as patched:
        patched.setattr(learning.Validation, "__call__", stop)
        assert run(tmp_path / "stopped", *options) == (130, None)
    said = capsys.readouterr().out
    assert f"stopped; {2 * wanted['steps'] // 3} steps are saved, and the same command goes on from there" in said
    _, found = run(tmp_path / "stopped", *options, "--threads", str(torch.get_num_threads()))
    assert found["scores"] == wanted["scores"] and found["steps"] == wanted["steps"]
    assert found["best"] == wanted["best"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_loses_no_step(multi30k, tmp_path, monkeypatch, capsys, number):
    """It comes within a step, before the first regular checkpoint."""
    options, calls, add = ("--epochs", "2", "--dropout", "0.3", "--beam", "1"), [], BatchGradient.add
    _, wanted = run(tmp_path / "whole", *options)

    def signalled(self, src, tgt):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(number)
        return add(self, src, tgt)

    monkeypatch.setattr(BatchGradient, "add", signalled)
    assert run(tmp_path / "stopped", *options) == (130, None)
    assert "stopped; 3 steps are saved, and the same command goes on from there" in capsys.readouterr().out
    _, found = run(tmp_path / "stopped", *options)
    assert len(calls) == found["steps"] == wanted["steps"]
    assert found["scores"] == wanted["scores"] and found["best"] == wanted["best"]


@pytest.mark.parametrize("what", ["prepare", "report"])
def test_stopped_outside_of_training_it_says_what_is_saved(multi30k, tmp_path, monkeypatch, capsys, what):
    def stop(*_):
        raise KeyboardInterrupt

    steps = run(tmp_path / "whole", "--epochs", "1")[1]["steps"]
    with monkeypatch.context() as patched:
        patched.setattr(command, what, stop)
        assert run(tmp_path / "out", "--epochs", "1") == (130, None)
    assert f"stopped; {steps if what == 'report' else 0} steps are saved" in capsys.readouterr().out
    assert run(tmp_path / "out", "--epochs", "1")[1]["steps"] == steps


def test_pytorchs_model_is_trained_by_the_same_loop(multi30k, tmp_path):
    arguments = parse([*TINY, "--out", str(tmp_path), "--epochs", "1", "--model", "torch"])
    assert isinstance(learning.new_model(arguments, 300), TorchTranslator)
    ours = learning.new_model(parse([*TINY, "--out", str(tmp_path), "--epochs", "1"]), 300)
    assert type(ours) is tl.Transformer and ours.config.norm_first and ours.config.tie_embeddings


def test_by_the_clock(multi30k, tmp_path):
    _, found = run(tmp_path / "out", "--minutes", "0.01", "--average", "0", "--beam", "1")
    assert found["minutes"] >= 0.01 and found["steps"] >= 1
    assert list(found["scores"]) == ["val, greedy", "test_2016_flickr, greedy"]


def test_the_context_corpus_has_its_splits(tmp_path, monkeypatch):
    few = {name: tl.load_corpus("context")[name][:8] for name in ("train", "heldout", "compositional")}
    monkeypatch.setattr(data, "load_corpus", lambda name, download: corpus.Corpus(name, few))
    _, found = run(tmp_path / "out", "--corpus", "context", "--epochs", "1", "--beam", "1")
    assert list(found["scores"]) == ["heldout, greedy", "compositional, greedy"]


# Validation.


def make_validation(tmp_path, monkeypatch, losses, patience=0):
    losses = iter(losses)
    monkeypatch.setattr(learning, "loss_per_token", lambda *_, **__: next(losses))
    model = tl.Transformer(tl.TransformerConfig(src_vocab_size=5, tgt_vocab_size=5, d_model=4, n_heads=1, n_layers=1))
    bpe = tl.BPETokenizer.from_texts(["a"], vocab_size=300)
    return learning.Validation(
        model,
        None,
        None,
        tmp_path / "best.safetensors",
        patience=patience,
        precision="float32",
        computes="readable",
        tokenizer=bpe,
    )


def test_the_best_epoch_is_kept_and_patience_ends(tmp_path, monkeypatch):
    validation = make_validation(tmp_path, monkeypatch, [3.0, 2.0, 2.5, 2.0, 1.0], patience=2)
    assert [validation(epoch)["stop"] for epoch in (1, 2, 3, 4)] == [0, 0, 0, 1]
    assert validation.best == {"epoch": 2, "loss": 2.0}
    again = make_validation(tmp_path, monkeypatch, [2.1, 1.0])  # another process reads what was best
    assert again.best == validation.best
    assert [again(epoch)["stop"] for epoch in (3, 9)] == [0, 0] and again.best["epoch"] == 9


def test_a_run_that_blows_up_says_so(tmp_path, monkeypatch):
    with pytest.raises(FloatingPointError, match="epoch 3: validation loss nan; a lower --learning-rate may help"):
        make_validation(tmp_path, monkeypatch, [math.nan])(3)


def test_the_validation_loss_is_that_of_all_tokens():
    torch.manual_seed(0)
    model = tl.Transformer(tl.TransformerConfig(src_vocab_size=11, tgt_vocab_size=13, d_model=6, n_heads=1, n_layers=1))
    src, tgt = [[3, 4], [5], [6, 7, 8]], [[1, 3, 2], [1, 4, 5, 6, 2], [1, 2]]
    found = learning.loss_per_token(model, tl.Batches(src, tgt, 2))
    assert model.training
    summed = 0.0
    for source, target in zip(src, tgt, strict=True):
        target = torch.tensor([target])
        logits = model.eval()(torch.tensor([source]), target[:, :-1])
        mean = tl.translation_loss(logits, target[:, 1:], pad_id=0)
        summed += mean.item() * (target.shape[1] - 1)
    assert found == pytest.approx(summed / 7, abs=1e-5)


def test_the_average_first_forgets_faster():
    model = torch.nn.Linear(1, 1, bias=False)
    average = learning.new_average(model, 0.5)
    wanted = None
    for n, value in enumerate((1.0, 3.0, -2.0, 8.0, 5.0, 4.0, 2.0, 1.0, 6.0, 3.0)):
        torch.nn.init.constant_(model.weight, value)
        average.update_parameters(model)
        decay = min(0.5, (1 + n) / (10 + n))
        wanted = value if n == 0 else decay * wanted + (1 - decay) * value
    assert average.module.weight.item() == pytest.approx(wanted, rel=1e-6)
    assert learning.new_average(model, 0.0) is None


# What it is told.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--epochs", "1"], "the following arguments are required: --out"),
        (["--out", "x"], "one of the arguments --minutes --epochs is required"),
        (["--out", "x", "--epochs", "1", "--minutes", "2"], "not allowed with argument"),
        (["--out", "x", "--epochs", "1", "--seed", "-1"], "argument --seed: must be at least 0, got -1"),
        (["--out", "x", "--epochs", "1", "--patience", "-3"], "argument --patience: must be at least 0, got -3"),
        (["--out", "x", "--epochs", "0"], "argument --epochs: must be positive, got 0"),
        (["--out", "x", "--minutes", "many"], "argument --minutes: invalid float value: 'many'"),
        (["--out", "x", "--epochs", "1", "--dropout", "1"], "--dropout: must be at least 0 and below 1, got 1"),
        (["--out", "x", "--epochs", "1", "--length-penalty", "-1"], "--length-penalty: must be at least 0, got -1"),
        (["--out", "x", "--epochs", "1", "--corpus", "wmt"], "argument --corpus: invalid choice: 'wmt'"),
        (["--out", "x", "--epochs", "1", "--precision", "int8"], "argument --precision: invalid choice: 'int8'"),
    ],
)
def test_wrong_options_are_named(options, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        parse(options)
    assert message in capsys.readouterr().err


def test_a_folder_begun_with_other_options_is_refused(multi30k, tmp_path, capsys):
    out = tmp_path / "out"
    run(out, "--epochs", "1", "--beam", "1")
    before = (out / "run.safetensors").read_bytes()
    with pytest.raises(SystemExit, match="2"):
        run(out, "--epochs", "1", "--d-model", "18")
    assert f"--d-model: {out} was begun with 16, got 18; give the same, or another --out" in capsys.readouterr().err
    assert (out / "run.safetensors").read_bytes() == before


def test_options_that_do_not_change_what_is_learned_may_change(tmp_path):
    base = [*TINY, "--out", str(tmp_path), "--epochs", "2"]
    assert folder_problem(parse(base)) is None
    begin_folder(parse(base))
    assert folder_problem(parse([*base, "--threads", "7", "--beam", "9", "--download", "--epochs", "3"])) is None
    assert folder_problem(parse([*TINY, "--out", str(tmp_path), "--minutes", "1", "--accumulate", "2"])) is None


def test_the_commands_guard_is_that_of_the_function(tmp_path):
    """What `train` refuses when a run goes on, the command refuses before it has read a sentence."""
    base = [*TINY, "--out", str(tmp_path), "--epochs", "2"]
    begin_folder(parse(base))
    texts = {"int": "7", "float": "0.5", "float | None": "0.5"}  # another value, by the option's type
    named = {"schedule": "paper", "precision": "bfloat16", "path": "fast"}
    for entry in fields(tl.TrainingOptions):
        if entry.name not in SPELLED_OTHERWISE:
            option = f"--{entry.name.replace('_', '-')}"
            problem = folder_problem(parse([*base, option, named.get(entry.name) or texts[entry.type]]))
            assert problem is None if entry.name in may_change() else problem.startswith(f"{option}: "), option


def test_a_folder_begun_before_an_option_existed_was_begun_with_its_default(tmp_path):
    base = [*TINY, "--out", str(tmp_path), "--epochs", "2"]
    begin_folder(parse(base))
    path = tmp_path / "config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    del settings["clip_norm"], settings["norm"]
    path.write_text(json.dumps(settings), encoding="utf-8")
    assert folder_problem(parse(base)) is None
    assert folder_problem(parse([*base, "--norm", "post"])).startswith("--norm: ")
    path.write_text(json.dumps(settings | {"activation": "gelu"}), encoding="utf-8")  # of a later version
    assert folder_problem(parse(base)).startswith(f"--activation: {tmp_path} was begun with gelu, got nothing")


def test_more_epochs_go_on_where_the_run_ended(multi30k, tmp_path):
    steps = run(tmp_path / "out", "--epochs", "1", "--beam", "1")[1]["steps"]
    assert run(tmp_path / "out", "--epochs", "2", "--beam", "1")[1]["steps"] == 2 * steps


def test_a_corpus_that_has_changed_is_another_run(multi30k, tmp_path, monkeypatch, capsys):
    run(tmp_path / "out", "--epochs", "1", "--beam", "1")
    monkeypatch.setitem(WHO, "A man", "Der Mann")
    monkeypatch.setattr(corpus, "MULTI30K_FILES", write_corpus(multi30k))
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", "--epochs", "2", "--beam", "1")
    assert "was begun with batches.sha256" in capsys.readouterr().err


def test_a_first_attempt_that_failed_does_not_bind_the_folder(multi30k, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(SystemExit, match="2"):
        run(out, "--epochs", "1", "--beam", "1", "--max-tokens", "10")
    assert run(out, "--epochs", "1", "--beam", "1")[0] == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--heads", "3"], "d_model must be divisible by n_heads, got d_model=16, n_heads=3"),
        (["--max-tokens", "10"], "max_tokens must hold the longest pair"),
        (["--vocab", "100"], "vocab_size must be at least"),
    ],
)
def test_a_run_that_cannot_be_says_why_in_one_line(multi30k, tmp_path, capsys, options, message):
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", "--epochs", "1", *options)
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("transformer-lib train: error: ") and message in line


def test_without_its_folder_the_corpus_is_not_found(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("MULTI30K_DIR", raising=False)
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", "--epochs", "1")
    assert "set MULTI30K_DIR to the folder of its task-1 files" in capsys.readouterr().err


def test_every_option_has_help():
    text = " ".join(HELP.split())
    assert "(default: None)" not in text
    assert "(default: 8000)" in text and "(default: 0)" in text and "(default: False)" not in text


def test_a_table_of_scores():
    found = {"val, greedy": {"BLEU": scores.Score(31.26, 29.0, 33.0)}, "test": {"BLEU": scores.Score(5, 4, 6)}}
    assert scores.table(found).splitlines() == [
        "                            BLEU",
        "val, greedy    31.3 [29.0, 33.0]",
        "test              5.0 [4.0, 6.0]",
    ]


# The command and the function of the same name.


def test_the_function_stays_a_function():
    assert callable(tl.train) and tl.train.__module__ == "transformer_lib.training.loop"


def test_its_options_are_those_of_train_with_their_defaults(tmp_path):
    given = training_options(parse(["--out", str(tmp_path), "--epochs", "3"]))
    own = {"epochs": 3, "progress": True, "checkpoint": None}
    assert tl.TrainingOptions(**given) == tl.TrainingOptions(**own)
    text = " ".join(HELP.split())
    for entry in fields(tl.TrainingOptions):
        if entry.name not in SPELLED_OTHERWISE:
            assert f"--{entry.name.replace('_', '-')} " in text, entry.name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--label-smoothing", "1"], "label_smoothing must lie in [0, 1), got 1.0"),
        (["--learning-rate", "0"], "learning_rate must be positive, got 0.0"),
        (["--warmup-steps", "0"], "warmup_steps must be at least 1, got 0"),
        (["--clip-norm", "-1"], "clip_norm must be positive, got -1.0"),
        (["--model", "torch", "--path", "fast"], "--path must be readable with --model torch, got fast"),
    ],
)
def test_what_train_would_refuse_is_refused_at_once(options, message, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", "--epochs", "1", *options)
    assert message in capsys.readouterr().err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("model", ["ours", "torch"])
def test_what_was_trained_translates(multi30k, tmp_path, capsys, model):
    out = tmp_path / "out"
    run(out, "--epochs", "1", "--beam", "1", "--model", model)
    capsys.readouterr()
    assert command.main(["translate", "--run", str(out), "A man sees the house."]) == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    texts, again = ["A man sees the house."], load_run(out)
    again = again.translate(texts, max_new_tokens=scores.longest_translation(again, texts))
    assert said == f"{again[0]}\n"


def be_one_of_two(folder: str) -> None:
    """Run the command as one of two processes."""
    corpus.MULTI30K_FILES = json.loads(Path(folder, "checksums.json").read_text(encoding="utf-8"))
    raise SystemExit(run(Path(folder, "two"), "--epochs", "2", "--beam", "1")[0])


def test_two_processes_train_what_one_does(multi30k, tmp_path):
    _, alone = run(tmp_path / "one", "--epochs", "2", "--beam", "1")
    (tmp_path / "checksums.json").write_text(json.dumps(corpus.MULTI30K_FILES), encoding="utf-8")
    script = "import sys, test_command; test_command.be_one_of_two(*sys.argv[1:])"
    paths = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    distributed.launch([sys.executable, "-c", script, str(tmp_path)], 2, environment={"PYTHONPATH": paths})
    found = json.loads((tmp_path / "two" / "scores.json").read_text(encoding="utf-8"))
    assert found["validation"] == pytest.approx(alone["validation"], abs=1e-3)
    assert found["steps"] == alone["steps"] and math.isfinite(found["best"]["loss"])
