"""Three short texts for a real model to read, written for this course, so that it cannot know them by heart.

`load_outside()` has what `transformers` makes of them with the same file (`studies.outside`), and `away` says how far
from that a model is.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from . import stored

load_outside = stored.loader("outside.json")

TEXTS = {
    "a story": (
        "The last ferry had gone when Marta reached the harbour. She put down her suitcase, which was mostly full of "
        "books, and looked for somebody to be angry with. There was only a seagull. It looked at the suitcase, then at "
        "Marta, and walked away, as if it had seen this before. On the other side of the water the lights went on, one "
        "after another, and in one of those houses her sister was laying the table for two."
    ),
    "instructions": (
        "To repair a flat tyre, turn the bicycle upside down and take out the wheel. Push one side of the tyre off the "
        "rim with two levers, and pull out the tube. Pump some air into it and hold it under water, where bubbles will "
        "show you the hole. Dry that place, roughen it with sandpaper, put on glue, and wait for five minutes before "
        "you press on the patch."
    ),
    "a program": (
        "def longest_word(text):\n"
        '    """Return the longest word of a text; of equally long ones, the first."""\n'
        "    best = ''\n"
        "    for word in text.split():\n"
        "        word = word.strip('.,;:!?')\n"
        "        if len(word) > len(best):\n"
        "            best = word\n"
        "    return best\n"
    ),
}  # fmt: skip


@torch.no_grad()
def away(reader: Callable[[Tensor], Tensor], name: str = "a story") -> float:
    """Return how far a model's logits are from those of transformers for a text: |difference| / |theirs|.

    Compared are the three logits that were largest there at each token, which are stored.

    Args:
        reader: ids [1, seq_len] -> logits [1, seq_len, vocab_size]. name: of one of TEXTS.
    """
    theirs = load_outside()["texts"][name]
    logits, wanted = reader(torch.tensor([theirs["ids"]]))[0], torch.tensor(theirs["logits"])
    found = logits.gather(1, torch.tensor(theirs["likeliest"]))
    return ((found - wanted).norm() / wanted.norm()).item()
