"""Looking into a real language model: texts that repeat, its first token, and words of two senses (notebook 24)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..._files import DATA
from ...data.byte_level import ByteLevelTokenizer
from ...model import circuits, modern
from ...model.interventions import patch

Context = AbstractContextManager[Any] | None
Heads = Sequence[tuple[int, int]]

# Random tokens that repeat --------------------------------------------------------------------------------------------


def repeats(period: int = 24, seed: int = 0, count: int = 4) -> Tensor:
    """Return texts that begin with token 0 and say random tokens twice, [count, 1 + 2 · period]."""
    generator = torch.Generator().manual_seed(seed)
    half = torch.stack([torch.randperm(40_000, generator=generator)[:period] + 1000 for _ in range(count)])
    return torch.cat([torch.zeros(count, 1, dtype=torch.long), half, half], dim=1)


@torch.no_grad()
def loss_from(model: modern.LanguageModel, ids: Tensor, start: int, end: int | None = None) -> float:
    """Return the mean loss of the tokens from `start` + 1 on, up to `end`."""
    logits = model(ids)[:, start:-1]
    asked = ids[:, start + 1 :] if end is None else ids[:, start + 1 : end]
    return F.cross_entropy(logits[:, : asked.shape[1]].flatten(0, 1), asked.flatten()).item()


def repeat_loss(model: modern.LanguageModel, ids: Tensor, period: int, context: Context = None) -> float:
    """Return the loss on the repeat but for its first token, inside a context such as `ablate_heads(…)`."""
    with context or nullcontext():
        return loss_from(model, ids, period + 1)


def first_loss(model: modern.LanguageModel, ids: Tensor, period: int) -> float:
    """Return the loss while the tokens are new."""
    return loss_from(model, ids, 0, period + 1)


def like(heads: Heads, but: Heads, n_heads: int, seed: int = 0) -> list[tuple[int, int]]:
    """Return as many other heads of the same layers, drawn at random, none of them in `but`."""
    generator, found = torch.Generator().manual_seed(seed), list[tuple[int, int]]()
    for layer, _ in heads:
        free = [(layer, head) for head in range(n_heads) if (layer, head) not in [*but, *found]]
        found.append(free[int(torch.randint(len(free), (1,), generator=generator))])
    return found


# The first token ------------------------------------------------------------------------------------------------------

TEXTS = ("README.md", "CONTRIBUTING.md", "docs/scale.md", "docs/speed.md", "docs/promises.md")
LENGTH, COUNTED = 200, 80  # tokens of a text, and from which on the loss counts
WINDOWS, KEPT = (16, 64), (None, 0, 7)
FEATURE = 507  # of the stream, the largest number of a sink


def text(words: ByteLevelTokenizer, name: str) -> Tensor:
    """Return the first LENGTH tokens of a file of the course, [1, LENGTH]."""
    ids = words.encode((DATA.parent / name).read_text(encoding="utf-8"))[:LENGTH]
    return torch.tensor([ids])


def text_loss(model: modern.LanguageModel, ids: Tensor, context: Context = None) -> float:
    """Return the loss of a text from token COUNTED on, inside a context such as `cut(…)`."""
    with context or nullcontext():
        return loss_from(model, ids, COUNTED)


def share(weights: Sequence[Tensor], token: int) -> float:
    """Return the mean weight that later tokens, from 16 on, have on one token in layers 12 to 28."""
    rows = slice(max(16, token + 1), None)
    return torch.stack([layer[0, :, rows, token].mean() for layer in weights[12:29]]).mean().item()


def norm_at(streams: Sequence[Tensor], token: int) -> int:
    """Return the length of a token's vector in front of layer 13, rounded to whole numbers."""
    return round(streams[13][0, token].norm().item())


def norms(records: Mapping[str, Any]) -> dict[str, list[int]]:
    """Return how long a token's vector is, {token: one for each stored text}."""
    texts = list(records.values())
    return {name: [record["sinks"][name]["norm"] for record in texts] for name in texts[0]["sinks"]}


def window(n: int, size: int, kept: int | None = None) -> Tensor:
    """Return a mask [n, n]: each token reads the last `size`, itself included, and the one that is kept."""
    place = torch.arange(n)
    may = place[:, None] - place < size
    if kept is not None:
        may[:, kept] = True
    return may


def others(count: int = 200, width: int = 576) -> list[int]:
    """Return features of the stream, drawn at random, but not FEATURE."""
    drawn = torch.randperm(width, generator=torch.Generator().manual_seed(0)).tolist()
    return [feature for feature in drawn if feature not in (FEATURE, 439)][:count]


