"""Examination papers from the quizzes, in variants, with a key, and as files that learning platforms import.

    python -m transformer_lib.course.teaching.exam --notebooks 03 04 --count 6 --seed 7 --variants A B

All variants ask the same questions; the order of questions and options differs. The same seed gives the same papers.
"""

from __future__ import annotations

import argparse
import csv
import io
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from random import Random

from ..._streams import run_command
from ..._validate import check_int
from .. import notebooks as course
from ..printing import print_pdf
from ..quiz import question
from ..quiz.model import Choice, Number, Option, Question
from ..quiz.view import rich
from . import qti
from .exam_pages import key_page, sheet_page

LETTERS = "ABCDEFGH"
CODE = re.compile(r"(`[^`]+`)")
NAME = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True)
class Item:
    """A question on one paper, its options in the order of that paper; none where a number is asked for."""

    question: Question
    options: tuple[Option, ...]

    @property
    def letters(self) -> str:
        """The letters of its options."""
        return LETTERS[: len(self.options)]

    @property
    def answer(self) -> str:
        """What the key says: a letter, or a number with its tolerance."""
        if isinstance(self.question, Number):
            return f"{self.question.value:g} (± {self.question.tolerance:g})"
        return LETTERS[next(place for place, option in enumerate(self.options) if option.right)]


def drawn(
    names: Sequence[str], count: int, seed: int, *, leave_out: Collection[str] = (), beside_notebook: bool = False
) -> list[Question]:
    """Return questions drawn from the quizzes of notebooks, from each as many as from any other while they last.

    Args:
        names: numbers of notebooks, such as "04"; all of them if none is named.
        count: how many questions.
        seed: another seed draws other questions.
        leave_out: ids of questions that are not to be drawn.
        beside_notebook: whether to draw also those that continue an example of their notebook.

    Raises:
        ValueError: if there is no such notebook or question, or fewer questions than `count`.
    """
    check_int("count", count)
    for question_id in leave_out:
        question(question_id)
    random = Random(f"questions {seed}")
    of_each = []
    for entry in dict.fromkeys(course.chosen(names)):
        ids = [f"{entry.id}.q{number}" for number in range(1, entry.quizzes + 1)]
        left = [each for each in ids if each not in leave_out and (beside_notebook or question(each).alone)]
        of_each.append(random.sample(left, len(left)))
    random.shuffle(of_each)
    in_turn = [each for turn in zip_longest(*of_each) for each in turn if each is not None]
    if count > len(in_turn):
        which = "the questions of these notebooks" + ("" if beside_notebook else " that stand alone")
        raise ValueError(f"count must be at most {len(in_turn)}, {which}, got {count}")
    return [question(each) for each in sorted(in_turn[:count])]


def paper(questions: Sequence[Question], variant: str, seed: int) -> list[Item]:
    """Return the questions in the order of a variant, their options, too."""
    random = Random(f"paper {seed} {variant}")
    items = []
    for each in random.sample(questions, len(questions)):
        options = each.options if isinstance(each, Choice) else ()
        items.append(Item(each, tuple(random.sample(options, len(options)))))
    return items


