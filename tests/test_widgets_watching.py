"""A training run that is watched is the same run, and is drawn only where somebody looks."""

from __future__ import annotations

import pytest
import torch

import transformer_lib as tl
from transformer_lib.course.figures import widgets
from transformer_lib.course.figures.svg.training_run import draw_run
from transformer_lib.course.figures.widgets import watching

pytestmark = pytest.mark.fast


def trained(on_step_of):
    """Train a tiny translator; returns its losses, its last weights, and what watched it."""
    torch.manual_seed(0)
    pairs = tl.load_corpus("context")["train"][:64]
    words = [tl.WordTokenizer.from_texts(texts) for texts in zip(*((p.src, p.tgt) for p in pairs), strict=True)]
    sizes = {"src_vocab_size": len(words[0]), "tgt_vocab_size": len(words[1])}
    config = tl.TransformerConfig(**sizes, d_model=16, n_heads=2, n_layers=1, d_ff=32)
    translator = tl.Translator(tl.Transformer(config), *words)
    batches = translator.batches(pairs, batch_size=16)
    on_step = on_step_of(translator)
    history = tl.train(translator.model, batches, epochs=2, progress=False, on_step=on_step)
    return history.loss, translator.model.output_head.weight.detach().clone(), on_step


@pytest.fixture
def page(monkeypatch):
    """What a kernel's page shows, drawing by drawing."""
    shown = []

    class Handle:
        def update(self, data, *, raw):
            shown.append(data)

    def display(data, *, raw, display_id):
        shown.append(data)
        return Handle()

    monkeypatch.setattr(watching, "in_kernel", lambda: True)
    monkeypatch.setattr("IPython.display.display", display)
    return shown


def test_the_run_is_the_same_watched_or_not(page):
    losses, weights, _ = trained(lambda translator: None)
    sentence = tl.load_corpus("context")["train"][0].src
    watched, same, watch = trained(lambda translator: widgets.watch(translator, [sentence], last=8, every=1e-9))
    assert watched == losses
    assert torch.equal(weights, same)
    assert len(watch.losses) == len(page) == 8
    assert page[-1]["text/plain"].startswith("step 8 of 8: loss ")
    assert 'alt="The training loss of 8 steps, from ' in page[-1]["text/html"]


def test_it_draws_at_most_so_often_and_once_more_at_the_end(page):
    with pytest.raises(KeyboardInterrupt), widgets.watch(every=3600) as watch:
        for step in range(1, 6):
            watch(step, 1 / step)
        raise KeyboardInterrupt
    assert [data["text/plain"].split(":")[0] for data in page] == ["step 1", "step 5"]


def test_nothing_is_drawn_where_outputs_are_stored(page, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_COURSE_STATIC", "1")
    with widgets.watch() as watch:
        watch(1, 2.0)
    assert (page, watch.losses) == ([], [2.0])


def test_a_long_run_is_drawn_with_few_points_and_its_last():
    picture = draw_run([7 - step / 1000 for step in range(5000)], {"a b": "c d"}, last=6000)
    points = picture.svg.split('points="')[1].split('"')[0].split()
    assert len(points) <= 301
    assert picture.says == "step 5,000 of 6,000: loss 2.00"
    assert "→ c d" in picture.svg


def test_bad_arguments():
    with pytest.raises(ValueError, match="translator must be given where there are sentences to translate, got None"):
        widgets.watch(sentences=["The man saw the bank."])
    with pytest.raises(ValueError, match="text has the unknown word 'zeppelin'"):
        widgets.watch(tl.load_trained("context"), ["The man saw the zeppelin."])
    with pytest.raises(ValueError, match="every must be positive, got 0"):
        widgets.watch(every=0)
    with pytest.raises(ValueError, match="losses must hold at least one step, got none"):
        draw_run([], {})
