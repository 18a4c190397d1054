"""Examination papers: what is drawn, variants with their key, and files that learning platforms read."""

from __future__ import annotations

import csv
import re
from html import unescape

import pytest

from transformer_lib.course import printing
from transformer_lib.course.quiz.bank import QUESTIONS
from transformer_lib.course.quiz.model import Choice, Number, Option
from transformer_lib.course.teaching import exam, exam_pages

pytestmark = pytest.mark.fast

SIGN = r"(?<!\\)(?:\\\\)*"  # before a sign of GIFT that is not escaped


def test_questions_are_drawn_evenly_by_the_seed_and_without_those_left_out():
    def ids(seed, **more):
        return [each.id for each in exam.drawn(["03", "04"], 4, seed, **more)]

    assert ids(7) == ids(7) == sorted(set(ids(7)))
    assert [each[:2] for each in ids(7)] == ["03", "03", "04", "04"]
    assert len({tuple(ids(seed)) for seed in range(10)}) > 1
    out = ids(7)[0]
    assert out not in ids(7, leave_out=[out])
    everything = exam.drawn([], len(QUESTIONS), 7, beside_notebook=True)
    assert {each.id for each in everything} == {each.id for each in QUESTIONS}


def test_what_continues_an_example_is_drawn_only_when_asked_for(tmp_path, capsys):
    alone = {each.id for each in QUESTIONS if each.alone}
    assert {each.id for each in exam.drawn([], len(alone), 7)} == alone
    assert {"12.q2", "19.q1", "22.q2"} <= {each.id for each in QUESTIONS} - alone
    command = ["--notebooks", "19", "--count", "3", "--seed", "7", "--out", str(tmp_path)]
    with pytest.raises(SystemExit):
        exam.main(command)
    message = "count must be at most 1, the questions of these notebooks that stand alone, got 3"
    assert message in capsys.readouterr().err
    exam.main([*command, "--beside-notebook"])
    assert "3 questions; " in capsys.readouterr().out


def test_a_question_that_points_at_its_notebook_does_not_stand_alone():
    pointing = re.compile(r"\b([Tt]wo such|of the nine|[Rr]esult of the table|[Tt]he writer|[Tt]he second head)\b")
    assert [each.id for each in QUESTIONS if each.alone and pointing.search(each.prompt)] == []


@pytest.mark.parametrize(
    ("names", "count", "leave_out", "message"),
    [
        (["99"], 1, [], "notebook_id must be one of"),
        (["03"], 0, [], "count must be at least 1, got 0"),
        (["03", "03"], 50, [], r"count must be at most \d, the questions of these notebooks that stand alone, got 50"),
        (["03"], 1, ["03.q99"], "question_id must be one of"),
    ],
)
def test_what_cannot_be_drawn_is_refused(names, count, leave_out, message):
    with pytest.raises(ValueError, match=message):
        exam.drawn(names, count, 7, leave_out=leave_out)


def answers_by_key(key, variant):
    """[(answer, quiz), …] of a variant, read from the key"""
    part = key.partition(f"## Variant {variant}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| \d+ \| (.+) \| (\S+) \|$", part, re.MULTILINE)


def assert_on_paper(block, answer, quiz):
    """The key's answer to a question is right on this paper."""
    each = next(each for each in QUESTIONS if each.id == quiz)
    assert block.startswith(exam.markdown(each.prompt))
    options = re.findall(r"^- \*\*(\w)\*\* (.+)$", block, re.MULTILINE)
    if isinstance(each, Number):
        assert answer == f"{each.value:g} (± {each.tolerance:g})" and "Answer: ___" in block and not options
        return
    assert sorted(text for _, text in options) == sorted(exam.markdown(option.text) for option in each.options)
    assert dict(options)[answer] == exam.markdown(next(option.text for option in each.options if option.right))


