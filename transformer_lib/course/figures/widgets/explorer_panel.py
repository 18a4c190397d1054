"""W24, the attention explorer: every layer and head of the translator, and what cutting one entry changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....decoding.sampling import greedy_decode
from ....decoding.translator import Translator, load_trained
from ....model.evaluating import evaluating
from ....model.interventions import masked
from ....model.recording import record_attention
from ....model.transformer import Transformer
from ..plotting.base import check_sentences
from ..svg import Picture
from ..svg.cells import short_labels, top_words
from .controls import choice, number, switch
from .heads_panel import draw_attention
from .panel import Panel
from .script import Script

SENTENCES = (
    "The man saw the bank near the river.",
    "The dog did not cross the street because it was too tired.",
    "The dog did not cross the street because it was too wide.",
    "The man saw the bank near the money.",
    "The child saw the bat near the ball.",
)
PARTS = {
    "encoder": "encoder.layers.{}.self_attention",
    "decoder": "decoder.layers.{}.self_attention",
    "cross": "decoder.layers.{}.cross_attention",
}


@dataclass(frozen=True)
class Recorded:
    """A sentence with its translation, all its weights, and ln P of each word that the model wrote."""

    model: Transformer
    src: Tensor  # [1, src_len]
    tgt: Tensor  # [1, tgt_len + 1], from bos to eos
    source: tuple[str, ...]
    target: tuple[str, ...]  # the same as words
    weights: dict[str, np.ndarray]  # {layer name: [n_heads, q_len, k_len]}
    log_p: Tensor  # [tgt_len]

    def tokens(self, part: str) -> tuple[Sequence[str], Sequence[str]]:
        """Return who reads and who is read; a row of the decoder is named after the word that it reads."""
        reads = self.target[:-1]
        return {"encoder": (self.source, self.source), "decoder": (reads, reads), "cross": (reads, self.source)}[part]


def attention_explorer(
    translator: Translator | None = None,
    sentences: Sequence[str] = SENTENCES,
    *,
    sentence: int = 1,
    part: str = "encoder",
    layer: int = 2,
    head: int | str = "all",
    token: int = 1,
    cut: int = 0,
    everywhere: bool = False,
) -> Panel:
    """Look through every attention while `translator` (the trained one by default) translates `sentences`.

    Args:
        translator: knows every word of the sentences.
        sentence, layer, head, token: shown first, from 1; head may be "all".
        part: "encoder", "decoder" (self-attention) or "cross".
        cut: number of the key that `token` may not read, in this layer and head; 0 cuts nothing.
        everywhere: cut it in both layers and all heads of this kind of attention.
    Raises:
        TypeError, ValueError: `sentences` is one string or none, or has a word that the translator does not know.
    """
    check_sentences(sentences)
    translator = translator or load_trained()
    shown = [recorded(translator, text) for text in sentences]
    n_layers, n_heads = translator.model.config.n_layers, translator.model.config.n_heads
    longest = max(len(words) for entry in shown for words in (entry.source, entry.target[:-1]))

    def draw(sentence: int, **chosen: Any) -> Picture:
        return draw_explorer(shown[sentence - 1], **chosen)

    controls = {
        "sentence": number("sentence", sentence, 1, len(shown)),
        "part": choice("attention", list(PARTS), part),
        "layer": choice("layer", range(1, n_layers + 1), layer),
        "head": choice("head", ["all", *range(1, n_heads + 1)], head),
        "show": choice("one head as", ["map", "lines"]),
        "token": number("query token", token, 1, longest),
        "cut": number("cut its key", cut, 0, longest),
        "everywhere": switch("cut in all layers and heads", everywhere),
    }

    def told() -> dict[str, Any]:
        longest = draw_explorer(shown[-1], "cross", 2, "all", "map", 2, 2, everywhere=True).says
        return {"sentences": list(map(_told, sentences, shown)), "longest": longest}

    script = Script("cutting", ("cut", "everywhere"), told)
    return Panel(draw, controls, widget_id="W24", carried={"show": ("map",)}, script=script)


def _told(text: str, entry: Recorded) -> dict[str, Any]:
    """Return what a script must know of a sentence to tell the effect of a cut as `draw_explorer` does."""
    names = {part: list(map(short_labels, entry.tokens(part))) for part in PARTS}
    return {"text": text, "target": entry.tgt[0, 1:].tolist(), "writes": entry.target[1:], "names": names}


@torch.no_grad()
def recorded(translator: Translator, text: str) -> Recorded:
    """Translate greedily and record everything in one pass with the translation given."""
    model = translator.model
    src = translator.src_tokenizer.encode_batch([text])
    tgt = greedy_decode(model, src, max_new_tokens=model.config.max_len - 1)
    with evaluating(model), record_attention(model) as record:
        log_p = model(src, tgt[:, :-1]).log_softmax(dim=-1)[0]
    weights = {name: grid[0].double().numpy() for name, grid in record.items()}
    source = tuple(translator.src_tokenizer.words[i] for i in src[0].tolist())
    target = tuple(translator.tgt_tokenizer.words[i] for i in tgt[0].tolist())
    chosen = log_p.gather(-1, tgt[0, 1:, None])[:, 0]
    return Recorded(model, src, tgt, source, target, weights, chosen)


@torch.no_grad()
def cut_effect(
    entry: Recorded, names: Sequence[str], head: int | str, row: int, column: int
) -> tuple[float, list[int]]:
    """Forbid one entry in the layers `names`, in one head (from 1) or "all".

    Return the change of ln P of the whole translation, and the positions (from 0) of the words that would no longer
    be the likeliest, given the earlier ones.
    """
    grid = entry.weights[names[0]]
    may = torch.ones(1, *grid.shape, dtype=torch.bool)
    may[0, slice(None) if head == "all" else int(head) - 1, row, column] = False
    with ExitStack() as stack:
        for name in names:
            stack.enter_context(masked(entry.model.get_submodule(name), may))
        stack.enter_context(evaluating(entry.model))
        stack.enter_context(record_attention(entry.model))  # the explicit path: a row that sees nothing is no NaN
        log_p = entry.model(entry.src, entry.tgt[:, :-1]).log_softmax(dim=-1)[0]
    labels = entry.tgt[0, 1:]
    changed = (log_p.argmax(dim=-1) != labels).nonzero()[:, 0].tolist()
    return (log_p.gather(-1, labels[:, None])[:, 0] - entry.log_p).sum().item(), changed


def draw_explorer(
    entry: Recorded, part: str, layer: int, head: int | str, show: str, token: int, cut: int, everywhere: bool = False
) -> Picture:
    """Draw the weights of one layer, and tell the row of ``token`` and the effect of cutting its key ``cut``."""
    name = PARTS[part].format(layer - 1)
    q_tokens, k_tokens = entry.tokens(part)
    token, cut = min(token, len(q_tokens)), min(cut, len(k_tokens))
    grid = entry.weights[name]
    mask = np.tri(len(q_tokens), dtype=bool) if part == "decoder" else None
    where = f"{part}, layer {layer}"
    picture = draw_attention(grid, q_tokens, k_tokens, head, show, token, mask, where)
    row = grid.mean(axis=0)[token - 1] if head == "all" else grid[int(head) - 1][token - 1]
    labels, readers = short_labels(k_tokens), short_labels(q_tokens)
    who = "mean of heads" if head == "all" else f"head {head}"
    says = f"{where}, {who}: “{readers[token - 1]}” reads {top_words(row, labels)}. "
    where_cut = " in all layers and heads" if everywhere else ""
    if cut == 0:
        says += "Nothing is cut."
    elif row[cut - 1] == 0:
        says += f"It may not read “{labels[cut - 1]}” anyway."
    else:
        names = [PARTS[part].format(n) for n in range(entry.model.config.n_layers)] if everywhere else [name]
        effect = cut_effect(entry, names, "all" if everywhere else head, token - 1, cut - 1)
        says += f"Cut “{labels[cut - 1]}” ({row[cut - 1]:.2f}){where_cut}: {_in_words(entry, *effect)}"
    return replace(picture, says=says, alt=f"{picture.alt} {says}")


def _in_words(entry: Recorded, effect: float, changed: list[int]) -> str:
    words = entry.target[1:]
    named = ", ".join(f"“{words[t]}”" for t in changed) or "no word"
    return f"ln P of the translation changes by {round(effect, 2) + 0.0:+.2f}; no longer the likeliest: {named}."
