"""What all studies share: a command that measures what its file does not have yet, and writes it after each step.

With `--again` it measures single results once more, and prints them beside the stored ones.

A study is a function of the seeds that yields steps. Its module ends with `STUDY = Study("NAME", __doc__, steps)`, and
runs `STUDY.command()` as a program.
"""

from __future__ import annotations

import argparse
import json
import shlex
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import torch

from transformer_lib._files import DATA, write_atomically
from transformer_lib._streams import run_command
from transformer_lib.course.lab.stored import read

MISSING = object()


class Step:
    """One measurement: where its result is in the file, and what measures it.

    Args:
        where: keys, from the outside in; one key may be given by itself. The last one may also be a number, the
            position in a list, or a dataclass or dictionary, the fields of a record in a list: the result, a
            dictionary, is stored with them. Without keys, (), the result is all that the study measures.
        measure: called with `given` if the file does not have the result yet.
    """

    def __init__(self, where: Any, measure: Callable[..., Any], *given: Any) -> None:
        self.where = where if isinstance(where, tuple) else (where,)
        self.measure, self.given = measure, given

    def run(self) -> Any:
        """Measure."""
        return self.measure(*self.given)

    def words(self, seeds: Sequence[int] = ()) -> list[str]:
        """Return the keys as words, a record as one for each field; a position as the seed that `seeds` has there."""
        *keys, last = self.where or ("all",)
        if isinstance(last, str):
            return [*keys, last]
        if isinstance(last, int):
            return [*map(str, keys), f"seed={seeds[last]}" if seeds else str(last)]
        return [*map(str, keys), *(f"{name}={value}" for name, value in _fields(last).items())]


Steps = Generator[Step, Any, None]  # it is sent the result of each step that it yields