def test_variants_ask_the_same_in_another_order_and_the_key_is_right_for_each(tmp_path, capsys):
    command = ["--notebooks", "03", "04", "--count", "6", "--seed", "7", "--variants", "A", "B", "--out", str(tmp_path)]
    exam.main(command)
    assert capsys.readouterr().out.startswith("6 questions; ")
    key, found = (tmp_path / "key.md").read_text(encoding="utf-8"), {}
    for variant in "AB":
        page = (tmp_path / f"exam_{variant}.md").read_text(encoding="utf-8")
        assert not re.search(r"\d\d\.q\d", page)  # it does not say where to look the answer up
        blocks = re.split(r"^\*\*\d+\.\*\* ", page, flags=re.MULTILINE)[1:]
        found[variant] = answers_by_key(key, variant)
        assert len(blocks) == 6
        for block, (answer, quiz) in zip(blocks, found[variant], strict=True):
            assert_on_paper(block, answer, quiz)
    orders = {variant: [quiz for _, quiz in answers] for variant, answers in found.items()}
    assert orders["A"] != orders["B"] and sorted(orders["A"]) == sorted(orders["B"])
    assert sorted(found["A"]) != sorted(found["B"])  # the letters differ, too
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    exam.main(command)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def test_the_key_gives_the_reason_for_each_answer():
    questions = exam.drawn([], len(QUESTIONS), 7, beside_notebook=True)
    key = exam.key({"A": exam.paper(questions, "A", 7)})
    for each in questions:
        why = each.why if isinstance(each, Number) else next(option.why for option in each.options if option.right)
        assert f"- **{each.id}** " in key and f"* {exam.markdown(why)}\n" in key


@pytest.mark.parametrize("variants", [[], ["A", "a"], ["A", "../B"], [""]])
def test_variants_that_could_not_be_files_are_refused(tmp_path, variants):
    with pytest.raises(ValueError, match="variants must be different words of letters and digits"):
        exam.write(tmp_path / "new", [QUESTIONS[0]], variants, 7)
    assert not (tmp_path / "new").exists()


def test_the_command_names_what_is_wrong(tmp_path, capsys):
    with pytest.raises(SystemExit):
        exam.main(["--notebooks", "03", "--count", "50", "--seed", "7", "--out", str(tmp_path)])
    assert "count must be at most" in capsys.readouterr().err


def plain(text):
    """The text that Moodle shows for a piece of GIFT in HTML"""
    return unescape(re.sub(r"</?em>", "*", re.sub(r"</?code>", "`", re.sub(r"\\(.)", r"\1", text))))


@pytest.mark.parametrize("each", QUESTIONS, ids=lambda each: each.id)
def test_gift_gives_back_every_text_and_marks_what_is_right(each):
    head, body = re.fullmatch(rf"(.*?{SIGN})\{{(.*?{SIGN})\}}\n", exam.gift([each]), re.DOTALL).groups()
    assert plain(head) == f"::{each.id}::[html]{each.prompt}"
    first, *lines = body.removesuffix("\n").split("\n")
    found = []
    for line in lines:
        answer, why = re.fullmatch(rf"(.*?{SIGN})#(.*)", line).groups()
        assert not re.search(rf"{SIGN}[~=#{{}}]", answer[1:] + why)
        found.append((plain(answer), plain(why)))
    if isinstance(each, Choice):
        assert first == ""
        assert found == [("~="[option.right] + option.text, option.why) for option in each.options]
    else:
        near = [(f"=%0%{value:g}:{each.tolerance:g}", why) for value, why in each.near]
        right = (f"={each.value:g}:{each.tolerance:g}", each.why)
        assert first == "#" and found == [right, *near, ("~", each.otherwise)]


def test_aiken_holds_every_question_with_options():
    blocks = exam.aiken(QUESTIONS).rstrip("\n").split("\n\n")
    choices = [each for each in QUESTIONS if isinstance(each, Choice)]
    for each, block in zip(choices, blocks, strict=True):
        prompt, *rows, last = block.split("\n")
        assert prompt == each.prompt
        assert rows == [f"{letter}. {o.text}" for letter, o in zip(each.letters, each.options, strict=True)]
        assert each.reply(last.removeprefix("ANSWER: ")).right


