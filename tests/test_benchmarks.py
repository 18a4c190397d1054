"""The benchmarks run, do what they say, and the pages follow from the stored numbers. No time decides."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import sys
from dataclasses import replace

import pytest
import torch

import transformer_lib as tl
from benchmarks import __main__ as command
from benchmarks import candidates, deployed, gpu, held, measure, memory, real, run, shared, tricks
from benchmarks.peers import Missing, Ours, Peer, Torch, TorchReadingOnce
from benchmarks.work import BOS, EOS, FULL, PAD, QUICK, Given
from studies import speed
from transformer_lib._files import DATA

NESTED = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")


def shape_of(value: object) -> object:
    """Return what a JSON value is made of: keys, and kinds of numbers, without the numbers."""
    if isinstance(value, dict):
        return {key: shape_of(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape_of(part) for part in value]
    return float if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What the command writes with --quick."""
    threads = torch.get_num_threads()
    path = tmp_path_factory.mktemp("bench") / "bench.json"
    try:
        with torch.random.fork_rng(devices=[]):
            assert command.main(["--quick", "--results", str(path)]) == 0
    finally:
        torch.set_num_threads(threads)
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_quick_run_has_the_form_of_what_is_stored(quick):
    full = speed.load_results()
    assert list(quick) == list(full)
    for part in ("training", "decoding"):
        missing = {f"{name}: {reason}" for name, reason in quick[part]["missing"].items()}
        allowed = ("is not installed", "no option precision")
        assert all(any(words in reason for words in allowed) for reason in missing), missing
        stored = {row["name"]: shape_of(row) for row in full[part]["rows"]}
        found = {row["name"]: shape_of(row) for row in quick[part]["rows"]}
        assert {speed.BASELINE, speed.OURS} <= set(found)
        assert all(found[name] == stored[name] for name in set(found) & set(stored))
    for part in ("machine", "work", "memory"):
        assert list(quick[part]) == list(full[part])
    assert (quick["gpu"] is None) == (not torch.cuda.is_available())
    text = speed.report(quick)
    names = {row["name"] for part in ("training", "decoding") for row in quick[part]["rows"]}
    assert all(f"| {speed.shown(name)} |" in text for name in names)
    first = next(line for line in text.splitlines() if line.startswith(f"| {speed.BASELINE} |"))
    assert first.split(" | ")[1] == "1.00"


def test_what_is_stored_is_of_the_full_work():
    stored = speed.load_results()["work"]
    differing = {name for name, value in json.loads(json.dumps(FULL.__dict__)).items() if stored[name] != value}
    assert differing <= {"rounds"}


@pytest.mark.parametrize(("part", "names"), [("training", candidates.TRAINED), ("decoding", candidates.DECODING)])
def test_each_candidate_has_a_stored_row_or_a_reason(part, names):
    stored = speed.load_results()[part]
    assert {row["name"] for row in stored["rows"]} | set(stored["missing"]) == set(names)


def test_the_models_are_the_same_but_for_biases_and_norms():
    ours, theirs = Ours(QUICK).model, Torch(QUICK).model
    count = [sum(p.numel() for p in model.parameters()) for model in (ours, theirs)]
    attentions, width = 3 * QUICK.n_layers, QUICK.d_model
    assert count[1] - count[0] == attentions * 4 * width + 2 * 2 * width  # biases; two last norms
    for row in speed.load_results()["training"]["rows"]:
        paper = 3 * FULL.vocabulary * FULL.d_model
        assert abs(row["parameters"] - sum(p.numel() for p in tl.Transformer(FULL.config()).parameters())) < paper / 400


def test_the_paper_dropout_takes_the_other_dropout_away():
    stacks = [peer.model.transformer for peer in (Torch(QUICK), Torch(QUICK, as_paper=True))]
    assert [stack.decoder.layers[0].multihead_attn.dropout for stack in stacks] == [0.1, 0.0]
    assert [stack.encoder.layers[0].dropout.p for stack in stacks] == [0.1, 0.0]
    assert stacks[1].encoder.layers[0].dropout1.p == 0.1  # after the sub-layer: as the paper's


@NESTED
@pytest.mark.parametrize(
    ("build", "way"), [(Ours, "greedy"), (Torch, "recomputing"), (TorchReadingOnce, "greedy")], ids=lambda x: str(x)
)
def test_decoding_says_the_likeliest_words(build, way):
    torch.manual_seed(5)
    peer = build(QUICK)
    peer.model.eval()
    src = torch.randint(3, QUICK.vocabulary, (2, QUICK.length))
    ids = getattr(peer, way)(src, 5)
    with torch.no_grad():
        again = peer.model(src, ids[:, :-1]).argmax(-1)
    assert torch.equal(again, ids[:, 1:]) and not (ids[:, 1:] == EOS).any()


