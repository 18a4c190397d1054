"""The interactive figures of the course in one list: what each shows, what makes it, and which notebooks show it.

The id is the one under which a learner's first touch is remembered. It says nothing about order: a new figure takes
the next free number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class InteractiveFigure:
    """One interactive figure.

    Args:
        id: such as "W1"; no two figures share one.
        function: name of the function in `course.figures.widgets` that makes the panel.
        shows: one sentence.
        notebooks: numbers of the notebooks that show it.
    """

    id: str
    function: str
    shows: str
    notebooks: tuple[str, ...]


_LIST = """\
W1 soft_lookup 01
    A query moves between keys, and its answer blends their values more or less sharply.
W2 dot_product 01
    Two vectors in the plane, and how their dot product grows with length and with closeness of direction.
W3 saturation 04
    The weights and gradients of a softmax as d_k grows, with and without the division by √d_k.
W4 position_dial 06
    A positional encoding as a set of clock hands, which a shift turns, each by its own angle.
W5 shuffle 06
    The same tokens in another order, before and after attention, with positions or without.
W6 mask_lab 07
    A mask painted cell by cell, with the scores and weights that follow and the leaks it leaves.
W7 head_splitter 08
    The shapes from X to the output, and where each number of Q goes when the heads are split.
W9 alignment 11
    The translator's cross-attention: which source words it reads for each word that it writes.
W10 decoder_stepper 14
    A translation written token by token, by greedy choice or by several beams.
W11 training_replay 13
    Two stored training runs side by side, step by step, with what each translates by then.
W12 cost_calculator 16
    The operations and memory of a stack of layers, and the length at which the pairs of tokens dominate.
W13 residual_and_norm 09
    The activations and gradients of a deep untrained stack, with and without residuals and norms.
W14 training_choices 13
    The target of label smoothing, and the learning rate of the warm-up schedule.
W15 model_map 12
    The whole model part by part, with the shape at each and the notebook that builds it.
W16 projection_stepper 03
    One token on its way through W_Q, W_K and W_V to scores, weights and output.
W17 token_length 02
    How the weights of softmax(X Xᵀ) move as one token's vector grows or shrinks.
W18 bpe_stepper 05
    Byte-pair encoding of a few words, merge by merge.
W19 embedding_plane 05
    The rows of an embedding table as points, before, during and after training.
W20 attention_view 08
    Any attention weights, all heads side by side or one of them large.
W21 encoder_walk 10
    “Show me the money” on its way through two encoder layers, with all numbers.
W22 patient_chart 17
    Curves, attention and probes of the clinic's broken models, beside those of a healthy one.
W24 attention_explorer 15
    Every attention of the translator, and what cutting one weight does to the translation.
W25 ablations 13
    What each part of the model is worth, left out of the training or taken out of the trained model.
W26 gradient_descent 01
    The loss of two numbers as a map, and the steps of gradient descent on it.
W27 deciding_word 00
    A word typed by the learner decides what bank means, until the one reading is cut.
W28 backward_walk 18
    The gradient on its way back through a decoder layer, fork by fork, soundly or with a slip.
W29 mask_dial 19
    A mask turned from causal over prefix to full, and which rows of which layer move with it.
W30 cache_dial 20
    Layers, heads of keys, window and context as dials, and the bytes that a cache then takes.
W31 two_heads 21
    Two heads that copy, position by position: where each looks, and what is said without one of them.
W32 speculation 22
    A sentence drafted and checked, call by call: which words stand, and how many calls that saves.
W33 gathering 02
    Tokens of the plane that read one another, round after round, and where that takes them.
W34 writing 11
    The decoder at work: the words so far, the source words that it reads, and the word that comes.
W35 valley 13
    SGD, momentum and Adam in a narrow valley, with the rate, the memory and the noise to choose.
W36 next_word 23
    A real model answers a question word by word: what may come next, at the temperature of your choice.
W37 patching 24
    One vector of a prompt put into the run of a real model on another, and what it says then.
W38 rewarded 25
    A writer that a program rewards, step by step, with and without a price for leaving what it was.
"""


def _read(listed: str) -> Iterator[InteractiveFigure]:
    """Yield the figures of a list: a line with id, function and notebooks, and a line that says what it shows."""
    lines = listed.splitlines()
    for named, shows in zip(lines[::2], lines[1::2], strict=True):
        id, function, *notebooks = named.split()
        yield InteractiveFigure(id, function, shows.strip(), tuple(notebooks))


INTERACTIVE_FIGURES = tuple(_read(_LIST))
