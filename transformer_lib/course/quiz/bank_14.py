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
            (0.54, "That is 0.6 · 0.9, but the two belong to different prefixes."),
            (0.9, "That is the second step alone; multiply it by the first."),
            (0.6, "That is the first step alone; multiply it by the second."),
        ),
        "Multiply along each of the two paths and take the larger product.",
        tolerance=0.006,
    ),
    Choice(
        "14.q3",
        "The right token has probability 0.90 and fills the nucleus of top-p 0.9 alone; 552 wrong ones share the rest "
        "evenly. You raise the temperature a little, and the right token falls to 0.85. How many tokens are in the "
        "nucleus now?",
        (
            Option("One.", "It has 0.85, and the nucleus must come to at least 0.9."),
            Option("Two or three.", "Two wrong tokens have 0.15 · 2/552, about 0.0005. The gap is 0.05."),
            Option(
                "Nearly two hundred.",
                "The gap is 0.05, and each wrong token brings 0.15/552, about 0.00027: it takes 184 of them.",
                right=True,
            ),
            Option("All of them.", "The wrong ones have 0.15 together, and the gap is only 0.05."),
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
