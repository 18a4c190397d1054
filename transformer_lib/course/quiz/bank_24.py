"""The questions of notebook 24: what a map of patches says, and how to show that something is used."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_24 = (
    Choice(
        "24.q1",
        "In front of layer 10, patching the country's word turns Berlin into Paris, and patching the last word changes "
        "nothing. What follows?",
        (
            Option(
                "Paris is stored in that vector.",
                "The vector of the word France is enough to say which country it is, and then the later layers do the "
                "rest. A bare name passes this test in front of layer 0, too, before anything was looked up.",
            ),
            Option(
                "What tells the two countries apart has not left that word yet.",
                "Both are needed for it: enough of the difference is at the country's word, and none at the last one. "
                "In which form it is there the patch does not say.",
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
        "A probe reads from a layer's vectors, nearly without error, whether a sentence is about the past. What would "
        "show that the model uses it?",
        (
            Option(
                "The probe is right on sentences that it has never seen, too.",
                "Then it is there to be read. Whether anything behind that layer reads it, no probe can say.",
            ),
            Option(
                "Taking this direction out spoils its tenses, and another one doesn't.",
                "The model itself behaves differently, and not because just anything was taken out.",
                right=True,
            ),
            Option(
                "The probe is much worse in front of the layers before.",
                "Then it is computed in between. It may still be read by nobody.",
            ),
            Option(
                "The probe fails on the same model with random weights.",
                "A good control: the probe did not do it all by itself. About use it says nothing.",
            ),
        ),
        alone=False,
    ),
)
