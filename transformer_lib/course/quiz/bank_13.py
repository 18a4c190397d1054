"""The questions of notebook 13: training."""

from __future__ import annotations

from .model import Choice, Number, Option

NOTEBOOK_13 = (
    Choice(
        "13.q1",
        "The target is <bos> not on your life ! <eos>. Which token must the decoder predict at the place where it "
        'reads "your"?',
        (
            Option("on", "That came before; the decoder has read it already."),
            Option("your", "It reads that very token: predicting it would be copying."),
            Option("life", "The labels are the inputs shifted by one: at each place, the next token.", right=True),
            Option("<eos>", 'That is the label where it reads "!".'),
        ),
    ),
    Number(
        "13.q2",
        "An untrained model gives each of 1,000 tokens the same probability. What is its cross-entropy, with the "
        "natural logarithm, to one decimal?",
        6.91,
        "-ln(1/1000) = ln 1000 = 6.9. A first loss far from this points to a mistake.",
        (
            (9.97, "That is in bits, the logarithm to base 2."),
            (3.0, "That is the logarithm to base 10."),
            (0.001, "That is the probability; the loss is minus its logarithm."),
            (1000.0, "That is e to the loss, called perplexity; its natural logarithm is the loss."),
        ),
        "Every right token has probability 1/1000: take minus its natural logarithm.",
        tolerance=0.06,
        high=2000.0,
    ),
    Choice(
        "13.q3",
        "With 4,000 warm-up steps, when is the paper's learning rate largest?",
        (
            Option("At step 1.", "It starts almost at zero and rises first; that is the warm-up."),
            Option(
                "At step 4,000.",
                "It rises in proportion to the step until then, and falls like 1 / √step after.",
                right=True,
            ),
            Option("At the last step.", "After the warm-up it falls, like 1 / √step."),
            Option("It stays constant after step 4,000.", "Some schedules do that; the paper's falls like 1 / √step."),
        ),
    ),
    Choice(
        "13.q4",
        "A part is switched off in a trained model, its other weights unchanged, and every translation is wrong. What "
        "has been shown?",
        (
            Option(
                "No model can translate without this part.",
                "For that, train one without it from the start: other weights may do the job then.",
            ),
            Option(
                "This model's weights have come to rely on the part.",
                "They were trained with it, so everything behind it expects what it gives. That is all the test can "
                "say.",
                right=True,
            ),
            Option(
                "What the model knows about words is stored in this part.",
                "Cutting a wire stops a lamp; the light is not stored in the wire.",
            ),
            Option(
                "The part had too much influence on the training.",
                "The training is over; the test says nothing about what it would have been without the part.",
            ),
        ),
    ),
)
