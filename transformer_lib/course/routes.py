"""The routes through the course: one evening, the spine, Part II, everything. Each is a list of stops, in order."""

from __future__ import annotations

from dataclasses import dataclass

from .notebooks import NOTEBOOKS, Notebook, notebook


@dataclass(frozen=True)
class Stop:
    """What a route takes from one notebook.

    Args:
        id: the notebook's number.
        minutes: for reading these sections, as the notebook's page in the teaching guide has them, and doing the
            exercises in `tasks`.
        sections: their headings without numbers, in order; none stands for the whole notebook.
        tasks: ids of what to pass in these sections, such as "01.1", "01.q1" and "W1"; none stands for every task of
            the notebook.
    """

    id: str
    minutes: int
    sections: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    @property
    def entry(self) -> Notebook:
        """The notebook."""
        return notebook(self.id)

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """What has to be passed, as (kind, id)."""
        return tuple(part for part in self.entry.parts if not self.tasks or part[1] in self.tasks)


@dataclass(frozen=True)
class Route:
    """One way through the course: its name in code, its title, what it is for, and its stops."""

    id: str
    title: str
    about: str
    stops: tuple[Stop, ...]

    @property
    def minutes(self) -> int:
        """Reading time with exercises."""
        return sum(stop.minutes for stop in self.stops)


def _spine(entry: Notebook) -> Stop:
    tasks = tuple(name for _, name in entry.parts if name not in entry.optional)
    return Stop(entry.id, entry.minutes, tasks=tasks if entry.optional else ())


def _whole(entry: Notebook) -> Stop:
    return Stop(entry.id, entry.minutes + entry.optional_minutes)


EVENING = Route(
    "evening",
    "One evening",
    "from a lookup to a translator, in marked sections of eight notebooks",
    (
        Stop(
            "00",
            38,
            (
                "Was that luck?",
                "Where is it decided?",
                "Can we carry a meaning to another sentence?",
                "How the exercises work",
                "Attention in one sentence",
                "Your way through the course",
            ),
            ("00.1", "00.2", "00.q1"),
        ),
        Stop(
            "01",
            58,
            (
                "A dictionary, and where it stops",
                "The soft lookup",
                "Temperature: from one winner to everyone",
                "From one query to many",
                "How does a lookup learn?",
            ),
            ("01.1", "01.2", "01.3", "01.q1", "01.q3", "01.q4", "01.q5", "W1", "W26"),
        ),
        Stop(
            "03",
            15,
            ("Three roles, by hand", "One matrix for each role"),
            ("03.1", "03.q1", "W16"),
        ),
        Stop(
            "04",
            32,
            (
                "Two tokens by hand",
                "The two-minute answer",
                "Is a sharp softmax a dead one?",
            ),
            ("04.1", "04.q1", "04.q2", "04.q3", "W3"),
        ),
        Stop(
            "08",
            27,
            ("Two questions, one average", "From a loop to one product"),
            ("08.1", "08.q1", "08.q2", "W7"),
        ),
        Stop(
            "12",
            27,
            (
                "One part is missing",
                "Once through the model",
                "One part is wrong. Would you notice?",
            ),
            ("12.2", "12.q1", "W15"),
        ),
        Stop(
            "13",
            4,
            ("How wrong is a batch?",),
            ("13.q1",),
        ),
        Stop(
            "14",
            14,
            (
                "By hand: the probability of a whole sentence",
                "The loop: choose, append, repeat",
            ),
            ("14.1",),
        ),
    ),
)

LAST_OF_PART_I, LAST_OF_PART_II = "17", "22"

SPINE = Route(
    "spine",
    "The spine",
    "all of Part I, notebooks 00 to 17, without the sections marked as optional",
    tuple(_spine(entry) for entry in NOTEBOOKS if entry.id <= LAST_OF_PART_I),
)

PART_II = Route(
    "part_ii",
    "Part II",
    "the way to today's models, notebooks 18 to 22, without the sections marked as optional",
    tuple(_spine(entry) for entry in NOTEBOOKS if LAST_OF_PART_I < entry.id <= LAST_OF_PART_II),
)

PART_III = Route(
    "part_iii",
    "Part III",
    "a real language model, from notebook 23 on, without the sections marked as optional",
    tuple(_spine(entry) for entry in NOTEBOOKS if entry.id.isdigit() and entry.id > LAST_OF_PART_II),
)

EVERYTHING = Route(
    "everything",
    "Everything",
    "every notebook with its optional sections, and the appendix",
    tuple(_whole(entry) for entry in NOTEBOOKS),
)

ROUTES = (EVENING, SPINE, PART_II, PART_III, EVERYTHING)


def route(name: str) -> Route:
    """Return the route with this name in code.

    Raises:
        ValueError: if there is none.
    """
    for each in ROUTES:
        if each.id == name:
            return each
    raise ValueError(f"name must be one of {', '.join(each.id for each in ROUTES)}, got {name!r}")
