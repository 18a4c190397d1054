"""The questions of notebook 24: what a map of patches says, and which experiment would refute a story."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_24 = (
    Choice(
        "24.q1",
        "In front of layer 10, patching the country's word alone turns Berlin into Paris. What follows?",
        (
            Option(
                "Paris is stored in that vector.",
                "The vector of the word France is enough to say which country it is, and then the later layers do the "
                "rest. A bare name passes this test in front of layer 0, too, before anything was looked up.",
            ),
            Option(
                "What tells the two countries apart has not left that word yet.",
                "That is what the share says: all of the difference between the two runs is at this place. In which "
                "form it is there the patch does not say.",
                right=True,
            ),
            Option(
                "The layers before 10 do not matter for the answer.",
                "They may have changed that very vector a great deal. The patch takes over what they did with France.",
            ),
            Option(
                "The other words do not matter for the answer.",
                "They are equal in both runs, so they cannot make a difference between the two. Without the word "
                "capital there would be no answer.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "24.q2",
        "Which result would have refuted that head 23.4 carries the country?",
        (
            Option(
                "Taken from a question for the currency, it makes the model name a currency.",
                "Put into a question for the capital, yes: then it would carry the answer to the question from which "
                "it was taken.",
                right=True,
            ),
            Option(
                "Taken from a question for the capital, it makes the model name the other capital.",
                "That happened in section 3, and the story about the country foretells it. So does the story about the "
                "answer.",
            ),
            Option(
                "Without it, most capitals are still right in longer prompts.",
                "It happens. It says that the head is not needed there, and nothing about what it carries.",
            ),
            Option(
                "It looks at the country with nearly all of its attention.",
                "It does, mostly, and each of the three stories can live with that.",
            ),
        ),
        alone=False,
    ),
)
