"""What the course means by a word, and whom it cites.

>>> import transformer_lib as tl
>>> print(tl.course.glossary("logit"))  # doctest: +ELLIPSIS
logit (notebook 07): The score of one token of the vocabulary before the softmax; ...
>>> tl.course.cite("Milakov and Gimelshein 2018")
Milakov, M. and Gimelshein, N. (2018). Online normalizer calculation for softmax. arXiv preprint. arXiv:1805.02867

In a notebook both show themselves with formulas and links. The words are data, in data/glossary.toml, and the papers in
data/references.toml; what breaks a rule there is refused when the file is loaded.
"""

from .literature import Reference, cite, reference, references
from .words import Entry, entries, entry, glossary

__all__ = ["Entry", "Reference", "cite", "entries", "entry", "glossary", "reference", "references"]
