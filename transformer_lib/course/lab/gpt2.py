"""What notebook 05 shows of a real model's tokenizer: GPT-2's merges, as far as a few texts need them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

TEXTS = ("Ġstrawberry", "ĠSolidGoldMagikarp", "12345", *(str(n) for n in range(1000, 1010)))
"""All merges that fit into one of these are below, so these, and parts of them, are cut as GPT-2 cuts them."""

# From the public list of the 50,000 (Radford et al. 2019, modified MIT licence): "position left right", counted
# from 0. Ġ is how the list writes a space.
_EXCERPT = (
    "7 e r|8 Ġ s|27 a r|45 s t|55 Ġ S|56 i d|79 l d|80 Ġs t|93 o l|107 a g|149 0 0|174 r a|230 0 1|271 b er|"
    "307 r y|451 a w|471 o ld|574 00 0|684 1 0|709 Ġst r|809 1 2|878 i k|1094 b e|1150 ĠS o|1575 ra w|"
    "1698 2 3|1957 t r|1975 4 5|2140 S o|2280 st r|2426 3 4|2457 0 5|2663 0 8|2675 0 9|2742 0 7|2743 0 2|"
    "2767 0 4|2808 1 00|2814 0 3|3056 0 6|3278 Ġst ra|4038 ĠS ol|4272 l i|4658 k a|4861 ar p|4991 G o|"
    "6740 er ry|7800 er r|8042 00 1|8140 ber ry|8976 ik a|9279 t ra|9907 12 3|9924 ol id|10850 ol i|"
    "10989 00 3|11788 st ra|12141 g i|12569 1 000|13050 G old|13180 M ag|14531 Ġst raw|15575 ĠSol id|"
    "17757 ag i|20806 r r|20814 k ar|21211 M a|21345 00 2|22288 00 5|22658 00 4|24153 23 4|25001 00 8|"
    "25560 00 7|27456 3 45|27785 00 6|28438 00 9|36594 ik arp|36693 S ol|39090 w b|40980 Ġstraw berry|"
    "41282 Mag ikarp|41946 Gold Magikarp|43197 ĠSolid GoldMagikarp|44062 100 7|46677 S olid|47449 100 1"
)
_BYTES = 256  # tokens of a single byte, which have the first ids
_PLAIN = 33  # code of "!", which has id 0; the plain characters follow in the order of their codes
_TIKTOKEN = "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4"  # the name under which tiktoken keeps the file of GPT-2


def _positions() -> dict[tuple[str, str], int]:
    rows = [merge.split(" ") for merge in _EXCERPT.split("|")]
    return {(left, right): int(position) for position, left, right in rows}


POSITIONS = _positions()
MERGES = list(POSITIONS)
"""The pairs, the first learned first."""


def token_id(token: str) -> int:
    """Return the id that GPT-2 gives to a token: first the bytes, then what the merges make, in their order.

    Raises:
        ValueError: the excerpt does not make this token.
    """
    if len(token) == 1 and _PLAIN <= ord(token) < 127:
        return ord(token) - _PLAIN
    for (left, right), position in POSITIONS.items():
        if left + right == token:
            return _BYTES + position
    raise ValueError(f"token must be a plain character or made by the merges of the excerpt, got {token!r}")


def on_disk() -> Callable[[str], list[str]] | None:
    """Return GPT-2's whole tokenizer, a function from text to tokens, if a library and its files are here; else None.

    Looked for are the files that `huggingface_hub` and `tiktoken` keep. Nothing is downloaded.
    """
    return _from_hub() or _from_tiktoken()


def _from_hub() -> Callable[[str], list[str]] | None:
    if not (importlib.util.find_spec("huggingface_hub") and importlib.util.find_spec("tokenizers")):
        return None
    kept, tokenizers = importlib.import_module("huggingface_hub"), importlib.import_module("tokenizers")
    for name in ("openai-community/gpt2", "gpt2"):
        path = kept.try_to_load_from_cache(name, "tokenizer.json")
        if isinstance(path, str):
            tokenizer = tokenizers.Tokenizer.from_file(path)
            return lambda text: tokenizer.encode(text).tokens
    return None


def _from_tiktoken() -> Callable[[str], list[str]] | None:
    folder = os.environ.get("TIKTOKEN_CACHE_DIR") or os.environ.get("DATA_GYM_CACHE_DIR")
    kept = Path(folder or Path(tempfile.gettempdir()) / "data-gym-cache") / _TIKTOKEN
    if not (importlib.util.find_spec("tiktoken") and kept.exists()):
        return None
    encoding = importlib.import_module("tiktoken").get_encoding("r50k_base")
    return lambda text: [encoding.decode([token]).replace(" ", "Ġ") for token in encoding.encode(text)]
