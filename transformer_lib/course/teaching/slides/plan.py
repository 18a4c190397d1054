"""From a notebook's tags to its slides.

On a cell, `slide` begins a slide; `slide-part` adds to the one before, `slide-step` does so at the next key press,
`slide-notes` adds to its speaker notes alone. Besides, `slide-full` shows all of a cell, not its gist, and
`slide-output` shows what a cell printed without its source. What is on a slide is shortened by rule
(`text`, `outputs`); the notes hold the whole text.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from ...cells import for_readers, source_of, tags_of
from .. import notebook_files
from . import outputs
from . import text as texts
from .markdown import Block, Section, blocks, sections

PLACES = ("slide", "slide-part", "slide-step", "slide-notes")
TAGS = (*PLACES, "slide-full", "slide-output")
NEVER = ("solution", "check", "exercise")


@dataclass(frozen=True)
class Piece:
    """Markdown on a slide; a `step` appears at the next key press."""

    text: str
    step: bool = False


@dataclass
class Slide:
    """A slide: its title, its pieces, the speaker notes, and the ids of the cells it shows.

    `topic` is the heading above a slide that has a title of its own: what the slide goes on with is below that.
    """

    title: str
    level: int = 2
    pieces: list[Piece] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    topic: str = ""


def read(path: Path) -> list[dict]:
    """Return the cells of a notebook without its guards, each source as one text.

    Raises:
        ValueError: if a cell's tags contradict each other or ask for a cell that no slide may show.
    """
    cells = for_readers(notebook_files.read(path)["cells"])
    for cell in cells:
        cell["source"] = source_of(cell)
        _check_tags(path.name, cell)
    return cells


def _check_tags(name: str, cell: dict) -> None:
    tags = tags_of(cell)
    ours = [tag for tag in tags if tag.startswith("slide")]
    places = [tag for tag in ours if tag in PLACES]
    where = f"{name}, cell {cell['id']}: tags"
    if set(ours) - set(TAGS):
        raise ValueError(f"{where} must be among {', '.join(TAGS)}, got {', '.join(ours)}")
    if ours and len(places) != 1:
        raise ValueError(f"{where} must have one of {', '.join(PLACES)}, got {', '.join(ours)}")
    forbidden = [tag for tag in tags if tag in NEVER]
    if ours and forbidden:
        raise ValueError(f"{where} must not put a cell tagged {forbidden[0]!r} on a slide, got {', '.join(ours)}")


def place_of(cell: dict | None) -> str:
    """Return which of PLACES a cell has; "" for none."""
    return next((tag for tag in tags_of(cell) if tag in PLACES), "") if cell else ""


def plan(cells: list[dict], subtitle: str = "") -> list[Slide]:
    """Return the slides of a notebook whose title slide says `subtitle` below the question."""
    deck = _Deck(subtitle)
    for before, cell, following in zip([None, *cells[:-1]], cells, [*cells[1:], None], strict=True):
        if cell["cell_type"] == "markdown":
            captioned = before is not None and place_of(before) and outputs.has_picture(before)
            deck.add_text(cell, captioned=bool(captioned), continued=place_of(following) in PLACES[1:3])
        elif place_of(cell):
            deck.add_code(cell, following)
    return [slide for slide in deck.slides if slide.pieces or slide.level == 1]


class _Deck:
    """Slides in the making; it remembers the heading above, for slides that begin without one."""

    def __init__(self, subtitle: str) -> None:
        self.slides: list[Slide] = []
        self._subtitle = subtitle
        self._heading = Section("", 2, "")

    def add_text(self, cell: dict, *, captioned: bool, continued: bool) -> None:
        """Add a Markdown cell: one slide for each of its sections."""
        source = texts.without_caption(cell["source"]) if captioned else cell["source"]
        found = [part for section in sections(source) for part in texts.split_misconceptions(section)]
        for number, section in enumerate(found):
            if section.title and texts.for_slides(section):
                self._heading = section
            place = place_of(cell)
            if place and texts.for_slides(section):
                last = number == len(found) - 1
                place = "slide" if section.title and place != "slide-notes" else place
                place = "slide-notes" if _closes(section, place) and not last else place
                self._add_section(cell, section, place, continued=continued and last)

    def _add_section(self, cell: dict, section: Section, place: str, *, continued: bool) -> None:
        text, answer = texts.split_answer(texts.without_reading(section.text))
        shown = text if "slide-full" in tags_of(cell) else texts.condense(text, accompanied=continued)
        if section.level == 1:
            self.slides.append(Slide(section.title, 1, [Piece(f'<p class="subtitle">{self._subtitle}</p>')]))
            self._note(cell["id"], text)
            shown = "\n\n".join(block.text for block in blocks(text) if _is_goal(block))
            self._heading = replace(section, title="Goals" if shown else section.title, level=2)
        shown = shown if continued else texts.without_lead_in(shown)
        self._put(cell["id"], place, shown, "" if section.level == 1 else section.text)
        if answer and place != "slide-notes":
            self.slides[-1].pieces.append(Piece(f'<div class="answer">\n\n{answer}\n\n</div>', step=True))

    def _put(self, cell_id: str, place: str, shown: str, notes: str) -> None:
        if place == "slide" and shown or not self.slides:
            self.slides.append(Slide(self._heading.title))
        if shown and place != "slide-notes":
            self.slides[-1].pieces.append(Piece(shown, step=place == "slide-step"))
        self._note(cell_id, notes)

    def _note(self, cell_id: str, notes: str) -> None:
        slide = self.slides[-1]
        if cell_id not in slide.cells:
            slide.cells.append(cell_id)
        if notes:
            slide.notes.append(notes)

    def add_code(self, cell: dict, following: dict | None) -> None:
        """Add a code cell: a question, a picture, or source and what it printed."""
        place = place_of(cell)
        if "quiz" in tags_of(cell):
            asked, answer, wrong = outputs.question(cell)
            pieces = [Piece(asked, place == "slide-step"), Piece(answer, step=True)]
            title, notes = "Ask the class", wrong
        else:
            pieces, title, notes = self._pieces(cell, place, following), self._heading.title, ""
        if place == "slide" or not self.slides:
            self.slides.append(Slide(title, topic=self._heading.title))
        if place != "slide-notes":
            self.slides[-1].pieces += pieces
        self._note(cell["id"], notes)

    def _pieces(self, cell: dict, place: str, following: dict | None) -> list[Piece]:
        tags, step = tags_of(cell), place == "slide-step"
        if outputs.has_picture(cell):
            below = texts.caption(following["source"]) if following and following["cell_type"] == "markdown" else ""
            return [Piece(outputs.picture(cell, below), step)]
        said = outputs.printed(cell)
        result = [f'<div class="printed">\n\n{outputs.fenced(said, "text")}\n\n</div>'] if said else []
        if "slide-output" in tags:
            return [Piece(text, step) for text in result]
        code = outputs.fenced(outputs.source_lines(cell["source"], full="slide-full" in tags), "python")
        return [Piece(code, step), *(Piece(text, step=True) for text in result)]


def _closes(section: Section, place: str) -> bool:
    """Return True when text before a cell's first heading only closes what came before: it goes into the notes."""
    shown = {block.kind for block in blocks(section.text)} & {"math", "table", "list"}
    return place == "slide" and not section.title and not shown


def _is_goal(block: Block) -> bool:
    return block.kind == "list" or block.text.startswith("You will")
