"""What does the library learn from real sentences in 22 minutes on two cores? The stored answer (docs/multi30k.md).

Each run is a command that its entry names. From the folders they wrote into, this collects their scores and writes
data/multi30k.json, the table of docs/multi30k.md and the line in the README:

    python -m transformer_lib.course.studies.multi30k runs/ours runs/torch

Without folders it writes the table and the line again, from data/multi30k.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..._files import DATA
from . import stored

RESULTS = DATA / "multi30k.json"
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
    return "\n".join(lines) + f"\n\n{_conditions(results['runs'])}"


def _conditions(runs: Sequence[dict]) -> str:
    first, commands = runs[0], "\n".join(f"    {run['command']}" for run in runs)
    return (
        f"{first['pairs']['test']:,} test sentences (test_2016_flickr), detokenised, case kept unless it says "
        "lower-cased; sacrebleu, in brackets 95 % intervals from 1,000 resamples of the sentences (they say nothing of "
        f"another seed). {first['minutes']:.0f} minutes of training each, evaluations included, on "
        f"{first['threads']} threads. The options were chosen with ours; `torch.nn.Transformer` also drops attention "
        f"weights and entries of the hidden layer, and has biases in attention. Made by\n\n{commands}"
    )


def _interval(score: Sequence[float]) -> str:
    mean, low, high = score
    return f"**{mean:.1f}** ({low:.1f}–{high:.1f})"


def headline(results: dict) -> str:
    """Return one sentence for whoever reads no table: BLEU of each model with the beam."""
    first = results["runs"][0]
    way = next(way for way in first["scores"] if way.startswith("test") and "beam" in way)
    best = [f"{_interval(run['scores'][way]['BLEU'])} by {NAMES[run['model']]}" for run in results["runs"]]
    return (
        f"[On real sentences](docs/multi30k.md), {first['minutes']:.0f} minutes of training on {first['threads']} "
        f"threads give, from English to German and with a beam, BLEU {' and '.join(best)} on "
        f"{first['pairs']['test']:,} test sentences."
    )


def write_pages(results: dict, root: Path = stored.ROOT) -> None:
    """Write the table into docs/multi30k.md and the headline into README.md."""
    stored.write_between(root / "docs" / "multi30k.md", "multi30k", report(results))
    stored.write_between(root / "README.md", "multi30k", headline(results))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", help="the --out of each run, ours first")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the scores are stored")
    parser.add_argument("--root", type=Path, default=stored.ROOT, help="the repository whose pages are written")
    given = parser.parse_args(argv)
    if given.folders:
        stored.save(given.results, collect(given.folders), indent=1)
    results = load_results(given.results)
    write_pages(results, given.root)
    print(report(results))


if __name__ == "__main__":
    main()
