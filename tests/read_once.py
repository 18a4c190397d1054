"""The context corpus and the translator that comes with the course, read once for all tests of studies."""

from __future__ import annotations

import transformer_lib as tl

CORPUS = tl.load_corpus("context")
HELDOUT = CORPUS["heldout"]
TRAINED = tl.load_trained("context")
