"""What a learner sees of their parts at work: which of them run, why one does not, and what nobody can translate."""

from __future__ import annotations

import re

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

import transformer_lib as tl
from transformer_lib.course import exercises, mine
from transformer_lib.course.mine import UnknownWords, account, parts, running
from transformer_lib.course.mine.wrapping import counted

pytestmark = pytest.mark.fast

RIVER, MONEY = (f"The man saw the bank near the {cue}." for cue in ("river", "money"))
KEYSTONES = {exercise.part: exercise.reference for exercise in exercises.all_exercises() if exercise.part}


def softmax(scores):
    powers = (scores - scores.amax(-1, keepdim=True)).exp()
    return powers / powers.sum(-1, keepdim=True)


def with_torchs(query, key, value, mask):
    scores = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -1e30)
    weights = torch.softmax(scores, -1)
    return weights @ value, weights


def with_a_method(query, key, value, mask):
    weights = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -1e30).softmax(-1)
    return weights @ value, weights


def with_a_copy(query, key, value, mask):
    weights = softmax((query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -1e30))
    return weights @ value, weights


def by_itself(query, key, value, mask):
    powers = (query @ key.mT / query.shape[-1] ** 0.5).masked_fill(~mask, -1e30).exp()
    weights = powers / powers.sum(-1, keepdim=True)
    return weights @ value, weights


def stopping(scores):
    print("I am here")
    return scores.sofmax(-1)


@pytest.fixture
def file():
    return mine.folder() / "my_transformer.py"


def keep_all(notebook: int = 22) -> None:
    for part in parts.PARTS:
        if part.of_model and int(part.notebook) <= notebook:
            assert mine.keep(part.name, KEYSTONES[part.name])


def notes() -> list[str]:
    return repr(mine.map()).splitlines()[20:]


# The map -------------------------------------------------------------------------------------------------------------


def test_nothing_of_the_learners_runs_nothing(monkeypatch):
    monkeypatch.setattr(running, "counted", None)
    assert notes() == [
        "None of it is yours yet. Pass the exercise of any part, softmax in notebook 01 for example, and it moves in "
        "here."
    ]


def test_every_part_is_counted_where_it_has_its_work(file):
    keep_all()
    lines = repr(mine.map()).splitlines()
    said = {
        line.split()[-1 - len(part.task.split())]: line for part, line in zip(mine_parts(), lines[1:], strict=False)
    }
    assert "✓ yours, ran 54 times " in said["masked_attention"] and "✓ yours, ran once " in said["greedy_loop"]
    assert "✓ yours, ran once for a loss" in said["masked_cross_entropy"]
    assert "✓ yours, ran once in a single stack" in said["stack_logits"]
    assert "times in beam search" in said["beam_step"]
    with counted((translator := mine.assembled()).parts) as calls:
        translator.translate([running.SENTENCE])
    for part in mine_parts():
        if calls[part.name] > 1:
            assert f"ran {calls[part.name]} times" in said[part.name]


def mine_parts():
    return [part for part in parts.PARTS if part.of_model]


@pytest.mark.parametrize(
    ("attention", "instead"),
    [
        (with_torchs, "calls torch.softmax(…) instead"),
        (with_a_method, "calls … .softmax(…) instead"),
        (with_a_copy, "calls softmax_04(…) instead, a copy of its own"),
        (by_itself, "does that work itself, in its own lines"),
    ],
)
def test_a_part_that_is_never_called_is_said_with_what_to_do(file, attention, instead):
    mine.keep("softmax", softmax)
    mine.keep("masked_attention", attention)
    assert "✓ yours, never called 01  softmax" in repr(mine.map())
    assert notes()[1:] == [
        f"Your softmax was never called: your masked_attention {instead}. To let it run, open mine/my_transformer.py "
        "and write softmax(…) there."
    ]


def test_doing_what_is_said_lets_it_run(file):
    mine.keep("softmax", softmax)
    mine.keep("masked_attention", with_a_copy)
    file.write_text(file.read_text("utf-8").replace("weights = softmax_04(", "weights = softmax("), "utf-8")
    assert "✓ yours, ran 54 times 01  softmax" in repr(mine.map())


def test_a_function_that_calls_itself_counts_once(file):
    mine.keep("softmax", rows_alone)
    assert "✓ yours, ran 54 times 01  softmax" in repr(mine.map())


def rows_alone(scores):
    if scores.dim() > 1:
        return torch.stack([rows_alone(row) for row in scores])
    return scores.softmax(-1)


def ids_to_logits(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, pad_id):
    src_mask, n = (src != pad_id)[:, None, None], tgt_in.shape[1]
    tgt_mask = (tgt_in != pad_id)[:, None, None] & torch.ones(n, n).tril().bool()
    return head(decoder(embed_tgt(tgt_in), encoder(embed_src(src), src_mask), tgt_mask, src_mask))


def test_masks_that_are_given_run(file):
    keep_all(12)
    shown = repr(mine.map())
    assert "✓ yours, ran 9 times" in shown and "mask was never called" not in shown
    assert re.search(r"ran 18 times +07  padding_mask", shown)


