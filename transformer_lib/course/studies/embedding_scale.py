"""What does the factor √d_model on the embeddings do to training (notebook 12)?

The factor does two things at once. At the start it makes a token's vector √d_model times longer than the row of the
table, and Adam, whose steps do not depend on the size of a gradient, moves the vector √d_model times farther at each
step. The ablations have three of the four combinations; `python -m transformer_lib.course.studies.embedding_scale`
trains the fourth, the factor with rows that begin √d_model times shorter, with the ablations' recipe, seeds and
budgets, and writes data/embedding_scale.json. A control leaves the factor out and makes the positions √d_model times
shorter, too: if only the ratio of words and positions counts, it trains as with the factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import torch

from ..._files import DATA
from ..._streams import run_command
from ...data.corpora import load_corpus
from ...fast.eligibility import fastest_path
from ...model.positional import SinusoidalPosition
from ...model.transformer import Transformer
from . import ablations, stored, translators
from .parts import without_embedding_scale

RESULTS = DATA / "embedding_scale.json"
SHORT_START, SHORT_POSITIONS = "short start, long steps", "short start, short steps, short positions"
ARMS = {  # what the ablations call those that are theirs
    "long start, long steps": "baseline",
    SHORT_START: None,
    "long start, short steps": "no embedding scale, unit tables",
    "short start, short steps": "no embedding scale",
    SHORT_POSITIONS: None,
}


def with_short_rows(model: Transformer) -> None:
    """Let both tables begin √d_model times smaller; the factor is kept."""
    with torch.no_grad():
        for table in (model.src_embedding, model.tgt_embedding):
            table.weight /= math.sqrt(table.embedding_dim)


def with_short_positions(model: Transformer) -> None:
    """Leave the factor out, and make the positions √d_model times smaller, too."""
    without_embedding_scale(model)
    assert isinstance(model.position, SinusoidalPosition)
    model.position.table /= math.sqrt(model.config.d_model)


CHANGES = {SHORT_START: with_short_rows, SHORT_POSITIONS: with_short_positions}
BUDGETS = {SHORT_START: ablations.PASSES, SHORT_POSITIONS: ablations.PASSES[:1]}  # passes over the corpus


def run_one(arm: str, seed: int, passes: int) -> dict:
    """Train one translator of an arm of CHANGES, and return its loss and its scores as the ablations have them."""
    corpus = load_corpus("context")
    translator = translators.new_translator(corpus["train"], seed=seed)
    CHANGES[arm](translator.model)
    ablations.train_variant(translator, "baseline", corpus["train"], seed, epochs=passes)
    path = fastest_path(translator.model)
    scores = ablations.scores(lambda texts: translator.translate(texts, path=path), corpus)
    loss = ablations.teacher_forced_loss(translator, corpus["heldout"][:: ablations.EVERY])
    return {"seed": seed, "loss": round(loss, 4), "scores": scores}


def short_run(arm: str) -> list[float]:
    """Return the losses of the first 640 pairs' single epoch, seed 0: quick to repeat, for a test."""
    corpus = load_corpus("context")
    translator = translators.new_translator(corpus["train"], seed=0)
    CHANGES[arm](translator.model)
    pairs = corpus["train"][: ablations.SHORT_PAIRS]
    history = ablations.train_variant(translator, "baseline", pairs, 0, epochs=1, warmup_steps=10)
    return [round(loss, 4) for loss in history.loss]


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict:
    """Run what `path` does not have yet, and write it after each run."""
    content = stored.read(path) if path.exists() else {"short": {}, "runs": {}}
    content |= {"command": stored.command("embedding_scale", seeds), "date": date.today().isoformat()}
    content["threads"] = torch.get_num_threads()
    for arm in CHANGES:
        content["short"][arm] = content["short"].get(arm) or short_run(arm)
        for passes in BUDGETS[arm]:
            runs = content["runs"].setdefault(arm, {}).setdefault(str(passes), [])
            for seed in sorted(set(seeds) - {run["seed"] for run in runs}):
                runs.append(run_one(arm, seed, passes))
                stored.save(path, content)
                print(arm, seed, passes, runs[-1]["loss"], flush=True)
    return content


def load_results(path: Path = RESULTS) -> dict[str, dict[int, list[dict]]]:
    """Return, for each arm and number of passes, the runs: seed, loss, scores; none where none is stored.

    Three arms are the ablations'.
    """
    own, others = stored.read(path)["runs"], ablations.load_results()
    parts = dict(zip(ablations.PASSES, ("trained", "trained longer"), strict=True))
    return {
        arm: {passes: others[part][name] if name else own[arm].get(str(passes), []) for passes, part in parts.items()}
        for arm, name in ARMS.items()
    }


def main() -> None:
    """Run the command line."""
    given = stored.parser(__doc__, RESULTS).parse_args()
    torch.set_num_threads(1)
    run(given.seeds, given.results)


if __name__ == "__main__":
    run_command(main)
