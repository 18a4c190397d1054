"""The ladder's models: what each may read, what it adds to the one before; its runs, and what is stored of them."""

from __future__ import annotations

import json

import pytest
import torch

from factories import make_config, random_ids, randomise
from read_once import CORPUS
from studies import ladder as study
from studies.ladder_models import Reader
from transformer_lib._files import DATA
from transformer_lib.course.lab import ladder as study_lab
from transformer_lib.course.lab.ladder_models import PARTS, read_evenly, start_quietly, step_softly
from transformer_lib.data.corpora import Corpus
from transformer_lib.fast.eligibility import fastest_path
from transformer_lib.model.transformer import Transformer

SRC, TGT = random_ids(23, 5, 7), random_ids(29, 5, 11, seed=1)
BUILT = (*study.TRAINED, *study.SWEPT_ONCE)
READERS = [name for name in BUILT if study_lab.find(name).parts is not None]
LATER = [name for name in BUILT if name not in READERS]
SEES_EARLIER = [name for name in READERS if "mask" in study_lab.find(name).parts] + LATER


@pytest.fixture
def tiny() -> Corpus:
    few = CORPUS["train"][:64]
    return Corpus("context", {"train": few, "validation": few[:9]})


STORED = study_lab.load_results()


def make_rung(name: str) -> torch.nn.Module:
    """A small model of a rung, with no parameter left at a special value, but what is not learned."""
    rung = study_lab.find(name)
    torch.manual_seed(3)
    config = make_config(n_layers=rung.n_layers)
    model = Transformer(config) if rung.parts is None else Reader(config, rung.parts)
    rung.change(model)
    return randomise(model).eval()


def changed(ids: torch.Tensor, position: int) -> torch.Tensor:
    """The ids with another token at one position."""
    other = ids.clone()
    other[:, position] = (ids[:, position] - 2) % 20 + 3
    assert (other != ids).sum() == len(ids)
    return other


def moved(model: torch.nn.Module, src: torch.Tensor, tgt: torch.Tensor) -> list[bool]:
    """For each target position, whether its logits differ from those for SRC and TGT."""
    differences = (model(src, tgt) - model(SRC, TGT)).detach().abs().amax(dim=(0, 2))
    return [bool(difference > 1e-4) for difference in differences]


@pytest.mark.parametrize("name", BUILT)
def test_no_rung_reads_the_future_and_only_some_the_past(name):
    found = moved(make_rung(name), SRC, changed(TGT, 4))
    reads_on = name in SEES_EARLIER
    assert found == [False] * 4 + [True] + [reads_on] * 6


@pytest.mark.parametrize("name", BUILT)
def test_every_rung_reads_the_source_and_no_padding(name):
    model = make_rung(name)
    assert all(moved(model, changed(SRC, 2), TGT))
    padded_src, padded_tgt = torch.nn.functional.pad(SRC, (0, 2)), torch.nn.functional.pad(TGT, (0, 3))
    torch.testing.assert_close(model(padded_src, padded_tgt)[:, :11], model(SRC, TGT))


@pytest.mark.parametrize("name", BUILT)
def test_only_positions_tell_the_order_of_the_source(name):
    knows_order = name in LATER or "positions" in study_lab.find(name).parts
    turned = moved(make_rung(name), SRC.flip(1), TGT)
    assert turned == [knows_order] * 11


def test_each_rung_has_the_parts_of_the_one_before_and_one_more():
    parts = [rung.parts for rung in study_lab.RUNGS if rung.parts is not None]
    assert parts == [PARTS[:count] for count in range(len(PARTS) + 1)]
    ids = [rung.id for rung in (study_lab.DICTIONARY, *study_lab.RUNGS)]
    assert ids == [f"{number:02}" for number in range(1, 15)]


def test_attention_without_weights_by_hand():
    model = make_rung("02")
    words, asked = model.src_embedding(SRC) * 30**0.5, model.tgt_embedding(TGT) * 30**0.5
    read = (asked @ words.transpose(1, 2)).softmax(dim=-1) @ words
    torch.testing.assert_close(model(SRC, TGT), torch.cat((asked, read), dim=-1) @ model.output_head.weight.T)
    read_evenly(model)
    read = words.mean(dim=1, keepdim=True).expand(-1, 11, -1)
    torch.testing.assert_close(model(SRC, TGT), torch.cat((asked, read), dim=-1) @ model.output_head.weight.T)


def test_the_division_by_root_d_k_shortens_the_scores():
    plain, scaled = make_rung("03"), make_rung("04")
    torch.testing.assert_close(plain.state_dict(), scaled.state_dict())
    assert (plain(SRC, TGT) - scaled(SRC, TGT)).abs().max() > 0.01
    with torch.no_grad():
        scaled.attention.w_q.weight *= 30**0.5
    torch.testing.assert_close(plain(SRC, TGT), scaled(SRC, TGT))