def test_work_has_padding_and_the_first_sentence_has_none():
    src, tgt = FULL.pair()
    assert src.shape == (32, 32) and tgt.shape == (32, 33) and (tgt[:, 0] == BOS).all()
    assert (src[0] != PAD).all() and (src[-1] != PAD).sum() == 32 - 31 // 2
    assert 0.2 < (src == PAD).double().mean() < 0.3
    assert not (src == EOS).any()


def test_given_batches_are_enough_for_training():
    model = tl.Transformer(QUICK.config())
    history = tl.train(model, Given([QUICK.pair()] * 3), progress=False)
    assert history.steps == [1, 2, 3]


def test_flops_are_those_of_the_costs():
    cost = tl.costs.transformer_cost(QUICK.config(), QUICK.length, QUICK.length)
    assert QUICK.flops() == 6 * QUICK.batch * cost.total


class Idle(Torch):
    def train(self, steps):
        return [math.log(QUICK.vocabulary)] * steps, [0.0] * steps


class Fast(Torch):
    def train(self, steps):
        return [0.1] * steps, [0.0] * steps


class Short(Ours):
    def greedy(self, src, new_tokens):
        return src.new_full((len(src), new_tokens), BOS)


class Absent(Peer):
    def __init__(self, work):
        raise Missing("it is not here")


def test_a_candidate_that_does_not_work_is_noticed():
    with pytest.raises(AssertionError, match="left some parameters as they were: .'src_embedding"):
        candidates.trained(Idle(QUICK))
    with pytest.raises(AssertionError, match="guesses among 97 words; its loss was 0.10"):
        candidates.trained(Fast(QUICK))
    with pytest.raises(AssertionError, match=r"expected bos and 5 tokens a sentence, got shape \(2, 5\)"):
        candidates.decoded(Short(QUICK), "greedy")


def test_a_missing_candidate_is_named_with_its_reason():
    entries = candidates.Entries()
    entries.add("absent", lambda: Absent(QUICK))
    assert entries.entries == {} and entries.missing == {"absent": "it is not here"}


def test_rounds_alternate():
    calls = []
    works = {name: lambda name=name: float(calls.append(name) or len(calls)) for name in "abc"}
    assert measure.interleaved(works, 3) == {"a": [1, 6, 7], "b": [2, 5, 8], "c": [3, 4, 9]}
    assert "".join(calls) == "abccbaabc"


def test_ratios_are_taken_round_by_round():
    assert measure.times_faster([2, 30, 8], [1, 10, 1]) == {"median": 3, "low": 2.2, "high": 7}
    assert measure.spread([5, 5, 5]) == {"median": 5, "low": 5, "high": 5}


def test_products_are_measured_as_operations_per_second():
    products = measure.products(QUICK)
    assert "32 × 16 × 97" in products and all(rate() > 0 for rate in products.values())


def test_peaks_grow_with_the_square_and_with_the_length():
    lengths = (512, 1024)
    grid, fused = ([memory.peak_bytes(length, way) for length in lengths] for way in memory.WAYS)
    assert grid[0] > 3 * tl.costs.score_bytes(512, 512, memory.N_HEADS)
    assert memory.growth(lengths, grid) > 1.8 and memory.growth(lengths, fused) < 1.2


def test_growth_leaves_out_what_did_not_fit():
    assert memory.growth((1, 2, 4), (3, 12, None)) == 2
    assert memory.growth((1, 2, 4, 8), (9, 2, 4, 8)) == 1  # over the last factor of four
    assert memory.growth((1, 2), (3, None)) is None


def test_tables_name_the_path_that_a_row_took():
    assert [speed.shown(name) for name in (speed.OURS, f"{speed.OURS}, beam", speed.READABLE, speed.PEER)] == [
        "transformer_lib, fast path",
        "transformer_lib, fast path, beam",
        "transformer_lib, readable path",
        "transformers MarianMT",
    ]
    results = copy.deepcopy(speed.load_results())
    results["training"]["missing"] = {speed.OURS: "why"}
    assert speed.report(results).endswith("\n\nNot measured: transformer_lib, fast path (why).")


