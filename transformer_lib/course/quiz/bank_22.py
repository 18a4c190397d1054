"""The questions of notebook 22: serving a translator."""

from __future__ import annotations

from .model import Choice, Option, Question

NOTEBOOK_22: tuple[Question, ...] = (
    Choice(
        "22.q1",
        "A decoding step computes one row for each sentence of the batch. How long does a step for 8 sentences take, "
        "compared with a step for one?",
        (
            Option(
                "Eight times as long, since it is eight times the arithmetic.",
                "It is eight times the multiply-adds. But a step for one row spends little of its time on them.",
            ),
            Option(
                "Longer, but much less than eight times.",
                "The parameters are read once for all eight rows, and each operation is started once.",
                right=True,
            ),
            Option(
                "Exactly as long.",
                "There is more to compute and to write, and on a processor with few cores that shows.",
            ),
            Option(
                "More than eight times, because the rows get in each other's way.",
                "The rows know nothing of each other; they go through the same matrix products side by side.",
            ),
        ),
    ),
    Choice(
        "22.q2",
        "The draft wrote “die kleine Feder neben”. The target's best words after these prefixes are “die kleine "
        "Handfläche neben dem”. What does this call add to the sentence?",
        (
            Option(
                "die kleine",
                "These two stand. But the target has also said what follows them, and that is its own word.",
            ),
            Option(
                "die kleine Handfläche",
                "Two drafted words stand, then comes the target's own. It is the one that greedy decoding would have "
                "written.",
                right=True,
            ),
            Option(
                "die kleine Handfläche neben",
                "Both say neben, but after “die kleine Feder”. What follows “die kleine Handfläche” nobody has asked "
                "yet.",
            ),
            Option(
                "die kleine Feder neben dem",
                "The target disagrees with Feder (feather). It would not have written it, nor what follows it.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "22.q3",
        "A drafted word has been refused, by chance, with probability 1 − p / q. Where must the word that replaces it "
        "be drawn from?",
        (
            Option(
                "From p, since that is the distribution we want.",
                "It looks right. But the second word has by then been said as often as p wants it, and would get a "
                "second helping.",
            ),
            Option(
                "From q again, until a word is accepted.",
                "Then the words come in the proportions of min(p, q), which are not those of p.",
            ),
            Option(
                "From what is still missing: max(0, p − q), divided by its sum.",
                "Accepted words bring min(p, q) of each. What is missing up to p is max(0, p − q), and that sums to "
                "just how often a word is refused.",
                right=True,
            ),
            Option(
                "It is the most probable word under p.",
                "Then that word would come too often. We want draws from p, not its maximum.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "22.q4",
        "A server answers at most C requests a second. For hours, 1.2 · C arrive. A test of one minute finds a median "
        "latency of five seconds. What is the latency of this server at that load?",
        (
            Option(
                "About five seconds.",
                "In that minute, yes. In the next one the queue is longer: it grows by 0.2 · C requests a second.",
            ),
            Option(
                "There is none: the longer one measures, the larger it gets.",
                "More comes in than goes out, so the queue grows without end. Any number says only how long the test "
                "ran.",
                right=True,
            ),
            Option(
                "About 1.2 times that of a server with the load 1.",
                "At the load 1 itself the latency has no limit either, if requests come at random.",
            ),
            Option(
                "It depends on the size of the batches.",
                "C does. But as long as more comes than this C, the queue grows.",
            ),
        ),
    ),
)
