"""What does the factor √d_model on the embeddings do to training (notebook 12)?

The factor does two things at once. At the start it makes a token's vector √d_model times longer than the row of the
table, and Adam, whose steps do not depend on the size of a gradient, moves the vector √d_model times farther at each
step. The ablations have three of the four combinations; `python -m transformer_lib.course.studies.embedding_scale`
trains the fourth, the factor with rows that begin √d_model times shorter, with the ablations' recipe, seeds and
budgets, and writes data/embedding_scale.json.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import torch

from ..._files import DATA
from ...data.corpora import load_corpus
from ...fast.eligibility import fastest_path
from ...model.transformer import Transformer
from . import ablations, stored, translators

RESULTS = DATA / "embedding_scale.json"
SHORT_START = "short at the start, long steps"
ARMS = {  # what the ablations call the other three
    "long at the start, long steps": "baseline",
    SHORT_START: None,
    "long at the start, short steps": "no embedding scale, unit tables",
    "short at the start, short steps": "no embedding scale",
}


def with_short_rows(model: Transformer) -> None:
    """Let both tables begin √d_model times smaller; the factor is kept."""
    with torch.no_grad():
        for table in (model.src_embedding, model.tgt_embedding):
            table.weight /= math.sqrt(table.embedding_dim)


def run_one(seed: int, passes: int) -> dict:
    """Train one translator whose rows begin short, and return its loss and its scores as the ablations have them."""
    corpus = load_corpus("context")
    translator = translators.new_translator(corpus["train"], seed=seed)
    with_short_rows(translator.model)
    ablations.train_variant(translator, "baseline", corpus["train"], seed, epochs=passes)
    path = fastest_path(translator.model)
    scores = ablations.scores(lambda texts: translator.translate(texts, path=path), corpus)
    loss = ablations.teacher_forced_loss(translator, corpus["heldout"][:: ablations.EVERY])
    return {"seed": seed, "loss": round(loss, 4), "scores": scores}


def short_run() -> list[float]:
    """Return the losses of the first 640 pairs' single epoch, seed 0: quick to repeat, for a test."""
    corpus = load_corpus("context")
    translator = translators.new_translator(corpus["train"], seed=0)
    with_short_rows(translator.model)
    pairs = corpus["train"][: ablations.SHORT_PAIRS]
    history = ablations.train_variant(translator, "baseline", pairs, 0, epochs=1, warmup_steps=10)
    return [round(loss, 4) for loss in history.loss]


def run(seeds: Sequence[int], path: Path = RESULTS) -> dict:
    """Run what `path` does not have yet, and write it after each run."""
    content = stored.read(path) if path.exists() else {"runs": {}}
    content |= {"command": stored.command("embedding_scale", seeds), "date": date.today().isoformat()}
    content["threads"], content["short"] = torch.get_num_threads(), content.get("short") or short_run()
    for passes in ablations.PASSES:
        runs = content["runs"].setdefault(str(passes), [])
        for seed in set(seeds) - {run["seed"] for run in runs}:
            runs.append(run_one(seed, passes))
            stored.save(path, content)
            print(seed, passes, runs[-1], flush=True)
    return content


def load_results(path: Path = RESULTS) -> dict[str, dict[int, list[dict]]]:
    """Return, for each arm and number of passes, the runs: seed, loss, scores. Three arms are the ablations'."""
    own, others = stored.read(path), ablations.load_results()
    parts = dict(zip(ablations.PASSES, ("trained", "trained longer"), strict=True))
    return {
        arm: {passes: others[part][name] if name else own["runs"][str(passes)] for passes, part in parts.items()}
        for arm, name in ARMS.items()
    }


def main() -> None:
    """Run the command line."""
    given = stored.parser(__doc__, RESULTS).parse_args()
    torch.set_num_threads(1)
    run(given.seeds, given.results)


if __name__ == "__main__":
    main()