def test_a_quiet_start_has_the_first_scores_of_the_division_and_small_steps_those_without_it():
    def first(change):
        torch.manual_seed(3)
        model = Reader(make_config(n_layers=1), PARTS[:1])
        change(model)
        return model

    torch.manual_seed(3)
    divided = Reader(make_config(n_layers=1), PARTS[:2])
    quiet, soft, plain = first(start_quietly), first(step_softly), first(lambda model: None)
    torch.testing.assert_close(quiet(SRC, TGT), divided(SRC, TGT))
    torch.testing.assert_close(soft(SRC, TGT), plain(SRC, TGT))
    steps = {name: [_moved_by_a_step(model, name) for model in (plain, quiet, soft)] for name in ("w_q", "w_k")}
    ratios = {name: [move / moves[0] for move in moves] for name, moves in steps.items()}
    assert ratios["w_q"] == pytest.approx([1, 1, 30**-0.5], rel=1e-3)
    assert ratios["w_k"] == pytest.approx([1, 30**-0.5, 30**-0.5], rel=1e-3)  # of which a quiet W_Q sees to itself


def _moved_by_a_step(model: torch.nn.Module, matrix: str) -> float:
    """How far scores move if every entry of a matrix of the attention grows by 0.01."""
    head, x = model.attention, torch.randn(5, 7, 30, generator=torch.Generator().manual_seed(1))

    def scores() -> torch.Tensor:
        return head.length * head.w_q(x) @ head.w_k(x).mT

    before = scores()
    with torch.no_grad():
        getattr(head, matrix).weight += 0.01
        moved = (scores() - before).norm().item()
        getattr(head, matrix).weight -= 0.01
    return moved


def test_the_block_is_attention_and_feed_forward_each_with_its_sum_and_norm():
    model = make_rung("09")
    x = model.position(model.tgt_embedding(TGT) * 30**0.5)
    words = model.position(model.src_embedding(SRC) * 30**0.5)
    rows = []
    for t in range(11):  # position t may read all source words, and the target up to itself
        may_read = torch.cat((words, x[:, : t + 1]), dim=1)
        rows.append(model.attention(x[:, t : t + 1], may_read, may_read))
    x = model.attention_residual.norm(x + torch.cat(rows, dim=1))
    x = model.feed_forward_residual.norm(x + model.feed_forward(x))
    torch.testing.assert_close(model(SRC, TGT), model.output_head(x))


def test_the_encoder_comes_before_the_reading():
    with_encoder, without = make_rung("10"), make_rung("09")
    without.load_state_dict(with_encoder.state_dict(), strict=False)
    src = with_encoder.encode(SRC)
    torch.testing.assert_close(src, with_encoder.encoder(without.encode(SRC)))
    torch.testing.assert_close(with_encoder(SRC, TGT), without.decode(TGT, src, SRC))


def test_without_residuals_and_norms_a_layer_is_its_sub_layers():
    model = make_rung("11 without 09")
    layer, x = model.encoder.layers[0], torch.randn(5, 7, 30)
    torch.testing.assert_close(layer(x), layer.feed_forward(layer.self_attention(x, x, x)))


def test_the_course_s_transformer_begins_at_rung_11(tiny):
    paths = {name: fastest_path(study.new_translator(tiny, name, 0).model) for name in study.TRAINED}
    assert [name for name, path in paths.items() if path == "fast"] == ["11", "12", "13"]


@pytest.mark.parametrize(("name", "learned"), [("02", False), ("04", False), ("05", True), ("09", True)])
def test_word_vectors_are_learned_from_rung_05_on(tiny, name, learned):
    before, translator = (study.new_translator(tiny, name, 1) for _ in range(2))
    study.climb(translator, name, tiny["train"], 1, learning_rate=1e-3)
    tables = [(each.model.src_embedding.weight, each.model.tgt_embedding.weight) for each in (before, translator)]
    assert [torch.equal(old, new) for old, new in zip(*tables, strict=True)] == [not learned] * 2
    assert not torch.equal(before.model.output_head.weight, translator.model.output_head.weight)


def test_the_senses_of_nouns_and_of_it_are_scored_apart():
    pairs = [next(pair for pair in CORPUS["validation"] if (pair.word == "it") == of_it) for of_it in (False, True)]

    def translate(texts: list[str]) -> list[str]:
        assert texts == [pair.src for pair in pairs]
        return [pairs[0].contrast[0], pairs[1].tgt]

    assert study.scores_of(translate, pairs) == {"exact match": 0.5, "nouns": 0.0, "it": 1.0}
    assert [study.chance([pair], kind) for pair, kind in zip(pairs, study_lab.KINDS, strict=True)] == [
        round(1 / (1 + len(pair.contrast)), 4) for pair in pairs
    ]


