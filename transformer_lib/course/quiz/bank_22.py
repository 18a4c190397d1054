"""The questions of notebook 22: serving a translator."""

from __future__ import annotations

from .model import Choice, Option, Question

NOTEBOOK_22: tuple[Question, ...] = (
    Choice(
        "22.q1",
        "Two requests reach our translator: “The man wanted to see the bank near the river.” and “The man wanted to "
        "see the bank near the money.” Ten of their eleven tokens are alike. Which rows of the encoder's memory can "
        "the second request take over from the first?",
        (
            Option(
                "The first nine: what comes before the change cannot know of it.",
                "In a decoder it could not. But in an encoder every row reads the whole sentence, to its end.",
            ),
            Option(
                "None of them.",
                "Every row of the encoder has read the last noun, so every row has changed.",
                right=True,
            ),
            Option(
                "Ten: all but that of the noun that changed.",
                "The memory is not a list of words. Each of its rows has read all the others.",
            ),
            Option(
                "All rows of layer 1, and none of layer 2.",
                "The rows of layer 1 are the first to mix: there, bank already reads river or money.",
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
                "From max(0, p − q), divided by its sum.",
                "Accepted words bring min(p, q) of each. What is missing up to p is max(0, p − q), and that sums to "
                "just how often a word is refused.",
                right=True,
            ),
            Option(
                "From max(p, q), divided by its sum.",
                "With the three words above, these are (.5, .7, .2) over 1.4. Half of all replacements would be the "
                "second word, which has been said as often as p wants it.",
            ),
        ),
        alone=False,
    ),
    Choice(
        "22.q4",
        "A server answers at most C requests a second, but 1.2 · C arrive. After the first minute, a new request waits "
        "12 seconds. All goes on like this for an hour. How long does a new request wait then?",
        (
            Option(
                "About 12 seconds still: the queue has settled.",
                "Nothing settles it. In every second 0.2 · C more requests come than go.",
            ),
            Option(
                "About 14 seconds, 1.2 times as long.",
                "The load says how fast the queue grows, not how long it is.",
            ),
            Option(
                "About 12 minutes.",
                "In every second 0.2 · C more come than go. After 3,600 seconds 720 · C are waiting, and C of them are "
                "answered in a second.",
                right=True,
            ),
            Option(
                "An hour: nobody is answered any more.",
                "C requests a second are answered all the time. But each has waited longer than the one before.",
            ),
        ),
    ),
)