def test_the_headline_has_both_paths():
    results = speed.load_results()
    said = speed.headline(results)
    for part in ("training", "decoding"):
        fast, readable = (f"{speed.ratios(results, part)[name][1]:.2f}" for name in (speed.OURS, speed.READABLE))
        assert re.search(rf'path="fast"\)?` (?:is )?\*\*{fast}\*\* times (?:as fast )?\({readable} without', said)


def test_the_gpu_part_says_when_it_is_left_out(monkeypatch):
    said = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.measured(said.append) is None and len(said) == 1


def test_the_machine_is_described():
    found = run.machine()
    assert found["processor"] and found["versions"]["torch"] == torch.__version__
    assert run.version("no-such-package") is None


@pytest.mark.parametrize("wrong", [["--quick", "--store"], ["--rounds", "1"], ["--tables", "--quick"]])
def test_wrong_options_are_refused(wrong, capsys):
    with pytest.raises(SystemExit):
        command.main(wrong)
    assert "error: " in capsys.readouterr().err


def test_the_gpu_table_and_missing_lengths_are_written():
    results = copy.deepcopy(speed.load_results())
    ratio = {"median": 2.0, "low": 1.5, "high": 2.5}
    row = {"name": "x", "ratio": ratio, "tokens_per_second": 12345, "utilisation": 0.456}
    results["gpu"] = {"device": "a GPU", "best_teraflops": 7.0, "rows": [row]}
    results["memory"]["grid"] = {"peak_bytes": [2**20, None], "exponent": None}
    text = speed.report(results)
    assert "| training step on a GPU |" in text and "| x | **2.00** (1.50–2.50) | 12,345 | 46 % |" in text
    assert "| with the grid of weights | 1 | — | — |" in text


def test_ratios_are_read_by_part():
    results = speed.load_results()
    row = results["decoding"]["rows"][1]["ratio"]
    assert list(speed.ratios(results, "decoding").values())[1] == (row["low"], row["median"], row["high"])
    with pytest.raises(ValueError, match="part must be 'training' or 'decoding', got 'memory'"):
        speed.ratios(results, "memory")