def test_an_older_part_without_masks_runs_and_says_that_it_makes_them_itself(file):
    keep_all(12)
    mine.keep("ids_to_logits", ids_to_logits)
    assert mine.assembled().translate([RIVER]) == ["Der Mann sah das Ufer beim Fluss."]
    silent = [note for note in notes() if "never called" in note]
    assert any(note.startswith("Your causal_mask was never called: your ids_to_logits does") for note in silent)
    bundle = mine.map()._repr_mimebundle_()
    assert "Your causal_mask was never called" in bundle["text/html"]


def test_a_file_that_stops_is_said_with_its_line(file, capsys):
    mine.keep("softmax", stopping)
    assert "✓ yours         01  softmax" in repr(mine.map())
    line = file.read_text("utf-8").splitlines().index("    return scores.sofmax(-1)") + 1
    said = notes()
    assert said[0].startswith(
        f"Nothing could be counted, since it stops in line {line} of mine/my_transformer.py with "
    )
    assert "sofmax" in said[0] and said[1].startswith("Mend the file, or take a part out of it with tl.mine.reset(")
    assert capsys.readouterr().out == ""
    file.write_text(file.read_text("utf-8") + "\n1 / 0\n", "utf-8")
    assert "ZeroDivisionError" in notes()[0]


def test_counting_leaves_everything_as_it_was(file):
    keep_all(12)
    translator = mine.assembled()
    before, space = dict(vars(translator.parts)), translator.parts.softmax.__globals__
    own = dict(space)
    with pytest.raises(KeyboardInterrupt), counted(translator.parts):
        assert space["softmax"] is not own["softmax"]
        raise KeyboardInterrupt
    assert vars(translator.parts) == before and space == own


# Before and after ----------------------------------------------------------------------------------------------------


def test_the_librarys_model_is_called_the_librarys(capsys):
    mine.assembled().show(RIVER, MONEY)
    assert capsys.readouterr().out == (
        f"{RIVER}\n  → Der Mann sah das Ufer beim Fluss.\n{MONEY}\n  → Der Mann sah die Bank neben dem Geld.\n"
        "This is the library's model, with none of your parts in it yet. Pass the exercise of one, softmax in notebook "
        "01 for example, and run this again.\n"
    )


def test_some_parts_are_counted_and_the_next_is_named(file, capsys):
    mine.keep("softmax", softmax)
    mine.assembled().show(RIVER)
    assert capsys.readouterr().out.endswith(
        "Your first part, softmax, ran, in 54 calls.\n"
        "14 parts of the model are still the library's; next is similarity, in notebook 02.\n"
    )
    mine.keep("masked_attention", with_torchs)
    mine.keep("embed", KEYSTONES["embed"])
    mine.assembled().show(RIVER)
    said = capsys.readouterr().out
    assert "2 of your 3 parts ran, in 72 calls. The busiest: masked_attention, 54.\n" in said
    assert "Never called: softmax. tl.mine.map() says why.\n12 parts" in said


def test_a_whole_model_is_celebrated_once(file, capsys):
    keep_all(12)
    mine.assembled(parts=["softmax"]).show(RIVER)
    assert "You wrote a Transformer" not in capsys.readouterr().out
    for times in (1, 0):
        mine.assembled().show(RIVER)
        said = capsys.readouterr().out
        assert said.count("✓ All 15 parts of this model are yours") == times and "library's" not in said
    mine.reset("softmax")
    mine.keep("softmax", softmax)
    mine.assembled().show(RIVER)
    assert "You wrote a Transformer!" in capsys.readouterr().out
    assert "border" in account._celebration()[0]


def test_beam_search_counts_its_step_and_misses_no_loop(file, capsys):
    mine.keep("beam_step", KEYSTONES["beam_step"])
    mine.keep("greedy_loop", KEYSTONES["greedy_loop"])
    mine.assembled().show(RIVER, beam_size=2)
    said = capsys.readouterr().out
    assert "Your first part, beam_step, ran, in" in said and "never" not in said.lower()


# Unknown words -------------------------------------------------------------------------------------------------------


def test_unknown_words_are_said_and_nothing_is_translated(capsys):
    translator = mine.assembled()
    translator.show(RIVER, "I love the mann.")
    said = capsys.readouterr().out
    assert said.startswith(
        "This little translator has never met I, love, mann, so it translates nothing of “I love the"
    )
    assert "Did you mean one of these? man." in said and "→" not in said
    known = said.partition("Some of them: ")[2].partition(".\n")[0].split(", ")
    assert len(known) == 8 and set(known) <= set(translator.src_tokenizer.words)
    translator.show("The man loves.")
    assert "Did you mean" not in capsys.readouterr().out


def test_for_programs_they_are_a_value_error_shown_without_a_traceback():
    translator = mine.assembled()
    with pytest.raises(UnknownWords, match="has never met love, so") as caught:
        translator.translate([RIVER, "The man love."])
    assert isinstance(caught.value, ValueError)
    with pytest.raises(ValueError, match="unknown word 'love'"):
        tl.load_trained("context").translate(["The man love."])
    shell, shown = InteractiveShell(), []
    shell.user_ns["translator"] = translator
    shell._showtraceback = lambda kind, error, lines: shown.extend(lines)
    shell.run_cell('translator.translate(["I love you."])')
    shell.history_manager.end_session()
    assert shown[0].startswith("This little translator has never met I, love, you") and len(shown) == 2
