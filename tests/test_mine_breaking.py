"""Each part of the model can be spoilt for a moment: what that does is what is said of it, and then all is whole."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

import transformer_lib as tl
from transformer_lib.course import exercises, mine
from transformer_lib.course.mine import Parts, UnknownWords, parts
from transformer_lib.course.mine.spoiling import SPOILINGS
from transformer_lib.course.mine.wrapping import counted, wrapped

pytestmark = pytest.mark.fast

OF_MODEL = [part.name for part in parts.PARTS if part.of_model]
KEYSTONES = {exercise.part: exercise.reference for exercise in exercises.all_exercises() if exercise.part}
RIVER = "The man saw the bank near the river."
UNNOTICED = {"padding_mask": 0, "masked_cross_entropy": 0, "stack_logits": 0}  # by translations of single sentences
SLIGHT = {"causal_mask": 1, "masked_attention": 1, "sinusoidal_table": 2}  # sentences of four that change


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def spoilt(name: str):
    library = Parts({})
    with wrapped(library, {name: SPOILINGS[name].wrap}):
        return getattr(library, name)


# What each spoiling does ---------------------------------------------------------------------------------------------


def test_there_is_one_for_every_part_of_the_model():
    assert list(SPOILINGS) == OF_MODEL


def test_the_parts_of_attention():
    scores, (query, key, value) = numbers(2, 5, 7), (numbers(2, 3, size, 5, seed=size) for size in (7, 11, 11))
    torch.testing.assert_close(spoilt("softmax")(scores).sum(-2), torch.ones(2, 7))
    torch.testing.assert_close(spoilt("similarity")(query, key), -torch.einsum("bhqd,bhkd->bhqk", query, key))
    mask = torch.ones(2, 3, 7, 11, dtype=torch.bool).tril()
    wanted = torch.where(mask, query @ key.mT, -math.inf).softmax(-1)
    torch.testing.assert_close(spoilt("masked_attention")(query, key, value, mask)[1], wanted)
    X, matrices = numbers(2, 7, 5), [numbers(5, 3, seed=seed) for seed in (1, 2, 3)]
    found = spoilt("project")(X, *matrices)
    for one, matrix in zip(found, [matrices[1], matrices[0], matrices[2]], strict=True):
        torch.testing.assert_close(one, X @ matrix)


def test_the_parts_around_it():
    ids, table = torch.tensor([[3, 0, 5]]), numbers(7, 5)
    torch.testing.assert_close(spoilt("embed")(ids, table), table[ids])
    assert spoilt("sinusoidal_table")(7, 6).shape == (7, 6) and not spoilt("sinusoidal_table")(7, 6).any()
    assert spoilt("causal_mask")(5).shape == (5, 5) and spoilt("causal_mask")(5).all()
    assert spoilt("padding_mask")(ids, 0).shape == (1, 1, 1, 3) and spoilt("padding_mask")(ids, 0).all()
    x, heads = numbers(2, 5, 6), numbers(2, 3, 5, 7)
    assert torch.equal(spoilt("split_heads")(x, 3), x[:, None])
    assert torch.equal(spoilt("merge_heads")(heads), torch.cat([heads[:, 2], heads[:, 1], heads[:, 0]], -1))
    assert torch.equal(spoilt("layer_norm")(x, torch.ones(6), torch.ones(6), 1e-5), x)
    W_1, b_1, W_2, b_2 = numbers(6, 11), numbers(11), numbers(11, 6, seed=1), numbers(6)
    torch.testing.assert_close(spoilt("feed_forward")(x, W_1, b_1, W_2, b_2), x @ (W_1 @ W_2) + b_1 @ W_2 + b_2)


def test_the_layers_and_the_model():
    x = numbers(2, 5, 7)
    scaled = [lambda y, by=by: by * y for by in (2.0, 3.0, 5.0, 7.0)]
    torch.testing.assert_close(spoilt("encoder_layer")(x, *scaled), 210 * x)
    steps = (lambda y: y, lambda q, k, v: k, lambda y: 0 * y, *[lambda y: y] * 3)
    torch.testing.assert_close(spoilt("decoder_layer")(x, numbers(2, 11, 7), *steps), 2 * x)
    src, tgt = torch.tensor([[3, 4, 0]]), torch.tensor([[1, 5]])
    seen = []
    functions = (lambda ids: ids + 10, lambda ids: ids, lambda x, mask: 0 * x, lambda y, memory, *masks: memory)
    masks = (lambda ids, pad_id: ids[:, None, None] != pad_id, lambda n: torch.ones(n, n).tril().bool())
    spoilt("ids_to_logits")(src, tgt, *functions, seen.append, *masks, 0)
    assert seen[0].tolist() == [[13, 14, 10]]


def test_the_parts_that_use_the_model():
    logits, labels = numbers(2, 5, 7), torch.tensor([[3, 4, 2, 0, 0], [5, 6, 1, 2, 0]])
    wanted = F.cross_entropy(logits.reshape(-1, 7), labels.reshape(-1))
    torch.testing.assert_close(spoilt("masked_cross_entropy")(logits, labels, 0), wanted)
    falling = lambda ids: torch.tensor([0.0, 1.0, 2.0, 4.0, 3.0])  # noqa: E731
    assert spoilt("greedy_loop")(falling, 1, 2, 3) == [1, 4, 4, 4]
    scores, following = torch.tensor([-9.0, 0.0, -math.inf]), torch.tensor([[-1.0, -5.0], [-2.0, -3.0], [-0.1, -0.1]])
    best, parents, tokens = spoilt("beam_step")(scores, following, 3)
    assert (best.tolist(), parents.tolist(), tokens.tolist()) == ([-1.0, -2.0, -3.0], [0, 1, 1], [0, 0, 1])
    seen = []
    spoilt("stack_logits")(torch.tensor([[3, 4, 0]]), torch.tensor([1]), id, lambda x, mask: seen.append(mask), id, 0)
    assert seen[0].expand(1, 1, 3, 3).tolist() == [[[[True, True, False]] * 3]]


# What a learner sees -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OF_MODEL)
def test_the_sentences_show_what_a_part_is_for(name):
    said = repr(mine.breaking(name))
    assert said.startswith(f"The library's {name} is broken for a moment: it {SPOILINGS[name].now}. (Yours is not")
    count = {**UNNOTICED, **SLIGHT}.get(name, 4)
    assert said.count("  broken  ") == 4 and said.count("  broken  the same\n") == 4 - count
    assert (f"{count} of 4 translations changed." if count else "Not one word changed! Why not?") in said
    assert (SPOILINGS[name].unnoticed in said) == (count < 4)


def test_what_a_translation_cannot_show_is_measured():
    assert "their logits move by up to 2.8." in repr(mine.breaking("padding_mask"))
    assert "some are no numbers any more (NaN)" in repr(mine.breaking("softmax"))
    said = repr(mine.breaking("masked_cross_entropy"))
    assert "The loss of a batch of them: 0.13 before, 1.94 broken." in said and "logits move" not in said
    assert "logits move" not in repr(mine.breaking("greedy_loop"))


def test_one_sees_the_whole_comparison():
    assert repr(mine.breaking("ids_to_logits", RIVER)) == (
        "The library's ids_to_logits is broken for a moment: it skips the encoder, so the decoder reads words that "
        "have not met. (Yours is not written yet.)\n\n"
        f"{RIVER}\n  before  Der Mann sah das Ufer beim Fluss.\n  broken  Der Mann sah die Bank neben dem Fluss.\n\n"
        "Read together in one padded batch, as in training, their logits move by up to 6.6.\n"
        "1 of 1 translations changed. It is whole again now."
    )
    html = mine.breaking("ids_to_logits", RIVER)._repr_mimebundle_()["text/html"]
    assert "<b>Der Mann sah die Bank neben dem Fluss.</b>" in html and "<caption>The library&#x27;s ids_to" in html
    assert "<b>" not in mine.breaking("padding_mask", RIVER)._repr_mimebundle_()["text/html"]


def test_in_a_block_the_translator_is_spoilt_and_whole_after_it():
    translator = tl.mine.assembled()
    whole = translator.translate([RIVER])
    with pytest.raises(KeyboardInterrupt), mine.breaking("decoder_layer", translator=translator) as broken:
        assert broken is translator and broken.translate([RIVER]) != whole
        assert broken.translate([RIVER]) == broken.translate(["The aunt found a bat."])  # it sees no English
        raise KeyboardInterrupt
    assert translator.translate([RIVER]) == whole and "decoder_layer" not in vars(translator.parts)


def test_the_learners_own_part_is_spoilt_and_their_file_is_not():
    for name in ("similarity", "embed"):
        mine.keep(name, KEYSTONES[name])
    file = mine.folder() / "my_transformer.py"
    before = file.read_bytes()
    said = repr(mine.breaking("embed"))
    assert said.startswith("Your embed is broken for a moment: it forgets to multiply by √d_model.\n")
    assert said.endswith("4 of 4 translations changed. It is whole again now, and your file was not touched.")
    assert file.read_bytes() == before


def attention(query, key, value, mask):
    weights = mine_softmax((query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -1e30))
    return weights @ value, weights


def mine_softmax(scores):
    return scores.softmax(-1)


def test_a_part_that_nothing_calls_cannot_show_what_it_is_for():
    mine.keep("softmax", mine_softmax)
    mine.keep("masked_attention", attention)
    said = repr(mine.breaking("softmax"))
    assert "Nothing changed, and nothing could. Your softmax was never called: your masked_attention " in said
    assert said.endswith("To let it run, open mine/my_transformer.py and write softmax(…) there.")
    file = mine.folder() / "my_transformer.py"
    file.write_text(file.read_text("utf-8").replace("weights = mine_softmax(", "weights = softmax("), "utf-8")
    assert "4 of 4 translations changed." in repr(mine.breaking("softmax"))
    with mine.breaking("softmax") as broken, counted(broken.parts) as calls:
        assert broken.translate([RIVER]) != ["Der Mann sah das Ufer beim Fluss."]
    assert calls["softmax"] == calls["masked_attention"] > 0


def only_two(x, n_heads):
    if n_heads == 1:
        raise RuntimeError("one head is no head")
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def test_a_spoilt_part_that_stops_is_said():
    mine.keep("split_heads", only_two)
    said = repr(mine.breaking("split_heads"))
    assert said.count("  broken  it stops with RuntimeError: one head is no head\n") == 4
    assert "some are no numbers" not in said and "4 of 4 translations changed." in said


def test_what_is_refused():
    with pytest.raises(ValueError, match=f"part must be one of {', '.join(OF_MODEL)}, got 'causal'"):
        mine.breaking("causal")
    with pytest.raises(ValueError, match="part must be one of .*, got 'rms_norm'"):
        mine.breaking("rms_norm")
    with pytest.raises(UnknownWords, match="has never met love"):
        mine.breaking("softmax", "The man love.")


# A fault of one's own ------------------------------------------------------------------------------------------------


def test_a_planted_fault_is_gone_after_the_block():
    translator = mine.assembled(parts=())
    src, tgt = torch.tensor([[5, 6, 7], [8, 9, 0]]), torch.tensor([[1, 5, 7, 2], [1, 6, 2, 0]])
    whole = translator.model.loss(src, tgt)
    with mine.planting("layer_norm", lambda part: lambda x, *rest: 2 * part(x, *rest), translator) as planted:
        assert planted is translator and planted.model.loss(src, tgt) != whole
    assert translator.model.loss(src, tgt) == whole
    with mine.planting("causal_mask", lambda part: lambda size: part(size) | True) as other:
        assert other is not translator and other.parts.causal_mask(3).all()


def test_a_fault_has_to_be_planted_in_a_part_of_the_model():
    for name, says in (("heart", "part must be one of"), ("adam_step", "part must be one of the model.s")):
        with pytest.raises(ValueError, match=says), mine.planting(name, lambda part: part):
            pass
