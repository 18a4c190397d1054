"""The ladder as notebooks show it: the translator with the parts learned so far, each rung beside those before it.

>>> import transformer_lib as tl
>>> picture = tl.course.ladder("02")  # doctest: +ELLIPSIS
Means of 3 seeds after 8 passes: the loss in nats a token, else shares of the sentences
...

`ladder_model()` draws the translator. The numbers are those of the study `studies.ladder`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from .figures import plotting
from .lab import ladder as study

ALL = (study.DICTIONARY, *study.RUNGS)
BESIDE = {  # the controls that are shown with a rung
    **dict.fromkeys(("02", "03"), ("02, even weights",)),  # the word vectors are the same random ones
    "04": ("02, even weights", "03, quiet start", "03, small steps"),
    "08": ("08 without 07",),
}
NOTES = {
    "13": ("Smoothing keeps some probability from the right word on purpose; this loss counts that against the model.",)
}
_HEADS = {"loss": "loss", "exact match": "exactly right", "nouns": "nouns right", "it": '"it" right'}
_SAID = {"loss": "the loss", "exact match": "the exactly right sentences", "nouns": "the nouns", "it": '"it"'}


def ladder(notebook: str) -> plotting.Shown:
    """Print the rung of a notebook, "02" to "14", beside the one before, and what happened; return the picture of all.

    Raises:
        ValueError: the notebook has no rung.
    """
    climbed, content = up_to(notebook), study.load_results()
    print(table(content, climbed))
    if beside := BESIDE.get(notebook):
        print("\nFor comparison:\n" + "\n".join(_row(content, study.find(name), " ") for name in beside))
    print("\n" + "\n".join(textwrap.fill(line, 90) for line in story(content, notebook)))
    return picture(content, climbed)


def ladder_model(notebook: str = "02") -> plotting.Shown:
    """Draw the translator of the ladder once, with the parts up to a notebook's rung in colour.

    Raises:
        ValueError: the notebook has no rung.
    """
    there = up_to(notebook)[1:]
    parts = "; ".join(f"{rung.id} {rung.part}" for rung in study.RUNGS)
    alt = (
        "Diagram of the translator. The English words, as vectors, give keys and values, and the German words so far "
        "give the query; attention reads, the next German word is chosen and joins those so far. Numbers say which "
        f"notebook brings which part: {parts}. In colour up to {there[-1].id}, the rest dashed."
    )
    caption = "The translator of the ladder. In colour: what it has by now. Dashed: what is still to come."
    return plotting.figure(plotting.plot_translator(notebook), alt, caption)


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
    """Return the rung and the one before as lines of text, with the means of the seeds and what guessing gets."""
    head = (
        f"Means of {len(content['seeds'])} seeds after {content['passes'][-1]} passes: "
        "the loss in nats a token, else shares of the sentences\n"
    )
    columns = " " * 35 + "".join(f"{title:>14}" for title in _HEADS.values())
    rows = [_row(content, rung, "▶" if rung is climbed[-1] else " ") for rung in climbed[-2:]]
    chances = (content["chance"].get(measure) for measure in study.MEASURES)
    return "\n".join((head, columns, *rows, _line("     guessing", chances)))


def _row(content: dict[str, Any], rung: study.Rung, mark: str) -> str:
    number = rung.id if rung in ALL else " ·"
    found = (values(content, rung.id, measure, content["passes"][-1]) for measure in study.MEASURES)
    return _line(f"{mark} {number} {rung.part}", (mean(numbers) if numbers else None for numbers in found))


def _line(name: str, numbers: Iterable[float | None]) -> str:
    cells = ("—" if number is None else _short(number) for number in numbers)
    return f"{name:<35}" + "".join(f"{cell:>14}" for cell in cells)


def _spread(found: Sequence[float]) -> str:
    if not found:
        return "—"
    low, high = _short(min(found)), _short(max(found))
    return _short(mean(found)) + f" ({low}–{high})" * (low != high)


def _short(number: float) -> str:
    return f"{number:.2f}" if number >= 0.9995 else f"{number:.3f}".removeprefix("0")


@dataclass(frozen=True)
class _Step:
    """A rung against the one before, after two budgets: {measure: …} of what both have.

    Args:
        means: before and after, at the larger budget; early_means: at the smaller. late, early: 1 if every seed is
            above all those before, −1 if below, 0 if the ranges overlap.
    """

    less: int
    most: int
    early_means: dict[str, tuple[float, float]]
    means: dict[str, tuple[float, float]]
    early: dict[str, int]
    late: dict[str, int]

    def changed(self) -> list[str]:
        """Return the measures whose ranges are apart: first if they already were, then the loss, then by size."""

        def weight(measure: str) -> tuple[bool, bool, float]:
            old, new = self.means[measure]
            return self.early[measure] != self.late[measure], measure != "loss", -abs(new - old)

        return sorted((measure for measure in self.late if self.late[measure]), key=weight)


def story(content: dict[str, Any], notebook: str) -> list[str]:
    """Say in whole sentences what the rung of a notebook changed against the one before; a paragraph each.

    A measure has changed where the ranges of the seeds are apart after the largest budget. At most two are told with
    their numbers, first those that are apart after the budget before, too.
    """
    before, rung = (each.id for each in up_to(notebook)[-2:])
    step = _compared(content, before, rung)
    said = _what_changed(step) if step.changed() else _what_did_not(step)
    if only := [measure for measure in step.early if step.early[measure] and not step.late[measure]]:
        said.append(f"After {step.less} passes they were apart in {_list(only, step.early_means)}.")
    return [" ".join(said), *NOTES.get(notebook, ()), *(_in_order(content) if notebook == "12" else ())]


def _compared(content: dict[str, Any], before: str, rung: str) -> _Step:
    less, most = budgets_of(content)
    means, signs = [], []
    for passes in (less, most):
        both = {name: [values(content, each, name, passes) for each in (before, rung)] for name in study.MEASURES}
        both = {name: pair for name, pair in both.items() if all(pair)}  # the dictionary has no loss
        means.append({name: (mean(old), mean(new)) for name, (old, new) in both.items()})
        signs.append({name: (min(new) > max(old)) - (max(new) < min(old)) for name, (old, new) in both.items()})
    return _Step(less, most, *means, *signs)


def _what_changed(step: _Step) -> list[str]:
    changed, same = step.changed(), [measure for measure in step.late if not step.late[measure]]
    moves = [
        f"{_SAID[measure]} {'rose' if new > old else 'fell'} from {_short(old)} to {_short(new)}"
        for measure, (old, new) in ((measure, step.means[measure]) for measure in changed[:2])
    ]
    said = [f"What happened: {', and '.join(moves)}.", _since_when(step, changed[:2])]
    if changed[2:]:
        said.append(f"They are apart in {_list(changed[2:])}, too.")
    if same:
        said.append(f"In {_list(same)} they overlap, so a difference in the table may be chance.")
    return said


def _since_when(step: _Step, measures: Sequence[str]) -> str:
    """Say whether the seeds already agreed after the smaller budget."""
    already = [measure for measure in measures if step.early[measure] == step.late[measure]]
    if already == [*measures]:
        return f"The ranges of the seeds are apart, after {step.less} passes as well as after {step.most}."
    then = f"only in {_list(already)}" if already else "not yet"
    return f"After {step.most} passes the ranges of the seeds are apart, but after {step.less} they were {then}."


def _what_did_not(step: _Step) -> list[str]:
    if all(_short(old) == _short(new) for old, new in step.means.values()):
        return ["What happened: nothing. Every mean is as it was."]
    return [
        "What happened: nothing that we can be sure of.",
        f"After {step.most} passes the ranges of the seeds overlap in every measure, so the differences may be chance.",
    ]


def _list(measures: Sequence[str], steps: Mapping[str, tuple[float, float]] | None = None) -> str:
    """Join the names of measures as a sentence does; with `steps`, each has its two means."""
    told = [_SAID[each] + (f" ({' to '.join(map(_short, steps[each]))})" if steps else "") for each in measures]
    return " and ".join([", ".join(told[:-1])] * (len(told) > 1) + told[-1:])


def _in_order(content: dict[str, Any]) -> list[str]:
    """Say what depth comes to without the rung that makes it trainable."""
    one, two = (_spread(list(content["order"][rung.id].values())) for rung in study.ORDER)
    return [
        f"Without the residual connections and norms of rung 09, one layer comes to a loss of {one} in one pass, "
        f"two layers to {two}."
    ]


def picture(content: dict[str, Any], climbed: Sequence[study.Rung]) -> plotting.Shown:
    """Draw the rungs from top to bottom, the last one marked; a panel for each measure, the two largest budgets."""
    less, most = budgets_of(content)
    names = {rung.id: f"{rung.id} {rung.part}" for rung in climbed}

    def after(passes: int) -> dict[str, dict[str, list[float]]]:
        return {
            title: {name: values(content, each, measure, passes) for each, name in names.items()}
            for measure, title in _HEADS.items()
        }

    shares = [title for measure, title in _HEADS.items() if measure != "loss"]
    axes = plotting.plot_dots(
        after(most),
        after(less),
        budgets=(f"{less} passes", f"{most} passes"),
        reference={_HEADS[measure]: {"guessing": chance} for measure, chance in content["chance"].items()},
        log=("loss",),
        limits=dict.fromkeys(shares, (0.0, 1.0)),
        marked=names[climbed[-1].id],
    )
    head = ("rung", *(f"{title}, {passes} passes" for passes in (most, less) for title in _HEADS.values()))
    rows = [
        (name, *(_spread(values(content, each, measure, p)) for p in (most, less) for measure in study.MEASURES))
        for each, name in names.items()
    ]
    caption = "Each row adds a part to the one above. A dot is a seed, a line their range."
    return plotting.figure(axes, _described(content, climbed), caption, table=(head, *rows))


def _described(content: dict[str, Any], climbed: Sequence[study.Rung]) -> str:
    less, most = budgets_of(content)
    told = (
        f"Dots, a row for each of {len(climbed)} translators, a panel each for {', '.join(_HEADS.values())}: "
        f"a dot is a seed, hollow after {less} passes, filled after {most}."
    )
    ends = climbed[1:][:: max(1, len(climbed) - 2)]  # the first that is trained, and the last
    names = " to ".join(f"{rung.id} ({rung.part})" for rung in ends)
    found = [
        f"{title} {' to '.join(_short(mean(values(content, rung.id, measure, most))) for rung in ends)}"
        for measure, title in _HEADS.items()
    ]
    return f"{told} {'From' if len(ends) > 1 else 'At'} {names}: {', '.join(found)}."
