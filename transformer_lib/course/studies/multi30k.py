"""What does the library learn from real sentences in 22 minutes on two cores? The stored answer (README).

Each run is a command that its entry names. From the folders they wrote into, this collects their scores and writes
data/multi30k.json and the README's table:

    python -m transformer_lib.course.studies.multi30k runs/ours runs/torch
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..._files import DATA
from . import stored

RESULTS = DATA / "multi30k.json"
README = DATA.parent / "README.md"
BEGIN, END = "<!-- multi30k: begin -->", "<!-- multi30k: end -->"
NAMES = {"ours": "`tl.Transformer`", "torch": "`torch.nn.Transformer`"}
CONDITIONS = ("threads", "processes", "device", "torch", "length_penalty", "pairs")  # of scores.json
METRICS = ("BLEU", "BLEU, lower-cased", "chrF")


def collect(folders: Sequence[Path]) -> dict:
    """Return what the runs in the folders measured: {"runs": [the scores.json of each, with the name of its model]}.

    Raises:
        ValueError: two runs differ in more than their model.
    """
    runs = []
    for folder in folders:
        asked = stored.read(folder / "config.json")
        runs.append({"model": asked.pop("model"), "options": asked} | stored.read(folder / "scores.json"))
    for run in runs[1:]:
        one, other = (r["options"] | {name: r.get(name) for name in CONDITIONS} for r in (runs[0], run))
        differing = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        if differing:
            raise ValueError(f"folders must hold runs that differ in their model alone, got other {differing}")
    return {"runs": runs}


def load_results(path: Path = RESULTS) -> dict:
    """Return what `collect` found."""
    return stored.read(path)


def report(results: dict) -> str:
    """Return the table as Markdown, with the commands below it."""
    first = results["runs"][0]
    head = ["Multi30k, English to German", "updates", "passes", *METRICS]
    rows = [
        [
            f"{NAMES[run['model']]}, {way.split(', ')[1]}",
            f"{run['steps']:,}",
            f"{run['epochs']:.1f}",
            *(_interval(scores[metric]) for metric in METRICS),
        ]
        for run in results["runs"]
        for way, scores in run["scores"].items()
        if way.startswith("test")
    ]
    align = ["---"] + ["---:"] * (len(head) - 1)
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, align, *rows)]
    commands = "\n".join(f"    {run['command']}" for run in results["runs"])
    return "\n".join(lines) + (
        f"\n\n{first['pairs']['test']:,} test sentences (test_2016_flickr), detokenised, case kept unless it says "
        "lower-cased; sacrebleu, in brackets 95 % intervals from 1,000 resamples of the sentences (they say nothing of "
        f"another seed). {first['minutes']:.0f} minutes of training each, evaluations included, on "
        f"{first['threads']} threads. The options were chosen with ours; `torch.nn.Transformer` also drops attention "
        f"weights and entries of the hidden layer, and has biases in attention. Made by\n\n{commands}"
    )


def _interval(score: Sequence[float]) -> str:
    mean, low, high = score
    return f"**{mean:.1f}** ({low:.1f}–{high:.1f})"


def put_into(readme: str, results: dict) -> str:
    """Return the README's text with the table between its two marks."""
    return stored.put_between(readme, BEGIN, END, report(results))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="the --out of each run")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--readme", type=Path, default=README)
    given = parser.parse_args(argv)
    results = collect(given.folders)
    stored.save(given.results, results, indent=1)
    given.readme.write_text(put_into(given.readme.read_text(encoding="utf-8"), results), encoding="utf-8", newline="\n")
    print(report(results))


if __name__ == "__main__":
    main()
