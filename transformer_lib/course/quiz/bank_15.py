"""The questions of notebook 15: what attention weights show, and what they do not."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_15 = (
    Choice(
        "15.q1",
        "A query gives the weight 0.8 to 'the' and 0.1 to 'money'. From which of the two does it receive more?",
        (
            Option(
                "From 'the': its weight is eight times as large.",
                "What arrives is weight times value. A value of zero length adds nothing at any weight.",
            ),
            Option(
                "From 'money': it is the word with the meaning.",
                "Nothing in the weights or in the formula knows which words have meaning.",
            ),
            Option(
                "The weights alone do not say.",
                "What arrives from a word is its weight times its value, so the lengths of both values are needed, "
                "and their directions too.",
                right=True,
            ),
            Option(
                "From both alike, as the rows sum to one.", "The sum of a row says nothing about how it is divided."
            ),
        ),
    ),
    Choice(
        "15.q2",
        "You silence one head, and the translations stay the same. What follows?",
        (
            Option(
                "The head learned nothing.", "It may do what another head does too. Then each alone can go, not both."
            ),
            Option(
                "The head's part is not needed while all the others work.",
                "That is all the experiment showed. Silence it together with others to see whether they stand in "
                "for each other.",
                right=True,
            ),
            Option(
                "The model would have learned as well without it.",
                "This model was trained with it. What training without it gives is another experiment.",
            ),
            Option("Its weights were small.", "Each row of weights sums to one, also in a head that nobody needs."),
        ),
    ),
    Choice(
        "15.q3",
        "Silence any one of the eight encoder heads, and at least 96 % of the decisions about nouns stay right. What "
        "do you expect with all eight silenced?",
        (
            Option(
                "About 96 %: none of them does much.",
                "That would follow if no head stood in for another. Where two can do the same work, each may go, "
                "and not both.",
            ),
            Option(
                "About 0.96 to the power of eight, so 72 %.",
                "That supposes that each head loses decisions of its own, independently of all others. Nothing we "
                "have measured says so.",
            ),
            Option(
                "One at a time cannot tell; it has to be measured.",
                "The heads may stand in for each other, or share the work, or do nothing. Only silencing them "
                "together tells these apart.",
                right=True,
            ),
            Option(
                "A guess, since the encoder is gone.",
                "Its feed-forward networks, the embeddings and the positions are still there, and the decoder can read "
                "the cue's row itself. How much that gives is an open question.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "15.q4",
        "A linear probe reads from the vector of 'it' which noun is meant, and is right in nearly all test sentences. "
        "What follows?",
        (
            Option(
                "The translator uses that vector to choose its pronoun.",
                "Readable is not used: replace the row and see whether the pronoun changes.",
            ),
            Option(
                "The vector contains the answer in a form that a linear map can find.",
                "Yes, and no more. Even a model with random weights can pass such a test, so measure one as a control.",
                right=True,
            ),
            Option(
                "Training taught the model to mark the noun there.",
                "Compare with a model of random weights before you say so: mixing the words of a sentence at random "
                "also leaves traces of them.",
            ),
            Option(
                "The head that reads the noun in that row is found.",
                "A probe looks at a vector; it says nothing about how it came to be.",
            ),
        ),
    ),
)