def markdown(text: str) -> str:
    """Return text so that Markdown shows it as it is, with `code` in backticks."""
    parts = CODE.split(text)
    return "".join(part if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _escaped(text: str) -> str:
    return re.sub(r"[\\*<|`]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", text)


def sheet(items: Sequence[Item], variant: str) -> str:
    """Return the page for students, in Markdown: it does not name the quizzes."""
    blocks = [f"# Examination, variant {variant}", "Name: ____________________"]
    for number, item in enumerate(items, 1):
        blocks.append(f"**{number}.** {markdown(item.question.prompt)}")
        lines = [f"- **{LETTERS[place]}** {markdown(option.text)}" for place, option in enumerate(item.options)]
        blocks.append("\n".join(lines) or "Answer: ____________________")
    return "\n\n".join(blocks) + "\n"


def key(papers: dict[str, list[Item]]) -> str:
    """Return the key to all variants, in Markdown, with the reason for each right answer."""
    blocks = ["# Key"]
    for variant, items in papers.items():
        rows = [f"| {number} | {item.answer} | {item.question.id} |" for number, item in enumerate(items, 1)]
        head = [f"## Variant {variant}\n", "| question | answer | quiz |", "|---|---|---|"]
        blocks.append("\n".join([*head, *rows]))
    blocks.append("## Why")
    for quiz, prompt, right, why in reasons(papers):
        blocks.append(f"- **{quiz}** {markdown(prompt)}\n  *{markdown(right)}* {markdown(why)}")
    return "\n\n".join(blocks) + "\n"


def reasons(papers: dict[str, list[Item]]) -> list[tuple[str, str, str, str]]:
    """Return of each question its quiz, what is asked, the right answer, and why it is right."""
    questions = sorted((item.question for item in next(iter(papers.values()))), key=lambda each: each.id)
    return [(each.id, each.prompt, *_right(each)) for each in questions]


def _right(each: Question) -> tuple[str, str]:
    if isinstance(each, Number):
        return f"{each.value:g}", each.why
    option = next(option for option in each.options if option.right)
    return option.text, option.why


def gift(questions: Sequence[Question]) -> str:
    """Return the questions in Moodle's format GIFT, with the explanation of every answer as its feedback."""
    return "\n".join(_gift(each) for each in questions)


def _gift(each: Question) -> str:
    if isinstance(each, Choice):
        kind = ""
        lines = [f"{'=' if option.right else '~'}{_html(option.text)}#{_html(option.why)}" for option in each.options]
    else:  # Moodle takes the first answer that fits, so the right one stands first
        kind = "#"
        lines = [f"={each.value:g}:{each.tolerance:g}#{_html(each.why)}"]
        lines += [f"=%0%{value:g}:{each.tolerance:g}#{_html(why)}" for value, why in each.near]
        lines.append(f"~#{_html(each.otherwise)}")
    return "\n".join([f"::{each.id}::[html]{_html(each.prompt)}{{{kind}", *lines, "}\n"])


def _html(text: str) -> str:
    """Return text as HTML in which the signs of GIFT have no meaning."""
    shown = rich(text).replace("&#x27;", "'").replace("&quot;", '"')  # quotes mean nothing in a text
    return re.sub(r"[\\~=#{}:]", r"\\\g<0>", shown)


def aiken(questions: Sequence[Question]) -> str:
    """Return the questions with options in the format Aiken, which has no numbers and no explanations."""
    blocks = []
    for each in questions:
        if isinstance(each, Choice):
            item = Item(each, each.options)
            rows = [f"{LETTERS[place]}. {option.text}" for place, option in enumerate(each.options)]
            blocks.append("\n".join([each.prompt, *rows, f"ANSWER: {item.answer}\n"]))
    return "\n".join(blocks)


LIVE = ("Question", "Answer 1", "Answer 2", "Answer 3", "Answer 4", "Time limit", "Correct answer")
SECONDS = 60


def live(questions: Sequence[Question]) -> str:
    """Return the questions with two to four options as CSV for a live quiz: seconds to answer, number of the answer."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(LIVE)
    for each in questions:
        if isinstance(each, Choice) and len(each.options) <= 4:
            answers = [option.text for option in each.options]
            right = 1 + next(place for place, option in enumerate(each.options) if option.right)
            rows.writerow([each.prompt, *answers, *[""] * (4 - len(answers)), SECONDS, right])
    return text.getvalue()


def write(out: Path, questions: Sequence[Question], variants: Sequence[str], seed: int) -> list[Path]:
    """Write a paper for each variant and the key, in Markdown and as pages, and the files to import; returns them.

    Raises:
        ValueError: if no variant is named, or one twice, or its name is more than letters and digits.
    """
    names = [variant.lower() for variant in variants]  # some systems do not tell A.md and a.md apart
    if not names or len(set(names)) < len(names) or not all(map(NAME.fullmatch, variants)):
        raise ValueError(f"variants must be different words of letters and digits, got {list(variants)}")
    papers = {variant: paper(questions, variant, seed) for variant in variants}
    texts = {f"exam_{variant}.md": sheet(items, variant) for variant, items in papers.items()}
    texts |= {"key.md": key(papers), "questions.live.csv": live(questions)}
    texts |= {"questions.gift.txt": gift(questions), "questions.aiken.txt": aiken(questions)}
    texts |= {f"exam_{variant}.html": sheet_page(items, variant) for variant, items in papers.items()}
    texts |= {"key.html": key_page(papers, reasons(papers))}
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text, encoding="utf-8")
    package = out / "questions.qti.zip"
    package.write_bytes(qti.package(questions))
    return [*(out / name for name in texts), package]


def printed(paths: Sequence[Path]) -> list[Path]:
    """Print the pages among some files to PDF files beside them, and return those.

    Raises:
        RuntimeError: if there is no Chromium.
    """
    return [print_pdf(path, path.with_suffix(".pdf")) for path in paths if path.suffix == ".html"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, write the files, and say what they are."""
    parser = argparse.ArgumentParser(
        prog="python -m transformer_lib.course.teaching.exam",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--notebooks", nargs="+", default=[], metavar="NN", help="such as 03 04, or A; all by default")
    parser.add_argument("--count", type=int, default=10, help="how many questions (default: 10)")
    parser.add_argument("--seed", type=int, required=True, help="what is drawn; keep it secret before the examination")
    parser.add_argument("--variants", nargs="+", default=["A"], metavar="NAME", help="of the paper (default: A)")
    parser.add_argument("--leave-out", nargs="+", default=[], metavar="NN.qN", help="questions not to be drawn")
    parser.add_argument(
        "--beside-notebook", action="store_true", help="draw also what continues an example of its notebook"
    )
    parser.add_argument("--pdf", action="store_true", help="print the pages to PDF, too, by an installed Chromium")
    parser.add_argument("--out", type=Path, default=Path("build/exam"), help="folder to write into")
    given = parser.parse_args(arguments)
    try:
        questions = drawn(
            given.notebooks,
            given.count,
            given.seed,
            leave_out=given.leave_out,
            beside_notebook=given.beside_notebook,
        )
        paths = write(given.out, questions, given.variants, given.seed)
        paths += printed(paths) if given.pdf else []
    except (ValueError, RuntimeError) as error:
        parser.error(str(error))
    numbers = sum(isinstance(each, Number) for each in questions)
    print(f"{len(questions)} questions; {numbers} of them ask for a number, which Aiken and live quizzes cannot hold")
    print("\n".join(map(str, paths)))


if __name__ == "__main__":
    run_command(main)