def test_a_run_measures_the_model_as_it_is_after_each_budget(tiny, monkeypatch):
    monkeypatch.setattr(study, "PASSES", (1, 2))
    outcome = study.run_seed(tiny, "06", 5, learning_rate=1e-3)["06"]
    for passes in (1, 2):
        translator = study.new_translator(tiny, "06", 5)
        study.climb(translator, "06", tiny["train"], 5, learning_rate=1e-3, epochs=passes)
        assert outcome["scores"][str(passes)] == study.measure(translator, tiny["validation"])
        assert outcome["curves"]["2"][str(passes)] == outcome["scores"][str(passes)]["loss"]


def test_a_schedule_that_ends_is_run_once_for_each_budget_and_its_translator_decoded_twice(tiny, monkeypatch):
    monkeypatch.setattr(study, "PASSES", (1, 2))
    outcome = study.run_seed(tiny, "13", 5, warmup_steps=1)
    assert list(outcome) == ["13", "14"]
    translator = study.new_translator(tiny, "13", 5)
    study.climb(translator, "13", tiny["train"], 5, epochs=1, warmup_steps=1)
    for name, beam_size in (("13", 1), ("14", 4)):
        assert list(outcome[name]["curves"]) == list(outcome[name]["scores"]) == ["1", "2"]
        scores = study.measure(translator, tiny["validation"], beam_size=beam_size)
        assert outcome[name]["scores"]["1"] == scores


def test_the_rate_is_that_of_the_lowest_loss_after_the_longer_runs():
    sweep = {"1": {"0.001": 2.0, "0.003": 1.0, "0.01": None}, "4": {"0.003": 0.9, "0.001": 0.8}}
    assert study.chosen_rate({"sweep": {"04": sweep}}, "04") == 0.001
    assert study.chosen_rate({}, "13") == study_lab.RECIPE["learning_rate"]


def test_a_sweep_goes_on_where_the_highest_rate_is_the_best_and_this_and_the_next_lower_are_run_longer(tiny):
    asked, sweep, loss = [], study.sweep(tiny, "04"), None
    with pytest.raises(StopIteration) as end:
        while True:
            step = sweep.send(loss)
            corpus, name, rate, passes, seed = step.given
            assert (corpus, name, step.where) == (tiny, "04", ("sweep", "04", str(passes), f"{rate:g}"))
            asked.append((rate, passes, seed))
            loss = None if rate > 0.05 else 1 - rate
    first = [(rate, 1, 100) for rate in (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)]
    assert asked == [*first, (1e-2, 4, 0), (3e-2, 4, 0)]
    assert end.value.value == 3e-2


def test_the_command_goes_on_where_it_stopped(tiny, tmp_path, monkeypatch, capsys):
    path = tmp_path / "ladder.json"
    study._last_seed.cache_clear()
    monkeypatch.setattr(study, "load_corpus", lambda name: tiny)
    monkeypatch.setattr(study, "TRAINED", ("02", "13"))
    monkeypatch.setattr(study, "SWEPT_ONCE", ("11 without 09",))
    monkeypatch.setattr(study, "PASSES", (1, 2))
    monkeypatch.setattr(study, "RATES", (1e-3, 3e-3))
    monkeypatch.setattr(study, "HIGHER", ())
    for seeds in (["7"], ["7", "11"]):
        study.STUDY.main(["--seeds", *seeds, "--results", str(path)])
    content = json.loads(path.read_text(encoding="utf-8"))
    assert {name: [run["seed"] for run in runs] for name, runs in content["runs"].items()} == {
        name: [7, 11] for name in ("02", "13", "14")
    }
    for name, runs in content["runs"].items():
        assert all(run["rate"] == study.chosen_rate(content, study_lab.find(name).trained_as or name) for run in runs)
    assert list(content["sweep"]) == ["02", "11 without 09"]
    assert list(content["order"]["11 without 09"]) == ["7", "11"] and list(content["sweep"]["11 without 09"]) == ["1"]
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == len(set(printed)) == 3 + 3 + 6 + 2 * 4  # constants, short runs, rates, runs: nothing twice


def test_the_page_has_the_shares_after_each_budget():
    page = (DATA / "README.md").read_text(encoding="utf-8")
    assert study.passes_table(STORED) in page


def test_no_rate_was_chosen_at_the_edge_of_the_sweep():
    for name, sweeps in STORED["sweep"].items():
        tried = sorted(map(float, sweeps["1"]))
        assert tried[0] < study.chosen_rate(STORED, name) < tried[-1], name


def test_a_rung_can_be_run_for_a_few_steps(capsys):
    translator = study.run_rung("06", steps=30)
    few = CORPUS["validation"][::40]
    assert (
        study.measure(translator, few)["loss"] < study.measure(study.new_translator(CORPUS, "06", 0), few)["loss"] - 1
    )
    assert all(translator.translate([pair.src for pair in few[:3]]))
    with pytest.raises(ValueError, match="steps must be at most 711, one pass over the corpus, got 712"):
        study.run_rung("06", steps=712)
    with pytest.raises(ValueError, match="name must be one of"):
        study.run_rung("01")