@dataclass(frozen=True)
class Study:
    """A command, its steps, and the file of their results.

    Args:
        name: of the module. description: its docstring, shown by --help.
        steps: called with the seeds and, by their names, the values of `options`.
        file: in data/; NAME.json if not given.
        seeds: those of the command without --seeds.
        by_seed: True if each result belongs to one seed, so that seeds can be added to a file.
        constants: what the file also says, such as budgets.
        options: more arguments of the command: keywords of `add_argument` by name.
        says_seeds: False where the file names the seeds in its command only. indent: of the JSON.
        write_pages: called with the complete results of the default file, to write them into pages.
    """

    name: str
    description: str | None
    steps: Callable[..., Steps]
    file: str = ""
    seeds: Sequence[int] = (0, 1, 2)
    by_seed: bool = False
    constants: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    says_seeds: bool = True
    indent: int | None = None
    write_pages: Callable[[dict[str, Any]], None] | None = None

    @property
    def path(self) -> Path:
        """The file that the course reads."""
        return DATA / (self.file or f"{self.name}.json")

    def main(self, argv: Sequence[str] | None = None) -> None:
        """Run the command line, in one thread: sums depend on their number."""
        parser = argparse.ArgumentParser(
            description=self.description, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument("--seeds", type=int, nargs="+")
        parser.add_argument("--results", type=Path, default=self.path, help="what this file has is not measured again")
        parser.add_argument(
            "--again",
            nargs="*",
            metavar="WORD",
            help="measure only the results whose place in the file has all these words, print them beside the stored "
            "ones, and write nothing; without words, list the places",
        )
        for name, how in self.options.items():
            parser.add_argument(f"--{name}", **how)
        given = vars(parser.parse_args(argv))
        seeds, path, words = given.pop("seeds"), given.pop("results"), given.pop("again")
        if words is not None:
            torch.set_num_threads(1)
            try:
                known = self.measure_again(words, seeds, path, **given)
            except ValueError as error:
                parser.error(str(error))
            if not known:
                parser.error(f"{path.name} has no result with the words {' '.join(words)}: --again alone lists all")
            return
        seeds, had = tuple(seeds or self.seeds), _seeds_in(path)
        if had != seeds[: len(had)] or (had and not self.by_seed and had != seeds):
            start = "begin with these" if self.by_seed else "give the same"
            parser.error(f"{path} has the seeds {' '.join(map(str, had))}: {start}, or name another file by --results")
        torch.set_num_threads(1)
        results = self.run(seeds, path, **given)
        if self.write_pages and path == self.path:
            self.write_pages(results)

    def command(self) -> None:
        """Be the program that `python -m studies.NAME` runs."""
        run_command(self.main)

    def head(self, seeds: Sequence[int]) -> dict[str, Any]:
        """Return what the file begins with: the command, today's date, the seeds, the constants."""
        command = f"python -m studies.{self.name} --seeds {' '.join(map(str, seeds))}"
        said = {"seeds": list(seeds)} if self.says_seeds else {}
        return {"command": command, "date": date.today().isoformat()} | said | dict(self.constants)

    def measure_again(
        self, words: Sequence[str], seeds: Sequence[int] | None = None, path: Path | None = None, **options: Any
    ) -> list[Any]:
        """Measure the results at whose place all of these words stand, print each beside the stored one, return them.

        Args:
            words: keys, and fields of records, "rate=0.003" or the value alone. Without any, the places are printed,
                and returned.
            seeds: fewer than the file has, where a result is that of all seeds. Where each has its own (`by_seed`), a
                word picks it, such as "seed=0".
            path: of the stored results; the default file if not given.
        """
        content, stored_seeds = read(path or self.path), _seeds_in(path or self.path)
        if seeds and self.by_seed:
            raise ValueError(
                f'seeds must not be given for {self.name}: a word picks the seed, such as "seed={seeds[0]}"'
            )
        options = {name: how.get("default") for name, how in self.options.items()} | options
        steps, turns, found = self.steps(tuple(seeds or stored_seeds), **options), Counter[int](), None
        measured: list[Any] = []
        while step := _next(steps, found):
            found = _find(content, step.where, turns) if step.where else content
            place = step.words(stored_seeds if self.by_seed else ())
            if not words:
                print(*map(shlex.quote, place))
                measured.append(place)
            elif all(any(word in (one, one.partition("=")[2]) for one in place) for word in words):
                measured.append(step.run())
                print(*map(shlex.quote, place))
                print("  now:   ", _cut(measured[-1]))
                print("  stored:", _cut(found), flush=True)
        return measured

    def run(self, seeds: Sequence[int], path: Path, **options: Any) -> dict[str, Any]:
        """Take the steps whose results `path` does not have, write it after each, and return what it then has."""
        before, head = (read(path) if path.exists() else {}), self.head(seeds)
        content = head | {name: value for name, value in before.items() if name not in head}
        steps, turns = self.steps(seeds, **options), Counter[int]()
        found: Any = None
        while step := _next(steps, found):
            if step.where:
                found = _find(content, step.where, turns)
            else:  # all that the study measures
                found = content if content.keys() > head.keys() else MISSING
            if found is MISSING:
                found = _put(content, step.where, step.run(), turns)
                save(path, content, indent=self.indent)
                print(*step.where, _brief(found), flush=True)
        save(path, content, indent=self.indent)
        return content


def at_once(measure: Callable[..., dict[str, Any]]) -> Callable[..., Steps]:
    """Return the steps of a study that has only one: `measure`, of all seeds and options."""

    def steps(seeds: Sequence[int], **options: Any) -> Steps:
        yield Step((), lambda: measure(seeds, **options))

    return steps


def rounded(numbers: Any, digits: int = 4) -> Any:
    """Return numbers, alone or in tensors, lists and dictionaries, with this many digits after the point."""
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.tolist()
    if isinstance(numbers, Mapping):
        return {name: rounded(value, digits) for name, value in numbers.items()}
    return [rounded(one, digits) for one in numbers] if isinstance(numbers, list) else round(numbers, digits)


def save(path: Path, content: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Write the content as JSON, whole or not at all."""
    write_atomically(path, (json.dumps(content, indent=indent) + "\n").encode("utf-8"))


def _seeds_in(path: Path) -> tuple[int, ...]:
    """Return the seeds of the command that wrote the file; none if there is no file."""
    command = read(path)["command"] if path.exists() else ""
    return tuple(map(int, command.partition(" --seeds ")[2].split()))


def _next(steps: Steps, found: Any) -> Step | None:
    try:
        return steps.send(found)
    except StopIteration:
        return None


def _list_or_table(content: dict[str, Any], where: Sequence[Any]) -> Any:
    """Return the list or dictionary in which the last of the keys has its place, made if there is none."""
    *keys, last = where
    for key in keys[:-1]:
        content = content.setdefault(key, {})
    return content.setdefault(keys[-1], {} if isinstance(last, str) else []) if keys else content


def _find(content: dict[str, Any], where: Sequence[Any], turns: Counter[int]) -> Any:
    """Return the result of a step, or MISSING. A list's records come into the order of the steps."""
    inside, last = _list_or_table(content, where), where[-1]
    if isinstance(last, str):
        return inside.get(last, MISSING)
    if isinstance(last, int):
        return inside[last] if last < len(inside) else MISSING
    turns[id(inside)] += 1
    for index, record in enumerate(inside):
        if _fields(last).items() <= record.items():
            inside.insert(turns[id(inside)] - 1, inside.pop(index))
            return record
    return MISSING


def _put(content: dict[str, Any], where: Sequence[Any], found: Any, turns: Counter[int]) -> Any:
    """Put the result of a step where `_find` has missed it, and return it, with the fields of a record."""
    if not where:
        content.update(found)
        return found
    inside, last = _list_or_table(content, where), where[-1]
    if isinstance(last, str):
        inside[last] = found
    elif isinstance(last, int):
        inside.insert(last, found)
    else:
        found = _fields(last) | found
        inside.insert(turns[id(inside)] - 1, found)
    return found


def _fields(setup: Any) -> dict[str, Any]:
    return dict(setup) if isinstance(setup, Mapping) else asdict(setup)


def _cut(found: Any, longest: int = 400) -> str:
    """Return a result as JSON, of a long one the beginning."""
    text = json.dumps(found, default=str)
    return text if len(text) <= longest else text[:longest] + " …"


def _brief(found: Any) -> Any:
    """Return what is printed of a result: of a dictionary the numbers and words, not what is in it."""
    if isinstance(found, Mapping):
        return {name: value for name, value in found.items() if isinstance(value, (int, float, str))}
    return found
