"""What does the factor √d_model on the embeddings do to training (notebook 12)?"""

from __future__ import annotations

from . import ablations, stored

_load_own = stored.loader("embedding_scale.json")
SHORT_START, SHORT_POSITIONS = "short start, long steps", "short start, short steps, short positions"
ARMS = {  # what the ablations call those that are theirs
    "long start, long steps": "baseline",
    SHORT_START: None,
    "long start, short steps": "no embedding scale, unit tables",
    "short start, short steps": "no embedding scale",
    SHORT_POSITIONS: None,
}


def load_results() -> dict[str, dict[int, list[dict]]]:
    """Return, for each arm and number of passes, the runs: seed, loss, scores; none where none is stored.

    Three arms are the ablations'.
    """
    own, others = _load_own()["runs"], ablations.load_results()
    parts = dict(zip(ablations.PASSES, ("trained", "trained longer"), strict=True))
    return {
        arm: {passes: others[part][name] if name else own[arm].get(str(passes), []) for passes, part in parts.items()}
        for arm, name in ARMS.items()
    }
