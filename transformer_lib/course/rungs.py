"""The ladder as notebooks show it: the translator with the parts learned so far, each rung beside those before it.

>>> import transformer_lib as tl
>>> picture = tl.course.ladder("02")  # doctest: +ELLIPSIS
The translator with the parts learned so far, after 8 passes over the corpus:
...

The numbers are those of the study `studies.ladder`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from statistics import mean
from typing import Any

from .figures import plotting
from .lab import ladder as study

ALL = (study.DICTIONARY, *study.RUNGS)
BESIDE = {  # the controls that are shown with a rung
    **dict.fromkeys(("02", "03", "04"), ("02, even weights",)),  # the word vectors are the same random ones
    "08": ("08 without 07",),
}
NOTES = {
    "13": ("Smoothing keeps some probability from the right word on purpose; this loss counts that against the model.",)
}
_SAID = {"loss": "loss", "exact match": "exact match", "nouns": "nouns", "it": '"it"'}


def ladder(notebook: str) -> plotting.Shown:
    """Print the rungs up to that of a notebook, "02" to "14", with what its own bought; return their picture.

    Raises:
        ValueError: the notebook has no rung.
    """
    climbed, content = up_to(notebook), study.load_results()
    print(table(content, climbed))
    if beside := BESIDE.get(notebook):
        print("\nFor comparison:\n" + "\n".join(_row(content, study.find(name), " ") for name in beside))
    print("\n" + "\n".join(textwrap.fill(line, 90) for line in sentence(content, notebook).splitlines()))
    return picture(content, climbed)


def up_to(notebook: str) -> list[study.Rung]:
    """Return the rungs from the dictionary to that of the notebook."""
    names = [rung.id for rung in ALL]
    if notebook not in names[1:]:
        raise ValueError(f'notebook must be one of "{names[1]}" to "{names[-1]}", got {notebook!r}')
    return list(ALL[: names.index(notebook) + 1])


def values(content: dict[str, Any], name: str, measure: str, passes: int) -> list[float]:
    """Return a measure of a rung after so many passes, one number per seed; none for the loss of the dictionary."""
    if name == study.DICTIONARY.id:
        return [content["dictionary"][measure]] if measure in content["dictionary"] else []
    return [run["scores"][str(passes)][measure] for run in content["runs"][name]]


def budgets_of(content: dict[str, Any]) -> list[int]:
    """Return the two largest numbers of passes, by which a rung is judged."""
    return content["passes"][-2:]


def table(content: dict[str, Any], climbed: Sequence[study.Rung]) -> str:
    """Return the rungs as lines of text, the last one marked, with the means of the seeds."""
    head = (
        f"The translator with the parts learned so far, after {content['passes'][-1]} passes over the corpus:\n"
        f"mean of {len(content['seeds'])} seeds on the validation split; the picture has their range. "
        "The loss is in nats\nper token, the rest are shares of the sentences. "
        f'Guessing gets {_short(content["chance"]["nouns"])} of the nouns, {_short(content["chance"]["it"])} of "it".\n'
    )
    columns = " " * 35 + "".join(f"{title:>14}" for title in ("loss", "exactly right", "nouns right", '"it" right'))
    return "\n".join((head, columns, *(_row(content, rung, "▶" if rung is climbed[-1] else " ") for rung in climbed)))


def _row(content: dict[str, Any], rung: study.Rung, mark: str) -> str:
    number = rung.id if rung in ALL else " ·"
    found = (values(content, rung.id, measure, content["passes"][-1]) for measure in study.MEASURES)
    cells = (_short(mean(numbers)) if numbers else "—" for numbers in found)
    return f"{mark} {number} {rung.part:<30}" + "".join(f"{cell:>14}" for cell in cells)


def _spread(found: Sequence[float]) -> str:
    if not found:
        return "—"
    low, high = _short(min(found)), _short(max(found))
    return _short(mean(found)) + f" ({low}–{high})" * (low != high)


def _short(number: float) -> str:
    return f"{number:.2f}" if number >= 0.9995 else f"{number:.3f}".removeprefix("0")


def sentence(content: dict[str, Any], notebook: str) -> str:
    """Return what the rung of a notebook bought and what it cost, against the rung before.

    A measure counts as changed where every seed of one rung is better than every seed of the other, after the two
    largest budgets.
    """
    before, rung = up_to(notebook)[-2:]
    less, most = budgets_of(content)
    early, late = (_changes(content, before.id, rung.id, passes) for passes in (less, most))

    def steps(measures: Sequence[str], passes: int) -> str:
        return ", ".join(_step(content, before.id, rung.id, measure, passes) for measure in measures)

    better, worse = ([name for name in late if early[name] == late[name] == sign] for sign in (1, -1))
    same = [_SAID[name] for name in late if name not in (*better, *worse)]
    said = [f"bought {steps(better, most) or 'nothing'}"]
    said += [f"cost {steps(worse, most)}"] if worse else []
    said += [f"no clear difference in {', '.join(same)}"] if same else []
    lines = [f"{rung.id}, {rung.part}: {'; '.join(said)}."]
    for passes, here, there in ((less, early, late), (most, late, early)):
        if only := [name for name in late if here[name] and here[name] != there[name]]:
            lines.append(f"After {passes} passes alone, the seeds also agree on {steps(only, passes)}.")
    return "\n".join([*lines, *NOTES.get(notebook, ()), *(_in_order(content) if notebook == "12" else ())])


def _in_order(content: dict[str, Any]) -> list[str]:
    """Say what depth comes to without the rung that makes it trainable."""
    one, two = (_spread(list(content["order"][rung.id].values())) for rung in study.ORDER)
    return [
        "Without the residual connections and norms of rung 09, one layer comes to a loss of",
        f"{one} in one pass, two layers to {two}.",
    ]


def _changes(content: dict[str, Any], before: str, after: str, passes: int) -> dict[str, int]:
    """Return for each measure that both have 1 if all seeds got better, −1 if all got worse, else 0."""
    found = {}
    for measure in study.MEASURES:
        old, new = (values(content, name, measure, passes) for name in (before, after))
        if old and new:
            up = (min(new) > max(old)) - (max(new) < min(old))
            found[measure] = -up if measure == "loss" else up
    return found


def _step(content: dict[str, Any], before: str, after: str, measure: str, passes: int) -> str:
    old, new = (mean(values(content, name, measure, passes)) for name in (before, after))
    return f"{_SAID[measure]} {_short(old)} → {_short(new)}"


def picture(content: dict[str, Any], climbed: Sequence[study.Rung]) -> plotting.Shown:
    """Draw the rungs from top to bottom, the last one marked: loss and exact match after the two largest budgets, then
    the senses after the largest."""
    budgets = budgets_of(content)[::-1]
    names, now = [f"{rung.id} {rung.part}" for rung in climbed], f"{climbed[-1].id} {climbed[-1].part}"

    def after(measure: str, passes: int) -> list[list[float]]:
        return [values(content, rung.id, measure, passes) for rung in climbed]

    panels = {
        title: {f"{passes} passes": after(measure, passes) for passes in budgets}
        for title, measure in (("loss", "loss"), ("exactly right", "exact match"))
    }
    panels["right sense"] = {_SAID[measure]: after(measure, budgets[0]) for measure in ("nouns", "it")}
    axes = plotting.plot_rungs(names, panels, marked=now, log=("loss",))
    head = ("rung", *(f"{_SAID[measure]}, {passes} passes" for passes in budgets for measure in study.MEASURES))
    rows = [
        (name, *(_spread(values(content, rung.id, measure, p)) for p in budgets for measure in study.MEASURES))
        for name, rung in zip(names, climbed, strict=True)
    ]
    caption = "Each row adds a part to the one above. Points are means of the seeds, whiskers their range."
    return plotting.figure(axes, _described(content, climbed), caption, table=(head, *rows))


def _described(content: dict[str, Any], climbed: Sequence[study.Rung]) -> str:
    told = f"Points, a row for each of {len(climbed)} translators; panels: loss, exactly right, right sense."
    ends = climbed[1:][:: max(1, len(climbed) - 2)]  # the first that is trained, and the last
    names = " to ".join(f"{rung.id} ({rung.part})" for rung in ends)
    found = [
        f"{_SAID[measure]} {' to '.join(_middle(content, rung.id, measure) for rung in ends)}"
        for measure in study.MEASURES
    ]
    return f"{told} {'From' if len(ends) > 1 else 'At'} {names}: {', '.join(found)}."


def _middle(content: dict[str, Any], name: str, measure: str) -> str:
    return _short(mean(values(content, name, measure, content["passes"][-1])))
