"""The interactive figures of the course in one list: what each shows, which function makes it, and where it stands.

The id is the one under which a learner's first touch is remembered. It says nothing about order: a new figure takes
the next free number.
"""

from __future__ import annotations

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


INTERACTIVE_FIGURES = (
    InteractiveFigure(
        "W1",
        "soft_lookup",
        "A query moves between keys, and its answer blends their values more or less sharply.",
        ("01",),
    ),
    InteractiveFigure(
        "W2",
        "dot_product",
        "Two vectors in the plane, and how their dot product grows with length and with closeness of direction.",
        ("01",),
    ),
    InteractiveFigure(
        "W3",
        "saturation",
        "The weights and gradients of a softmax as d_k grows, with and without the division by √d_k.",
        ("04",),
    ),
    InteractiveFigure(
        "W4",
        "position_dial",
        "A positional encoding as a set of clock hands, which a shift turns, each by its own angle.",
        ("06",),
    ),
    InteractiveFigure(
        "W5",
        "shuffle",
        "The same tokens in another order, before and after attention, with positions or without.",
        ("06",),
    ),
    InteractiveFigure(
        "W6",
        "mask_lab",
        "A mask painted cell by cell, with the scores and weights that follow and the leaks it leaves.",
        ("07",),
    ),
    InteractiveFigure(
        "W7",
        "head_splitter",
        "The shapes from X to the output, and where each number of Q goes when the heads are split.",
        ("08",),
    ),
    InteractiveFigure(
        "W9",
        "alignment",
        "The translator's cross-attention: which source words it reads for each word that it writes.",
        ("11",),
    ),
    InteractiveFigure(
        "W10",
        "decoder_stepper",
        "A translation written token by token, by greedy choice or by several beams.",
        ("14",),
    ),
    InteractiveFigure(
        "W11",
        "training_replay",
        "Two stored training runs side by side, step by step, with what each translates by then.",
        ("13",),
    ),
    InteractiveFigure(
        "W12",
        "cost_calculator",
        "The operations and memory of a stack of layers, and the length at which the pairs of tokens dominate.",
        ("16",),
    ),
    InteractiveFigure(
        "W13",
        "residual_and_norm",
        "The activations and gradients of a deep untrained stack, with and without residuals and norms.",
        ("09",),
    ),
    InteractiveFigure(
        "W14",
        "training_choices",
        "The target of label smoothing, and the learning rate of the warm-up schedule.",
        ("13",),
    ),
    InteractiveFigure(
        "W15",
        "model_map",
        "The whole model part by part, with the shape at each and the notebook that builds it.",
        ("12",),
    ),
    InteractiveFigure(
        "W16",
        "projection_stepper",
        "One token on its way through W_Q, W_K and W_V to scores, weights and output.",
        ("03",),
    ),
    InteractiveFigure(
        "W17",
        "token_length",
        "How the weights of softmax(X Xᵀ) move as one token's vector grows or shrinks.",
        ("02",),
    ),
    InteractiveFigure("W18", "bpe_stepper", "Byte-pair encoding of a few words, merge by merge.", ("05",)),
    InteractiveFigure(
        "W19",
        "embedding_plane",
        "The rows of an embedding table as points, before, during and after training.",
        ("05",),
    ),
    InteractiveFigure(
        "W20",
        "attention_view",
        "Any attention weights, all heads side by side or one of them large.",
        ("08",),
    ),
    InteractiveFigure(
        "W21",
        "encoder_walk",
        "“Show me the money” on its way through two encoder layers, with all numbers.",
        ("10",),
    ),
    InteractiveFigure(
        "W22",
        "patient_chart",
        "Curves, attention and probes of the clinic's broken models, beside those of a healthy one.",
        ("17",),
    ),
    InteractiveFigure(
        "W23",
        "claim_browser",
        "The claims of the course's sources, by text, verdict and notebook.",
        ("A",),
    ),
    InteractiveFigure(
        "W24",
        "attention_explorer",
        "Every attention of the translator, and what cutting one weight does to the translation.",
        ("15",),
    ),
    InteractiveFigure(
        "W25",
        "ablations",
        "What each part of the model is worth, left out of the training or taken out of the trained model.",
        ("13",),
    ),
    InteractiveFigure(
        "W26",
        "gradient_descent",
        "The loss of two numbers as a map, and the steps of gradient descent on it.",
        ("01",),
    ),
    InteractiveFigure(
        "W27",
        "deciding_word",
        "A word typed by the learner decides what bank means, until the one reading is cut.",
        ("00",),
    ),
    InteractiveFigure(
        "W28",
        "backward_walk",
        "The gradient on its way back through a decoder layer, fork by fork, soundly or with a slip.",
        ("18",),
    ),
    InteractiveFigure(
        "W29",
        "mask_dial",
        "A mask turned from causal over prefix to full, and which rows of which layer move with it.",
        ("19",),
    ),
    InteractiveFigure(
        "W30",
        "cache_dial",
        "Layers, heads of keys, window and context as dials, and the bytes that a cache then takes.",
        ("20",),
    ),
    InteractiveFigure(
        "W31",
        "two_heads",
        "Two heads that copy, position by position: where each looks, and what is said without one of them.",
        ("21",),
    ),
    InteractiveFigure(
        "W32",
        "speculation",
        "A sentence drafted and checked, call by call: which words stand, and how many calls that saves.",
        ("22",),
    ),
)