def silenced(
    model: modern.LanguageModel, layer: int, positions: list[int], features: list[int]
) -> AbstractContextManager[None]:
    """Set some numbers of these positions' streams in front of a layer to 0, inside the `with` block."""

    def zeroed(stream: Tensor) -> Tensor:
        new = stream.clone()
        new[..., features] = 0
        return new

    return patch(model, f"layers.{layer - 1}", zeroed, positions=positions)


# Words of two senses --------------------------------------------------------------------------------------------------

FRAMES = (
    "They talked about the {}. Then they saw the {} and the",
    "She thought of the {} while she looked at the {}, near the",
    "First came the {}; later came the {} with the",
    "It was about a {}. There was also a {}, and next to it a",
    "He dreamt of the {}, then of the {}, then of the",
)
SENSES = {  # three cues of either sense, words that follow in one and in the other, and a plain noun
    "bank": (
        "river/loan boat/money reed/salary",
        "grass sand shore mud trees water edge",
        "manager clerk teller account office counter customer",
        "road",
    ),
    "spring": (
        "winter/engine garden/machine weather/metal",
        "flowers flower summer autumn birds sun rain",
        "wheel screw wire lever steel gear",
        "table",
    ),
    "match": (
        "candle/football smoke/team fire/tennis",
        "flame lamp stick paper wood ash fuel",
        "players goal crowd fans stadium referee coach",
        "house",
    ),
}
BEFORE = 6  # the layer in front of which vectors are exchanged


def nouns(word: str) -> dict[str, str]:
    """Return the word itself, and the plain noun that takes its place as a control."""
    return {"the word": word, "a plain noun": SENSES[word][3]}


def routes(records: Mapping[str, Any]) -> dict[str, dict[str, list[float]]]:
    """Return the stored shares of a cue's effect, {through what: {noun: [its share]}}."""
    found: dict[str, dict[str, list[float]]] = {"through the noun": {}, "through the cue": {}}
    for kind in ("the word", "a plain noun"):
        for word, record in records.items():
            for title, shares in found.items():
                label = word if kind == "the word" else f"{SENSES[word][3]} (plain, for {word})"
                shares[label] = [record[kind]["shares"][title.rpartition(" ")[2]]]
    return found


def sense_of(words: ByteLevelTokenizer, word: str, logits: Tensor) -> Tensor:
    """Return the log-odds of the first sense's words against the second's: [..., vocab_size] -> [...]."""
    first, second = (_single(words, SENSES[word][place]) for place in (1, 2))
    return logits[..., first].logsumexp(dim=-1) - logits[..., second].logsumexp(dim=-1)


def _single(words: ByteLevelTokenizer, listed: str) -> list[int]:
    ids = [words.encode(" " + word) for word in listed.split()]
    return [each[0] for each in ids if len(each) == 1]


def cued(words: ByteLevelTokenizer, frame: str, cues: Sequence[str], noun: str) -> Tensor | None:
    """Return a frame's text with each cue, [cues, seq_len]; None where they are not equally long."""
    rows = [words.encode(frame.format(cue, noun)) for cue in cues]
    return torch.tensor(rows) if len({len(row) for row in rows}) == 1 else None


@torch.no_grad()
def cue_effects(model: modern.LanguageModel, words: ByteLevelTokenizer, word: str, noun: str) -> dict[str, Any]:
    """Return the cue's effect in nats and the shares of it that pass through the noun's and the cue's own vectors.

    The shares are of sums over cues and frames, since a small effect makes a wild ratio.
    """
    [token] = words.encode(" " + noun)
    sums = dict.fromkeys(("effect", "noun", "cue"), 0.0)
    count = 0
    for frame in FRAMES:
        for cues in SENSES[word][0].split():
            ids = cued(words, frame, cues.split("/"), noun)
            if ids is None:
                continue
            count += 1
            for name, value in _one_effect(model, words, word, ids, token).items():
                sums[name] += value
    shares = {name: round(value / sums["effect"], 3) for name, value in sums.items() if name != "effect"}
    return {"texts": count, "effect": round(sums["effect"] / count, 2), "shares": shares}


def _one_effect(
    model: modern.LanguageModel, words: ByteLevelTokenizer, word: str, ids: Tensor, token: int
) -> dict[str, float]:
    differs = (ids[0] != ids[1]).nonzero()[:, 0].tolist()
    at = int((ids[0] == token).nonzero()[-1])

    def odds(logits: Tensor) -> Tensor:
        return sense_of(words, word, logits)

    first, second = odds(model(ids)[:, -1]).tolist()
    patched = circuits.patch_streams(model, ids[1:], ids[:1], odds, layers=[BEFORE], positions=[[at], differs])
    noun, cue = (float(value) - second for value in patched[0, :, 0])
    return {"effect": first - second, "noun": noun, "cue": cue}
