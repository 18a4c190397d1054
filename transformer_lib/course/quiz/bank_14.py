"""The questions of notebook 14: translating."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_14 = (
    Choice(
        "14.q1",
        "Greedy decoding takes the most likely token at every step. Does that give the most likely sentence?",
        (
            Option(
                "Yes: each step is the best possible.",
                "Each step is the best given the tokens so far; a less likely start can lead to a likelier whole.",
            ),
            Option(
                "Not always: a less likely first token can begin a likelier sentence.",
                "The probability of a sentence is a product, and a good first factor can force poor later ones.",
                right=True,
            ),
            Option("Never.", "It often does; it just need not."),
            Option("Only with a temperature of 1.", "The temperature does not change which token is the most likely."),
        ),
    ),
    Number(
        "14.q2",
        "First tokens: A with probability 0.6, B with 0.4. The best continuation of A has probability 0.3, that of B "
        "0.9, and then the sentence ends. What probability has the sentence that beam search with 2 beams finds?",
        0.36,
        "B then its continuation: 0.4 · 0.9 = 0.36, twice what greedy finds.",
        (
            (0.18, "That is 0.6 · 0.3, the greedy sentence; two beams keep B as well."),
            (0.54, "That is 0.6 · 0.9, but the two belong to different beginnings."),
            (0.9, "That is the second step alone; multiply it by the first."),
            (0.6, "That is the first step alone; multiply it by the second."),
        ),
        "Multiply along each of the two paths and take the larger product.",
        tolerance=0.006,
    ),
    Choice(
        "14.q3",
        "You sample with a temperature close to 0. What do you get?",
        (
            Option("Uniformly random tokens.", "That is the other end, a very high temperature."),
            Option(
                "Nearly always the most likely token.",
                "Dividing by a small number spreads the logits far apart, so the softmax picks the largest.",
                right=True,
            ),
            Option("The probabilities that the model learned.", "That is temperature 1."),
            Option("The least likely token.", "That would take a negative temperature."),
        ),
    ),
    Choice(
        "14.q4",
        "For one source sentence greedy decoding writes a wrong sentence, of probability 0.5. The right one has 0.2 in "
        "the same model. You replace greedy decoding by a perfect search, which finds the most probable sentence of "
        "all. What happens?",
        (
            Option("It writes the right sentence.", "Its probability is 0.2, and at least one sentence has more."),
            Option(
                "It does not write the right sentence.",
                "The model itself prefers another. No search mends that; it is an error of the model.",
                right=True,
            ),
            Option(
                "It writes the right sentence in one case out of five.",
                "That would be sampling. A search gives the same sentence every time.",
            ),
            Option(
                "That depends on the length penalty.",
                "The most probable sentence is asked for, so there is no penalty.",
            ),
        ),
    ),
)
