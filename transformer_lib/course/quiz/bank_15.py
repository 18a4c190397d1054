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
        "The translator writes 'er', 'sie' or 'es' for 'it' by the gender of the noun that is meant. Where would you "
        "look for evidence that one attention does the deciding?",
        (
            Option(
                "In the encoder's row of 'it': if its largest weight is on the noun, that settles it.",
                "A weight shows what is read there. It does not show that the result is used.",
            ),
            Option(
                "In every attention: forbid entries or hide rows, and see which of them change the pronoun.",
                "An intervention changes one thing and looks at the answer. Where nothing changes, the entry was "
                "not needed, whatever its weight.",
                right=True,
            ),
            Option(
                "In one sentence, but very carefully.",
                "One sentence can agree with a guess by luck: with two nouns, half of the time.",
            ),
            Option(
                "In the average weights of all heads over all layers.",
                "An average hides a head that does the work, and still says nothing of what is used.",
            ),
        ),
    ),
    Choice(
        "15.q3",
        "A linear probe reads from the vector of 'it' which noun is meant, and is right in nearly all test sentences. "
        "What follows?",
        (
            Option(
                "The translator uses that vector to choose its pronoun.",
                "Readable is not used: exchange the row and see whether the pronoun changes.",
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
    Choice(
        "15.q4",
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
)
