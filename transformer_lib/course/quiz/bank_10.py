"""The questions of notebook 10: the encoder."""

from __future__ import annotations

from .model import Choice, Option

NOTEBOOK_10 = (
    Choice(
        "10.q1",
        "'Show me the money' goes through an encoder layer. Which of its operations lets the vector of 'money' have "
        "an effect on the vector of 'Show'?",
        (
            Option("The residual sum.", "It adds to each row what was computed for the same row."),
            Option("LayerNorm.", "Mean and variance are taken over the features of one row; no other row enters."),
            Option("Self-attention.", "Its weights blend rows: the only operation in which tokens meet.", right=True),
            Option("The feed-forward network.", "It gets one row at a time, with the same weights for each."),
            Option(
                "None: 'money' comes later.", "Only a causal mask would hide what comes later, and an encoder has none."
            ),
        ),
    ),
    Choice(
        "10.q2",
        "One long sentence joins a batch, so yours gets three padding tokens more at its end. The mask is right. What "
        "happens to the memory of your sentence?",
        (
            Option("All its vectors change a little.", "A masked key has the weight 0 in every row."),
            Option(
                "The vectors of its words stay as they were; three vectors of padding are appended.",
                "The words never read the padding. The padding's own vectors are there, and nobody may use them.",
                right=True,
            ),
            Option(
                "It keeps its length; the encoder leaves padding out.",
                "The output has one vector per position, padding included.",
            ),
            Option(
                "The vectors of the padding become zero.",
                "A padding token asks, too, and gets a blend of the words; then the residual and the rest follow.",
            ),
        ),
    ),
    Choice(
        "10.q3",
        "In a sentence of 12 words the word 'bank' comes third, and the word that tells which bank comes last. The "
        "encoder is given a causal mask by mistake. What can the vector of 'bank' say after six layers?",
        (
            Option(
                "All there is to say, since six layers can pass it on.",
                "Information travels through positions that may be read; no path leads from a later to an earlier "
                "position, however many layers.",
            ),
            Option(
                "Nothing beyond what the first three words tell.",
                "With a causal mask no layer hands anything from the right to the left.",
                right=True,
            ),
            Option("Nothing at all.", "The words before it are still read, and could hold a cue in other sentences."),
            Option("It depends on the position encoding.", "The mask closes the way, whatever the vectors are."),
        ),
    ),
)