def test_a_live_quiz_gets_every_question_with_its_answers_a_time_and_the_right_one():
    head, *rows = csv.reader(exam.live(QUESTIONS).splitlines())
    assert head == ["Question", *(f"Answer {n}" for n in (1, 2, 3, 4)), "Time limit", "Correct answer"]
    choices = [each for each in QUESTIONS if isinstance(each, Choice) and len(each.options) <= 4]
    assert len(choices) > 0.9 * sum(isinstance(each, Choice) for each in QUESTIONS)
    for each, (prompt, *answers, seconds, right) in zip(choices, rows, strict=True):
        assert prompt == each.prompt and int(seconds) == 60 and len(answers) == 4
        assert [text for text in answers if text] == [option.text for option in each.options]
        assert each.options[int(right) - 1].right


def test_a_page_to_print_asks_what_the_paper_asks_and_loads_nothing(tmp_path, capsys):
    exam.main(["--count", "12", "--seed", "7", "--variants", "A", "B", "--out", str(tmp_path)])
    paths = capsys.readouterr().out.splitlines()[1:]
    assert {"exam_A.html", "exam_B.html", "key.html", "questions.qti.zip"} <= {
        path.rpartition("/")[2] for path in paths
    }
    key = (tmp_path / "key.md").read_text(encoding="utf-8")
    for variant in "AB":
        page = (tmp_path / f"exam_{variant}.html").read_text(encoding="utf-8")
        assert not re.search(r"\d\d\.q\d|<script|<link|src=|url\(|https?:", page) and "@page" in page
        blocks = re.findall(r"<li><b>\d+\.</b> (.*?)\n(.*?)(?=<li><b>|\Z)", page, re.DOTALL)
        for (prompt, rest), (answer, quiz) in zip(blocks, answers_by_key(key, variant), strict=True):
            each = next(each for each in QUESTIONS if each.id == quiz)
            assert prompt.partition("</li>")[0] == exam_pages.shown(each.prompt)
            if isinstance(each, Choice):
                options = dict(re.findall(r'<span class="letter">(\w)</span>(.*?)</li>', rest))
                assert options[answer] == exam_pages.shown(next(option.text for option in each.options if option.right))
            else:
                assert "Answer: <span" in rest
    shown = (tmp_path / "key.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr><td>\d+</td><td>(.*?)</td><td>(.*?)</td></tr>", shown)
    assert rows == answers_by_key(key, "A") + answers_by_key(key, "B")


def test_letters_with_an_index_are_symbols_and_code_is_not():
    assert exam_pages.shown("√d_k < `d_k`") == '√<span class="root"><i>d</i><sub>k</sub></span> &lt; <code>d_k</code>'
    assert not any("$" in each.prompt for each in QUESTIONS)  # TeX would need more


def test_a_pdf_is_asked_for_and_its_absence_explained(tmp_path, monkeypatch, capsys):
    command = ["--notebooks", "03", "--count", "2", "--seed", "7", "--out", str(tmp_path), "--pdf"]
    monkeypatch.setattr(exam, "print_pdf", lambda page, pdf: pdf)
    exam.main(command)
    assert {"exam_A.pdf", "key.pdf"} <= {line.rpartition("/")[2] for line in capsys.readouterr().out.splitlines()}
    monkeypatch.undo()
    monkeypatch.setattr(printing, "chromium", lambda: None)
    with pytest.raises(SystemExit):
        exam.main(command)
    assert "no Chromium was found: install one, or name it in" in capsys.readouterr().err


def test_signs_of_markdown_and_gift_lose_their_meaning():
    assert exam.markdown("W_Q * 2 < `a_b*` _x_ |") == r"W_Q \* 2 \< `a_b*` \_x\_ \|"
    odd = Choice("00.q9", "a {b} = c: <d>", (Option("~1", "#1", True), Option("=2\\", "'2'")))
    assert exam.gift([odd]).splitlines()[0] == r"::00.q9::[html]a \{b\} \= c\: &lt;d&gt;{"
    assert r"~\=2\\#'2'" in exam.gift([odd])