@pytest.mark.slow
def test_every_trick_can_be_taken_out_alone_and_changes_no_number():
    """The table's columns are there, and without a trick the loss and the decoded ids are the same."""
    work = replace(QUICK, dropout=0.0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        peer = Ours(work)
        src, tgt = work.pair()
        wanted = tl.TrainingLoss(peer.model, path="fast")(src, tgt)
        ids = peer.greedy(work.source(), work.new_tokens)
        for patches in tricks.TRAINING.values():
            with tricks.without(patches):
                torch.testing.assert_close(tl.TrainingLoss(peer.model, path="fast")(src, tgt), wanted)
        for patches in tricks.DECODING.values():
            with tricks.without(patches):
                assert torch.equal(peer.greedy(work.source(), work.new_tokens), ids)


def test_rows_may_be_any_number_without_that_trick():
    peer = Ours(QUICK)
    src, tgt = QUICK.pair()
    losses, multiples = [], []
    for patches in ([], *tricks.ROWS.values()):
        with tricks.without(patches), torch.autocast("cpu", torch.bfloat16):
            multiples.append({part.row_multiple(src.device) for part in (tricks.forward, tricks.head_loss)})
            losses.append(tl.TrainingLoss(peer.model.eval(), path="fast")(src, tgt))
    assert multiples == [{32}, {1}]
    torch.testing.assert_close(losses[0], losses[1], rtol=2**-8, atol=0)  # bfloat16 has eight significant bits


def test_batches_of_many_lengths_differ_and_recur():
    (src, tgt), (other, _) = (FULL.other_pair(number) for number in (3, 4))
    assert (src != 0).sum() != (other != 0).sum() and torch.equal(FULL.other_pair(3)[0], src)
    assert (tgt[:, 0] == 1).all() and tgt.shape == (FULL.batch, FULL.length + 1)
    assert all((ids[:, :2] != 0).all() and (ids[:, -1] == 0).all() for ids in (src, tgt))
    counts = {int((FULL.other_pair(number)[0] != 0).sum()) for number in range(11)}
    assert len(counts) > 8 and max(counts) - min(counts) > 64  # so that few recur without rounding
    peer = tricks.Varied(QUICK)
    assert not torch.equal(*(peer.batches(1).pairs[0][0] for _ in range(2)))


def test_the_table_of_the_tricks_has_a_row_for_each():
    results = speed.stored.read(speed.TRICKS)
    assert set(results["work"]["training, float32"]) == {*tricks.TRAINING, tricks.READABLE}
    assert set(results["work"]["training, bfloat16, batches of many lengths"]) == {*tricks.ROWS, tricks.READABLE}
    assert set(results["work"]["decoding, greedy"]) == {*tricks.DECODING, tricks.READABLE}
    text = speed.tricks_report(results)
    assert all(f"| {name} |" in text for name in (*tricks.TRAINING, *tricks.ROWS, *tricks.DECODING, tricks.READABLE))


@pytest.mark.slow
def test_beside_the_engine_the_same_weights_say_the_same_words(tmp_path):
    pytest.importorskip("ctranslate2")
    deployed.export(QUICK, tmp_path)
    said = {}
    for name in (speed.ENGINE, speed.ENGINE_ALONE, speed.ENGINE_SHARED, speed.OURS, speed.READABLE):
        with deployed.worker(QUICK, name, tmp_path) as requests:
            for way in ("greedy", "beam"):
                requests.send((way, QUICK.decode_batch))
                seconds, said[name, way] = requests.recv()
                assert seconds > 0
    for (_, way), found in said.items():
        assert found == said[speed.READABLE, way]
        assert [len(row) for row in found] == [QUICK.new_tokens] * QUICK.decode_batch


def test_the_table_beside_the_engine_has_a_row_for_each():
    results = speed.stored.read(speed.DEPLOYED)
    assert [*results["decoding"]] == [deployed.name_of(*work) for work in deployed.WORKS]
    for rows in results["decoding"].values():
        assert [*rows] == [*deployed.NAMES]
        engine = [rows[name] for name in (speed.ENGINE, speed.ENGINE_ALONE)]
        seconds = [row["seconds"]["median"] for row in engine]
        assert engine[seconds.index(min(seconds))]["ratio"] == {"median": 1, "low": 1, "high": 1}
        assert rows[speed.OURS]["same"] == rows[speed.OURS]["sentences"]
    page = (DATA.parent / "docs" / "speed.md").read_text(encoding="utf-8")
    assert speed.deployed_report(results) in page


def on(processor, number):
    return {"machine": {"processor": processor}, "number": number}


def test_what_another_processor_has_measured_is_kept(tmp_path):
    path, elsewhere = tmp_path / "bench.json", tmp_path / "elsewhere.json"
    elsewhere.write_text("{}")
    first, second, third = ({name: {"bench": on(name, n)}} for name, n in (("A", 1), ("B", 2), ("A", 3)))
    states = [{}, {}, first, second, second | third]
    for number, (processor, state) in enumerate(zip("AABAC", states, strict=True)):
        speed.store(path, on(processor, number), elsewhere)
        assert speed.stored.read(path) == on(processor, number)
        assert speed.stored.read(elsewhere) == state
    for number, processor in enumerate("ABAB"):
        speed.store(tmp_path / "deployed.json", on(processor, number), elsewhere)
        speed.store(tmp_path / "tricks.json", on(processor, number), elsewhere)  # shown of one processor alone
    assert speed.stored.read(elsewhere)["A"] == {"bench": on("A", 3), "deployed": on("A", 2)}


def test_the_page_shows_what_other_processors_have_measured():
    kept = speed.stored.read(speed.ELSEWHERE)
    page = (DATA.parent / "docs" / "speed.md").read_text(encoding="utf-8")
    assert kept and speed.elsewhere_report(kept) in page
    assert speed.load_results()["machine"]["processor"] not in kept
    for processor, found in kept.items():
        assert found and set(found) <= set(speed.KEPT) and f": {processor}, " in speed.elsewhere_report(kept)
        if "bench" in found:
            ratio = speed.ratios(found["bench"], "training")[speed.OURS][1]
            assert f"a training step is **{ratio:.2f}**" in speed.elsewhere_report(kept)


@pytest.mark.slow
def test_learners_train_at_the_same_time():
    assert all(steps >= 1 for steps in shared.together(2, 1, seconds=0.5))


def test_the_table_of_several_learners_has_each_number_of_them():
    results = speed.stored.read(speed.SHARED)
    pairs = [(row["learners"], row["threads"]) for row in results["rows"]]
    assert pairs == [(n, threads) for n in shared.LEARNERS for threads in shared.THREADS]
    page = (DATA.parent / "docs" / "speed.md").read_text(encoding="utf-8")
    assert speed.shared_report(results) in page


@pytest.mark.slow
def test_a_held_process_has_older_instructions_and_this_one_keeps_its_own(monkeypatch):
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    with held.environment(held.HELD):
        assert os.environ["ATEN_CPU_CAPABILITY"] == "avx2" and "ONEDNN_MAX_CPU_ISA" in os.environ
    assert os.environ["ATEN_CPU_CAPABILITY"] == "default" and "ONEDNN_MAX_CPU_ISA" not in os.environ
    found = held.measured(QUICK, lambda text: None)
    assert found["machine"]["instructions"] in ("AVX2", "DEFAULT", "NEON")  # of processors without AVX2, their own
    assert {row["name"] for row in found["decoding"]["rows"]} >= {speed.BASELINE, speed.OURS}


def test_the_table_of_the_held_processor_has_a_row_for_each():
    results = speed.stored.read(speed.HELD)
    assert results["machine"]["instructions"] == "AVX2"
    for part, names in (("training", candidates.TRAINED), ("decoding", candidates.DECODING)):
        assert {row["name"] for row in results[part]["rows"]} == set(names)
    text = speed.held_report(results)
    assert all(f"| {speed.shown(name)} |" in text for name in (*candidates.TRAINED, *candidates.DECODING))
    assert text in (DATA.parent / "docs" / "speed.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def real_results(tmp_path_factory):
    """What the command says of a tiny model, in the format in which a real one comes."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("real")
    sizes = {"hidden_size": 52, "intermediate_size": 68, "num_hidden_layers": 2, "vocab_size": 257}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 14, "tie_word_embeddings": True}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes, **heads, eos_token_id=None)).save_pretrained(
            folder
        )
    threads = torch.get_num_threads()
    try:
        yield real.measured(folder, real.TRIED)
    finally:
        torch.set_num_threads(threads)


def test_every_way_to_run_a_real_model_says_its_words(real_results):
    for rows in real_results["decoding"].values():
        same = {row["name"]: row["same"] for row in rows}
        assert [same[f"{name}, float32"] for name in (real.REAL_PEER, real.READABLE, real.FAST)] == [1, 1, 1]
        assert {*same, *real_results["missing"]} == {*real.NAMES}


def test_the_limit_of_a_real_model_is_the_bytes_that_it_reads(real_results):
    weights = 2 * (52 * 14 * (4 + 2 + 2) + 4 * 14 * 52 + 3 * 52 * 68) + 257 * 52
    for batch, rows in real_results["decoding"].items():
        read = {row["name"]: row["bytes_read"] for row in rows}
        assert read[f"{real.FAST}, float32"] == 4 * weights and read[f"{real.FAST}, bfloat16"] == 2 * weights
        limit = int(batch) * real_results["machine"]["gigabytes_a_second"] * 1e9 / (4 * weights)
        assert f"| {limit:.0f} |" in speed.real_report(real_results)


def test_without_transformers_and_products_in_eight_bits_the_reasons_are_said(real_results, monkeypatch, tmp_path):
    monkeypatch.setattr(real, "has_int8", lambda: False)
    monkeypatch.setattr(real.util, "find_spec", lambda name: None)
    monkeypatch.setattr(tl.interop, "load_hf", lambda folder: tl.modern.LanguageModel(tl.modern.Config(**TINY)))
    ways, missing = real.ways_of(tmp_path)
    assert {*ways, *missing, real.LLAMA} == {*real.NAMES} and len(missing) == 3
    report = speed.real_report(real_results | {"missing": missing})
    assert f"Not measured: {real.REAL_PEER}, float32 (transformers is not installed)" in report


ANOTHER = """
class Llama:
    def __init__(self, path, **options):
        self.threads = options["n_threads"]

    def reset(self):
        self.seen = []

    def eval(self, ids):
        self.seen += ids

    def sample(self, temp):
        return sum(self.seen) + self.threads
"""


def test_the_worker_of_another_environment_says_words_after_its_own(monkeypatch, tmp_path):
    (tmp_path / "llama_cpp.py").write_text(ANOTHER, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    worker = real.llama_worker(sys.executable, tmp_path / "no.gguf")
    try:
        for _ in range(2):  # the second begins anew
            assert real.llama_says(worker, 7, torch.tensor([[2, 3]]), 3).tolist() == [[12, 24, 48]]
    finally:
        worker.stdin.close()
        worker.wait()
        worker.stdout.close()
    with pytest.raises(ValueError, match="closed"):
        real.llama_says(worker, 7, torch.tensor([[2, 3]]), 3)


TINY = {"vocab_size": 257, "d_model": 12, "n_heads": 2, "n_layers": 1, "d_ff": 17}
