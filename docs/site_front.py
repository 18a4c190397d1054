"""The front page's translator as it looks before its script runs, on paper and without JavaScript: words and arcs."""

from __future__ import annotations

import html
import json

import torch

import transformer_lib as tl
from transformer_lib.data.context_generator import lexicon

WORD, CUE = "bank", "money"
READER = 4  # the ambiguous word's place in "The man saw the bank near the money ."
HEADS = 4
WORDS = ("bank", "bat", "seal", "ruler", "bow", "match", "letter", "organ")  # those that a visitor may choose


def sentence(word: str, cue: str) -> str:
    """Return the sentence that the page begins with."""
    return f"The man saw the {word} near the {cue}."


def cues() -> dict[str, list[str]]:
    """Return each of WORDS with words that decide its sense; first those that a cut makes the translator forget.

    Without any cue it falls back on one sense of a word, so that cutting shows something only where the other is meant.
    """
    translator = tl.load_trained()
    pairs = [(word, cue) for word in WORDS for sense in lexicon.AMBIGUOUS[word] for cue in sense.cues[:3]]
    texts = [sentence(word, cue) for word, cue in pairs]
    whole = translator.translate(texts)
    with tl.cut(translator.model, query=READER, key=READER + 3):
        cut = translator.translate(texts)
    found: dict[str, list[tuple[bool, str]]] = {}
    for (word, cue), before, after in zip(pairs, whole, cut, strict=True):
        found.setdefault(word, []).append((before == after, cue))
    return {word: [cue for _, cue in sorted(each, key=lambda entry: entry[0])] for word, each in found.items()}


def reading(text: str) -> tuple[list[str], list[float]]:
    """Return the words of a sentence, and how much the reader attends to each: the mean over all heads."""
    translator = tl.load_trained()
    src = translator.src_tokenizer.encode_batch([text])
    with tl.record_attention(translator.model) as record, torch.no_grad():
        translator.model.encode(src)
    rows = torch.cat([weights[0, :, READER] for name, weights in record.items() if name.startswith("encoder")])
    return translator.src_tokenizer.tokenize(text), rows.mean(dim=0).tolist()


def markup() -> str:
    """Return the translator's part of the front page as HTML, in one piece without blank lines."""
    text = sentence(WORD, CUE)
    tokens, weights = reading(text)
    (german,) = tl.load_trained().translate([text])
    columns = "".join(
        f'<div class="token"><span class="word{" reader" if key == READER else ""}">{html.escape(token)}</span>'
        f'<span class="weight{" loud" if weight >= 0.3 else ""}">{f"{weight:.2f}".removeprefix("0")}</span></div>'
        for key, (token, weight) in enumerate(zip(tokens, weights, strict=True))
    )
    filled = {
        "START": html.escape(json.dumps({"word": WORD, "cue": CUE, "reader": READER})),
        "CUES": html.escape(json.dumps(cues())),
        "WORD": WORD,
        "CUE": CUE,
        "COLUMNS": columns,
        "GERMAN": html.escape(german),
        "VIEWS": _views(),
    }
    made = TEMPLATE
    for name, value in filled.items():
        made = made.replace(f"«{name}»", value)
    return "\n".join(line for line in made.splitlines() if line.strip())


def _views() -> str:
    layers = [f'<option value="layer {n}">layer {n + 1}, its 4 heads</option>' for n in range(2)]
    heads = [
        f'<option value="head {layer} {head}">layer {layer + 1}, head {head + 1}</option>'
        for layer in range(2)
        for head in range(HEADS)
    ]
    return "".join(['<option value="all">all 8 heads</option>', *layers, *heads])


TEMPLATE = """
<section class="front" data-front="box" data-start="«START»" data-cues="«CUES»" aria-label="A translator to try">
<form class="asked"><label>The man saw the <span data-front="ambiguous">«WORD»</span> near the
<input data-front="cue" value="«CUE»" list="known" size="10" autocapitalize="off" autocomplete="off" spellcheck="false"
aria-label="last word"></label><datalist id="known" data-front="known"></datalist>
<span class="chips" data-front="cues" role="group" aria-label="last words to try"></span></form>
<div class="reading" tabindex="-1">
<svg data-front="arcs" aria-hidden="true" height="96"></svg>
<div class="tokens" data-front="tokens">«COLUMNS»</div></div>
<p class="german" lang="de" data-front="german" role="status" aria-live="polite">«GERMAN»</p>
<p class="note" data-front="note" role="status" aria-live="polite">Loading the translator, 1 MB …</p>
<div class="chips words" data-front="words" role="group" aria-label="words with two meanings"></div>
<details class="more"><summary>Look into single heads, or write a sentence of your own</summary>
<form><p><label>What is shown, and cut: <select data-front="view">«VIEWS»</select></label>
<button type="button" data-front="reset" disabled>put all connections back</button></p>
<p><label>Your sentence, of the words that it knows: <input data-front="sentence" size="44" autocomplete="off"
placeholder="The dog did not cross the street because it was too tired."></label></p></form></details>
</section>
"""
