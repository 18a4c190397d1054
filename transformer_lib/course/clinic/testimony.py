"""Which instrument can speak for which fault, and why; and what else would make its number look the same.

An instrument can speak for a fault when the wrong line stands in what it looks at, so that its number is off *because*
of that line. Many others are off in a model with the fault, since such a model learns something else: that is no
evidence, for a model that learned something else for another reason shows it, too.
"""

from __future__ import annotations

RESULTS = {
    "first loss / ln V",
    "last loss",
    "training accuracy",
    "teacher-forced",
    "largest weight",
    "reverses",
    "reverses, padded",
}
"""What came of a training: other rates, seeds or numbers of steps change it, so it does not show what is broken."""

SPEAKS = {
    "target not shifted": {
        "copies": "what is read is what must be said, so the model says again what it has just read",
        "labels right": "each label is the token that is read there, one position too early",
    },
    "causal mask upside down": {
        "weight on the future": "the mask lets through what it should hide",
        "future": "a row that sees later tokens moves with them",
    },
    "softmax over the queries": {
        "row sums": "the weights of each key sum to one, so those of a query do not",
        "future": "later queries are in the sum that every weight is divided by",
        "padding": "padding is a query, too, and is in that sum",
    },
    "padding counted in the loss": {
        "reported / real loss": "the two differ by nothing but the padding",
    },
    "scores not scaled": {
        "score factor": "it measures the very factor that was left out",
    },
    "dropout in evaluation": {
        "repeat": "nothing was changed between the two passes, so what differs was drawn",
        "future": "any two passes differ, these two included",
        "padding": "any two passes differ, these two included",
        "alone": "any two passes differ, these two included",
    },
    "positions lost": {
        "order": "without positions, a letter has the same row of memory wherever it is",
        "position factor": "it measures how much of the positions enters",
    },
    "embeddings not scaled": {
        "embedding factor": "it measures the very factor that was left out",
    },
    "memory not masked": {
        "weight on padding": "with the mask in place, this weight would be exactly 0",
        "padding": "a row that reads padding moves when there is more of it",
    },
    "encoder not trained": {
        "tensors standing still": "what gets no gradient does not move",
    },
    "feed-forward left out": {
        "tensors standing still": "what is not used gets no gradient and does not move",
    },
    "gradients not cleared": {
        "gradient mismatch": "it compares the gradient of a step with that of the step's own batch",
    },
    "rate ten times too high": {
        "first movement / rate": "Adam's first step is as long as the rate",
    },
    "rate a hundred times too low": {
        "first movement / rate": "Adam's first step is as long as the rate",
    },
}
"""For each fault, the instruments whose number is off because of its wrong line, each with the reason."""

_RESULT = ("what came of the training", "the rate, the seed or the number of steps were another")
SHOWS = dict.fromkeys(RESULTS, _RESULT) | {
    "first loss / ln V": ("the loss before anything was learned", "the weights had been drawn larger or smaller"),
    "reported / real loss": ("how the script takes its mean", "anything but real tokens were counted"),
    "copies": ("how often the model says what it has just read", "it had learned little, for whatever reason"),
    "fresh rows": ("how many different rows the training draws", "rows came again and again"),
    "labels used": ("which tokens are ever asked for", "one token were never asked for"),
    "labels right": ("whether the labels are what the task asks", "labels were mixed up, or mistyped"),
    "row sums": ("whether the weights of a query sum to one", "weights got lost, or were counted twice"),
    "weight on the future": ("what the decoder's mask lets through", "that mask were wrong"),
    "weight on padding": ("what the padding masks let through", "one of these masks were missing"),
    "embedding factor": ("how strongly embeddings enter", "anything disturbed what enters, even chance"),
    "position factor": ("how strongly positions enter", "anything disturbed what enters, even chance"),
    "score factor": ("how steeply weights follow scores", "anything else bent the weights, even chance"),
    "repeat": ("whether two passes agree", "something were drawn at random"),
    "future": ("whether a later token acts on an earlier row", "the token found any other way, or by chance"),
    "padding": ("whether padding acts on a real row", "it acted in any other way, or by chance"),
    "alone": ("whether a row depends on its batch", "rows were mixed anywhere, or by chance"),
    "order": ("what the encoder makes of the order", "the encoder had learned less, for whatever reason"),
    "tensors standing still": ("which parameters a step moves", "any part of the model got no gradient"),
    "first movement / rate": ("how far the first step goes", "the step were longer or shorter for another reason"),
    "gradient mismatch": ("whether a step uses its own gradient", "the gradient came from elsewhere"),
}
"""For each instrument, what it shows, and how to end "This number would look the same if …"."""
