"""The questions of notebook 25: a layer beside a layer, and a group that agrees."""

from __future__ import annotations

from .model import Choice, Option, Question

NOTEBOOK_25: tuple[Question, ...] = (
    Choice(
        "25.q1",
        "LoRA computes x Wᵀ + x Aᵀ Bᵀ, and learns A and B. At first A is random and B is 0. What would happen if both "
        "were 0 at first?",
        (
            Option(
                "The same, only a little slower at first.",
                "Compute the gradient of B: it is a product with x Aᵀ, and that is 0. Then look at the one of A.",
            ),
            Option(
                "Neither would ever move.",
                "The gradient of B is a product with x Aᵀ = 0, and the gradient of A a product with B = 0. Both are 0, "
                "after the first step and after every other.",
                right=True,
            ),
            Option(
                "Only B would learn, and A would stay 0.",
                "For B to learn, x Aᵀ must not be 0: the gradient of B is a product with it.",
            ),
            Option(
                "The model would forget all that it knew at the first step.",
                "With A = B = 0 it computes what it did, and W is not touched.",
            ),
        ),
    ),
    Choice(
        "25.q2",
        "In one step a writer draws a group of eight texts, and all eight are grammatical. Rewards are 1 for a "
        "grammatical text and 0 for any other. What does this step change, without a KL term?",
        (
            Option(
                "All eight become likelier.",
                "That would be so if the reward itself were the weight. But each text is compared with its group.",
            ),
            Option(
                "Nothing at all.",
                "No text is better than the others: every advantage is 0, and so is the gradient. A group teaches by "
                "its differences.",
                right=True,
            ),
            Option(
                "The shortest of them becomes likelier.",
                "Nothing in this reward asks for the length, and all eight have the same reward.",
            ),
            Option(
                "All eight become less likely, so that it explores.",
                "For that something would have to reward exploring. All advantages are 0.",
            ),
        ),
    ),
)
