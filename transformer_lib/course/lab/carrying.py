"""How the sense of a noun gets from its cue into its vector, step by step, and what cuts do to it (notebook 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from ...decoding.translator import Translator
from ...model.masks import padding_mask
from . import cuts, questions, sense_vectors, stored
from .questions import Questions
from .sense_readers import Sentences, levels
from .senses import load_senses

load_results = stored.loader("carrying.json")
SUBLAYERS = ("attention 1", "feed-forward 1", "attention 2", "feed-forward 2")
_SAID = {  # what the figure of the routes shows, and how it is said there
    "another cut": "noun reads no first token",
    "cut in both": "noun reads no cue",
    "decoder reads no cue": "decoder reads no cue",
    "both routes closed": "both routes closed",
    "only this one": "all cut but noun reads cue",
}
Cut = Callable[[Any], AbstractContextManager[None]]  # of sentences with `word` and `cue`


def stations(translator: Translator, src: Tensor) -> list[Tensor]:
    """Return all vectors [n, src_len, d_model] as they enter the encoder, and after each of its sub-layers."""
    x, mask = levels(translator, src)[0], padding_mask(src, pad_id=translator.model.config.pad_id)
    passed = [x]
    with torch.no_grad():
        for layer in translator.model.encoder.layers:
            y = layer.self_attention_residual.norm(x + layer.self_attention(x, x, x, mask))
            x = layer.feed_forward_residual.norm(y + layer.feed_forward(y))
            passed += [y, x]
    return passed


def gaps(translator: Translator, word: str) -> list[float]:
    """Return how far apart the two senses of a noun are on entering and after each sub-layer, on one and the same axis.

    The axis leads from one sense's mean to the other's, over all training sentences, after the last layer. What is
    measured on it are the means of the sentences of `sense_vectors`.

    Raises:
        ValueError: the corpus has no such ambiguous noun, or one with more than two senses.
    """
    texts = sense_vectors.sentences(word)
    if len(texts) != 2:
        raise ValueError(f"word must have two senses, got {word!r} with {len(texts)}")
    vectors, nouns = sense_vectors.in_training(translator, word)
    first, second = ([noun == sense.split()[-1] for noun in nouns] for sense in texts)
    axis = vectors[second].mean(dim=0) - vectors[first].mean(dim=0)
    axis = axis / axis.norm()
    src = [translator.src_tokenizer.encode_batch(group) for group in texts.values()]
    passed = zip(*(stations(translator, ids) for ids in src), strict=True)
    return [((b - a) @ axis).item() for a, b in ((x[:, sense_vectors.NOUN].mean(0) for x in pair) for pair in passed)]


def words() -> list[str]:
    """Return the ambiguous nouns with two senses."""
    return [word for word, senses in sense_vectors.lexicon().items() if len(senses) == 2]


def largest_step(at: Sequence[float]) -> str:
    """Return which of the SUBLAYERS moves the senses furthest apart, from what `gaps` returns."""
    steps = [after - before for before, after in zip(at, at[1:], strict=False)]
    return SUBLAYERS[steps.index(max(steps))]


def nouns_at(step: str, measured: Mapping[str, Sequence[float]]) -> int:
    """Return how many nouns have this one of the SUBLAYERS as their `largest_step`; measured {noun: `gaps`}."""
    return sum(largest_step(at) == step for at in measured.values())


def decisions(models: Mapping[str, Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return {what is cut: the share decided rightly of each translator}, from the stored `models`."""
    return {text: [found["decided"][name] for found in models.values()] for name, text in _SAID.items()}


def ours_and_others(measured: Mapping[str, Sequence[float]]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return {name: [value of the course's translator]} and {name: values of the others}; the course's comes first."""
    return {name: [*each[:1]] for name, each in measured.items()}, {
        name: [*each[1:]] for name, each in measured.items()
    }


class Reader:
    """A translator, the sentences that teach the probe, and the held-out ones that are asked."""

    def __init__(self, translator: Translator, *, every: int = 4, asked_every: int = 1) -> None:
        splits = load_senses()[2]
        self.model = translator.model
        self.known = Sentences(translator, splits["train"], every=every)
        self.asked = Sentences(translator, splits["heldout"], every=asked_every)
        self.batch = Questions(translator, splits["heldout"].pairs[::asked_every])

    def read(self, known: Tensor, asked: Tensor) -> Tensor:
        """Return whether the nearest mean of the vectors `known` gives the sense of those `asked`, [n]."""
        means = torch.stack([known[self.known.labels == sense].mean(dim=0) for sense in range(len(load_senses()[1]))])
        return self.asked.right(-torch.cdist(asked, means))

    def read_under(self, cut: Cut) -> Tensor:
        """Return what a probe of the noun reads that is taught and asked under the cut, [n]."""
        return self.read(*(sentences.noun_under(cut(sentences)) for sentences in (self.known, self.asked)))

    def decides_under(self, *cut: Cut) -> Tensor:
        """Return whether the right translation is likelier than those with another sense under all these cuts, [n]."""
        with all_of(made(self.batch) for made in cut):
            return questions.margins(self.model, self.batch) > 0


@contextmanager
def all_of(managers: Iterable[AbstractContextManager[None]]) -> Iterator[None]:
    """Enter all of the context managers."""
    with ExitStack() as stack:
        for manager in managers:
            stack.enter_context(manager)
        yield


def share(right: Tensor) -> float:
    """Return the share of True, to three digits."""
    return round(right.double().mean().item(), 3)


def interventions(reader: Reader) -> dict[str, Cut]:
    """Return {what is cut in the encoder: a function of sentences}."""
    model = reader.model
    return {
        "nothing cut": lambda s: cuts.cut_rows(model, s, s.word, s.cue, layers=[]),
        "cut in layer 1": lambda s: cuts.cut_rows(model, s, s.word, s.cue, layers=[0]),
        "cut in layer 2": lambda s: cuts.cut_rows(model, s, s.word, s.cue, layers=[1]),
        "cut in both": lambda s: cuts.cut_rows(model, s, s.word, s.cue),
        "another cut": lambda s: cuts.cut_rows(model, s, s.word, 0 * s.word),
        "only this one": lambda s: cuts.only(model, s, s.word, s.cue),
    }


def measure(translator: Translator, **sizes: int) -> dict[str, Any]:
    """Return all that is stored about one translator; `sizes` as those of `Reader`."""
    reader = Reader(translator, **sizes)
    made = interventions(reader)

    def blind(asked: Questions) -> AbstractContextManager[None]:
        return cuts.hidden(reader.model, asked, asked.cue)

    def uninformed(asked: Questions) -> AbstractContextManager[None]:
        return cuts.hidden(reader.model, asked, 0 * asked.cue)

    by_decoder, crane = reader.decides_under(blind), torch.tensor([p.word == "crane" for p in reader.batch.pairs])
    uncut = reader.read_under(made["nothing cut"])
    return {
        "read": {name: share(reader.read_under(cut)) for name, cut in made.items()},
        "decided": {name: share(reader.decides_under(cut)) for name, cut in made.items()}
        | {
            "decoder reads no cue": share(by_decoder),
            "decoder reads no first token": share(reader.decides_under(uninformed)),
            "both routes closed": share(reader.decides_under(made["cut in both"], blind)),
        },
        "crane": {"read": share(uncut[crane]), "decided": share(by_decoder[crane])},
        "gaps": {word: [round(gap, 3) for gap in gaps(translator, word)] for word in words()},
    }
