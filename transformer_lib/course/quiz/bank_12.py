"""The questions of notebook 12: the whole Transformer."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_12 = (
    Choice(
        "12.q1",
        "A model was trained on sentences of up to 20 tokens. Which of its learned tensors has a shape that depends "
        "on the sentence length?",
        (
            Option("W_Q, W_K and W_V.", "They are d_model by d_model, whatever the sentence."),
            Option("The attention weights.", "Their shape does, but they are computed afresh, not learned."),
            Option(
                "None, with sinusoidal positions.",
                "Every learned tensor is shaped by d_model, d_ff and the "
                "vocabularies. That is why the same weights run on any length.",
                right=True,
            ),
            Option("The embedding table.", "It has one row for each entry of the vocabulary, not for each place."),
        ),
    ),
    Number(
        "12.q2",
        "How many million parameters does one feed-forward network have with d_model = 512 and d_ff = 2048, to one "
        "decimal?",
        2.1,
        "2 · 512 · 2048 for the two matrices and 2048 + 512 for the biases: 2,099,712.",
        (
            (1.0, "That is one matrix; there are two."),
            (4.2, "That is twice too many: each matrix has 512 · 2048 entries, about a million."),
            (0.5, "That is 2 · 512²: the hidden layer has 2048 units, not 512."),
        ),
        "Count two matrices of 512 by 2048 and a bias for each.",
        tolerance=0.051,
        high=100.0,
    ),
    Choice(
        "12.q3",
        "In the decoder's second attention, where do the keys come from?",
        (
            Option("From the target tokens so far.", "That is its first attention, the masked one."),
            Option(
                "From the embeddings of the source.",
                "Those are what the encoder starts from; the decoder reads what the encoder makes of them.",
            ),
            Option(
                "From the encoder's output, the memory.",
                "Keys and values both come from the memory; only the queries come from the decoder.",
                right=True,
            ),
            Option("From the logits of the step before.", "Logits choose the next token; no attention reads them."),
        ),
    ),
    Choice(
        "12.q4",
        'One table serves source, target and output. In a batch, the word "life" is neither in the source nor among '
        "the target inputs or labels. Does its row get a gradient?",
        (
            Option(
                "No: a row that was not looked up has no gradient.",
                "That holds on the way in. On the way out the row takes part in a logit at every position.",
            ),
            Option(
                "Yes, from the output head.",
                "Its logit stands in the denominator of every softmax: the loss falls when that logit falls.",
                right=True,
            ),
            Option("Yes, from the source embedding.", "The source embedding is asked for the words of the batch only."),
            Option(
                "Only once the word has been a label.",
                "A label raises its own word's logit, but all other words' logits are pushed down at each step.",
            ),
        ),
    ),
)
