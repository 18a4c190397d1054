"""Watch a training run: a curve that grows, and sentences that turn into German, while the cell runs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from ....decoding.translator import Translator
from ....model.evaluating import evaluating
from ...progress import in_kernel, static
from ..svg.elements import Picture, escape
from ..svg.training_run import draw_run


class Watch:
    """Draws a run as it goes; give it to `tl.train` as ``on_step``.

    >>> with tl.widgets.watch(translator, ["The man saw the bank."]) as watch:
    ...     tl.train(translator.model, batches, epochs=3, on_step=watch)

    The model computes the same as without it: it translates in evaluation mode, by greedy decoding, which draws no
    random numbers. It draws in a notebook that somebody works in, and nowhere else; `losses` are kept everywhere.
    """

    def __init__(self, translator: Translator | None, sentences: Sequence[str], last: int | None, every: float) -> None:
        """See `watch`."""
        self.losses: list[float] = []
        self._translator, self._sentences = translator, list(sentences)
        self._last, self._every = last, every
        self._next, self._shown = 0.0, None

    def __call__(self, step: int, loss: float) -> None:
        """Take the loss of a step, and draw when it is time to."""
        self.losses.append(float(loss))
        if time.monotonic() >= self._next and self._live():
            self._draw()
            self._next = time.monotonic() + self._every

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Draw what the run ended with, also where it was interrupted."""
        if self.losses and self._live():
            self._draw()

    def picture(self) -> Picture:
        """Return the picture of the run so far, with translations of now."""
        samples: dict[str, str] = {}
        if self._translator and self._sentences:
            with evaluating(self._translator.model):
                samples = dict(zip(self._sentences, self._translator.translate(self._sentences), strict=True))
        return draw_run(self.losses, samples, self._last)

    def _live(self) -> bool:
        return in_kernel() and not static()

    def _draw(self) -> None:
        from IPython.display import display

        picture = self.picture()
        html = f"<p><b>{escape(picture.says)}</b></p>{picture.saved_html}"
        data = {"text/html": html, "text/plain": f"{picture.says}. {picture.alt}"}
        if self._shown is None:
            self._shown = display(data, raw=True, display_id=True)
        else:
            self._shown.update(data, raw=True)


def watch(
    translator: Translator | None = None, sentences: Sequence[str] = (), *, last: int | None = None, every: float = 1.0
) -> Watch:
    """Return what draws a training run as it goes: its loss, and translations that improve.

    Args:
        translator: whose model is trained; without one, the loss alone is drawn.
        sentences: to be translated at each drawing; a few, since each costs a moment.
        last: steps of the whole run, where known. every: seconds between two drawings.
    Raises:
        ValueError: sentences without a translator, or with a word that it does not know; or `every` is not positive.
    """
    if sentences and translator is None:
        raise ValueError("translator must be given where there are sentences to translate, got None")
    if not every > 0:
        raise ValueError(f"every must be positive, got {every}")
    if translator and sentences:
        translator.src_tokenizer.encode_batch(list(sentences))  # an unknown word is said now, not amid the training
    return Watch(translator, sentences, last, every)
