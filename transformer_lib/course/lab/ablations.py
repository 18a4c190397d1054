"""What is each part of the Transformer for? Trained without it, or taken out of the trained model (notebook 13)."""

from __future__ import annotations

from . import stored

load_results = stored.loader("ablations.json")
PASSES = (1, 4)  # over the corpus: so few that the scores are not all at the top, and the course's recipe
SAMPLES = (  # from the held-out split
    "Yesterday the woman saw the bank near the money.",
    "The brother knew that the woman wanted to describe the bank near the reed.",
    "The horse did not cross the street because it was too weak.",
    "Because it was too steep, the goat did not cross the glacier.",
)
