"""What does the library learn from real sentences in 22 minutes on two cores? The stored answer (docs/multi30k.md).

Each run is a command that its entry names. From the folders they wrote into, this collects their scores and writes
data/multi30k.json, the table of docs/multi30k.md and the line in the README:

    MULTI30K_DIR=… python -m studies.multi30k runs/ours-0 runs/ours-1 runs/torch-0 runs/torch-1

It reads the references of the test set (from MULTI30K_DIR) to score each translation also as the literature does:
lower-cased and tokenised by Moses, with sacremoses (the extra `bench`). Without folders it writes the table and the
line again, from data/multi30k.json.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sacrebleu

from transformer_lib._files import DATA
from transformer_lib._streams import run_command
from transformer_lib.course.lab import stored
from transformer_lib.data.corpora import load_corpus

from .engine import save
from .pages import ROOT, write_between

RESULTS = DATA / "multi30k.json"
NAMES = {"ours": "`tl.Transformer`", "torch": "`torch.nn.Transformer`"}

# What all runs must share, of scores.json and of their options. With these, models may have learned differently.
CONDITIONS = ("threads", "processes", "processor", "device", "torch", "length_penalty", "pairs")
SHARED = ("corpus", "minutes")
TOKENISED = "BLEU, tokenised and lower-cased"
METRICS = ("BLEU", TOKENISED, "chrF")


def collect(folders: Sequence[Path]) -> dict:
    """Return what the runs in the folders measured: {"runs": [the scores.json of each, with its model and options]}.

    Raises:
        ValueError: two runs had other conditions, or two runs of one model differ in more than their seed.
        ImportError: sacremoses is not installed.
    """
    runs = []
    for folder in folders:
        asked = stored.read(folder / "config.json")
        run = {"model": asked.pop("model"), "options": asked} | stored.read(folder / "scores.json")
        runs.append(run)
    conditions = [{name: run.get(name) for name in CONDITIONS} for run in runs]
    for condition, run in zip(conditions, runs, strict=True):
        condition |= {name: run["options"].get(name) for name in SHARED}
    _check_alike(conditions, "conditions")
    for model in NAMES:
        own = [run["options"] | {"seed": None} for run in runs if run["model"] == model]
        _check_alike(own, f"options of {model}")
    for folder, run in zip(folders, runs, strict=True):
        for way in [way for way in run["scores"] if way.startswith("test")]:
            split, how = way.split(", ")
            lines = (folder / f"{split}.{how.replace(' ', '')}.txt").read_text(encoding="utf-8").splitlines()
            run["scores"][way][TOKENISED] = round(tokenised_bleu(lines, _references()), 2)
    return {"runs": runs}


def _check_alike(settings: Sequence[dict[str, Any]], what: str) -> None:
    for other in settings[1:]:
        one = settings[0]
        differing = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
        if differing:
            raise ValueError(f"folders must hold runs with the same {what}, got other {differing}")


def _references() -> list[str]:
    return [pair.tgt for pair in load_corpus("multi30k")["test"]]


def tokenised_bleu(translations: Sequence[str], references: Sequence[str]) -> float:
    """Return BLEU of German as Multi30k's own `lc.norm.tok` files have it: normalised, tokenised, lower-cased."""
    from sacremoses import MosesPunctNormalizer, MosesTokenizer

    normalise, tokenise = MosesPunctNormalizer("de").normalize, MosesTokenizer("de").tokenize
    made = [
        [tokenise(normalise(text), return_str=True, escape=False).lower() for text in texts]
        for texts in (translations, references)
    ]
    return sacrebleu.corpus_bleu(made[0], [made[1]], tokenize="none", force=True).score


def load_results(path: Path = RESULTS) -> dict:
    """Return what `collect` found."""
    return stored.read(path)


def report(results: dict) -> str:
    """Return the table as Markdown, with the commands below it."""
    scored = [score for run in results["runs"] for way, score in run["scores"].items() if way.startswith("test")]
    metrics = [metric for metric in METRICS if all(metric in score for score in scored)]
    head = ["Multi30k, English to German", "updates", "passes", *metrics]
    rows = []
    for model, runs in _by_model(results).items():
        for way in [way for way in runs[0]["scores"] if way.startswith("test")]:
            updates, passes = (statistics.mean(run[name] for run in runs) for name in ("steps", "epochs"))
            scores = [_shown([_mean(run["scores"][way][metric]) for run in runs]) for metric in metrics]
            rows.append([f"{NAMES[model]}, {way.split(', ')[1]}", f"{updates:,.0f}", f"{passes:.1f}", *scores])
    align = ["---"] + ["---:"] * (len(head) - 1)
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, align, *rows)]
    return "\n".join(lines) + f"\n\n{_conditions(results['runs'])}"


def _by_model(results: dict) -> dict[str, list[dict]]:
    models = dict.fromkeys(run["model"] for run in results["runs"])
    return {model: [run for run in results["runs"] if run["model"] == model] for model in models}


def _conditions(runs: Sequence[dict]) -> str:
    first, commands = runs[0], "\n".join(f"    {run['command']}" for run in runs)
    return (
        f"{first['pairs']['test']:,} test sentences (test_2016_flickr); means of the seeds, and in brackets each. BLEU "
        "and chrF by sacrebleu, detokenised, case kept; where it says tokenised, as in most papers on this corpus, on "
        f"text in small letters that Moses has tokenised. {first['minutes']:.0f} minutes of training each, evaluations "
        f"included, on {first['threads']} threads of {first['processor']}. `torch.nn.Transformer` also drops attention "
        f"weights and entries of the hidden layer, and has biases in attention. Made by\n\n{commands}"
    )


def _mean(score: float | Sequence[float]) -> float:
    """Return the score itself: some are stored with an interval behind them."""
    return score if isinstance(score, (int, float)) else score[0]


def _shown(scores: Sequence[float]) -> str:
    return f"**{statistics.mean(scores):.1f}** ({', '.join(f'{score:.1f}' for score in scores)})"


def headline(results: dict) -> str:
    """Return a one-sentence summary for the README: BLEU of each model with the beam."""
    first = results["runs"][0]
    way = next(way for way in first["scores"] if way.startswith("test") and "beam" in way)
    best = [
        f"**{statistics.mean(_mean(run['scores'][way]['BLEU']) for run in runs):.1f}** by {NAMES[model]}"
        for model, runs in _by_model(results).items()
    ]
    return (
        f"[On real sentences](docs/multi30k.md), {first['minutes']:.0f} minutes of training on {first['threads']} "
        f"threads ({first['processor']}) give, from English to German and with a beam, BLEU {' and '.join(best)} on "
        f"{first['pairs']['test']:,} test sentences."
    )


def write_pages(results: dict, root: Path = ROOT) -> None:
    """Write the table into docs/multi30k.md and the headline into README.md."""
    write_between(root / "docs" / "multi30k.md", "multi30k", report(results))
    write_between(root / "README.md", "multi30k", headline(results))


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", help="the --out of each run, ours first")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the scores are stored")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository whose pages are written")
    given = parser.parse_args(argv)
    if given.folders:
        save(given.results, collect(given.folders), indent=1)
    results = load_results(given.results)
    write_pages(results, given.root)
    print(report(results))


if __name__ == "__main__":
    run_command(main)
