"""The questions of the course, by notebook."""

from __future__ import annotations

from .bank_00 import NOTEBOOK_00
from .bank_02 import NOTEBOOK_02
from .bank_03 import NOTEBOOK_03
from .bank_05 import NOTEBOOK_05
from .bank_06 import NOTEBOOK_06
from .bank_07 import NOTEBOOK_07
from .bank_08 import NOTEBOOK_08
from .bank_13 import NOTEBOOK_13
from .model import Choice, Number, Option

NOTEBOOK_01 = (
    Choice(
        "01.q1",
        "You store one of the pairs a second time: the same key and the same value. What do the softmax weights do?",
        (
            Option("Nothing: a copy adds no information.",
                   "The softmax sums over entries, and there is one more of them: every weight changes."),
            Option("The two copies get equal weights, and all other weights shrink.",
                   "Weights are shares of a whole. The copy claims as large a share as the original, so together they "
                   "take more than one did, and the others less.", right=True),
            Option("The two copies share the weight that the one had; the others keep theirs.",
                   "That would hold if only distinct keys counted. The softmax counts entries: the sum it divides by "
                   "grows, so the others shrink too."),
            Option("The lookup fails, since keys must differ.",
                   "A dictionary would refuse. A soft lookup has no such rule: equal keys just get equal weights."),
        ),
    ),
    Number(
        "01.q2",
        "A query scores 1 with the first key and 0 with the second. What is the softmax weight of the first, to two "
        "decimals?",
        0.731, "exp(1) / (exp(1) + exp(0)) = 2.718 / 3.718 = 0.73.",
        ((1.0, "That is the hard lookup, winner takes all. A softmax always leaves something for the others."),
         (0.5, "Equal weights need equal scores; here they differ by 1."),
         (0.269, "That is the weight of the second key."),
         (2.718, "That is exp(1); divide it by the sum over both keys.")),
        "Take the exponential of both scores and divide the first by their sum.",
        tolerance=0.006, high=5.0,
    ),
    Choice(
        "01.q3",
        "The temperature grows without bound. What does the soft lookup return?",
        (
            Option("The value of the best key.", "That is the other end: the temperature falls to 0."),
            Option("Zero.", "Each weight falls to 1 / number of keys, and the weights still sum to one."),
            Option("The plain mean of all values.",
                   "All scores shrink to 0, so all weights become equal: mean pooling.", right=True),
            Option("The value of the worst key.",
                   "That would take a negative temperature; a high one just makes the scores alike."),
        ),
    ),
)

NOTEBOOK_04 = (
    Choice(
        "04.q1",
        "Components of queries and keys are independent with mean 0 and variance 1. d_k grows from 64 to 256. "
        "How does the typical size (standard deviation) of q · k change?",
        (
            Option("It stays the same.", "More terms are added up; independent terms add their variances."),
            Option("It doubles.", "The variance grows fourfold, from 64 to 256; its root grows from 8 to 16. That root "
                   "is the √d_k in the formula.", right=True),
            Option("It grows fourfold.", "The variance does. The standard deviation is its root."),
            Option("It grows sixteenfold.", "That would be the square of what the variance does."),
        ),
    ),
    Number(
        "04.q2",
        "With d_k = 16, a query has the dot products 6 and 4 with two keys. What weight does scaled dot-product "
        "attention give the first key, to two decimals?",
        0.622, "6/4 = 1.5 and 4/4 = 1; softmax(1.5, 1) = (0.62, 0.38).",
        ((0.881, "That is softmax(6, 4): the division by √16 = 4 is missing."),
         (0.531, "You divided by d_k = 16; the formula divides by √d_k = 4."),
         (0.6, "That is 6 / (6 + 4): the exponential is missing."),
         (0.378, "That is the weight of the second key.")),
        "Divide both by √16, take exponentials, and divide the first by their sum.",
        tolerance=0.006,
    ),
    Choice(
        "04.q3",
        "You add 100 to every score of one query, then take the softmax. What happens to its weights?",
        (
            Option("They all grow.", "They sum to one, before and after: they cannot all grow."),
            Option("The largest gets almost everything.",
                   "That happens when scores are multiplied by a large number; adding keeps their differences."),
            Option("Nothing.", "exp(s + 100) = exp(100) exp(s), and the factor cancels. This is why one may subtract "
                   "the largest score to keep exp from overflowing.", right=True),
            Option("They no longer sum to one.", "The softmax divides by the sum, whatever the scores are."),
        ),
    ),
)

NOTEBOOK_12 = (
    Choice(
        "12.q1",
        "A model was trained on sentences of up to 20 tokens. Which of its learned tensors has a shape that depends "
        "on the sentence length?",
        (
            Option("W_Q, W_K and W_V.", "They are d_model by d_model, whatever the sentence."),
            Option("The attention weights.", "Their shape does, but they are computed afresh, not learned."),
            Option("None, with sinusoidal positions.", "Every learned tensor is shaped by d_model, d_ff and the "
                   "vocabularies. That is why the same weights run on any length.", right=True),
            Option("The embedding table.", "It has one row for each entry of the vocabulary, not for each place."),
        ),
    ),
    Number(
        "12.q2",
        "How many million parameters does one feed-forward network have with d_model = 512 and d_ff = 2048, to one "
        "decimal?",
        2.1, "2 · 512 · 2048 for the two matrices and 2048 + 512 for the biases: 2,099,712.",
        ((1.0, "That is one matrix; there are two."),
         (4.2, "That is twice too many: each matrix has 512 · 2048 entries, about a million."),
         (0.5, "That is 2 · 512²: the hidden layer has 2048 units, not 512.")),
        "Count two matrices of 512 by 2048 and a bias for each.",
        tolerance=0.051, high=100.0,
    ),
    Choice(
        "12.q3",
        "In the decoder's second attention, where do the keys come from?",
        (
            Option("From the target tokens so far.", "That is its first attention, the masked one."),
            Option("From the embeddings of the source.", "Those are what the encoder starts from; the decoder reads "
                   "what the encoder makes of them."),
            Option("From the encoder's output, the memory.", "Keys and values both come from the memory; only the "
                   "queries come from the decoder.", right=True),
            Option("From the logits of the step before.", "Logits choose the next token; no attention reads them."),
        ),
    ),
)

NOTEBOOK_14 = (
    Choice(
        "14.q1",
        "Greedy decoding takes the most likely token at every step. Does that give the most likely sentence?",
        (
            Option("Yes: each step is the best possible.",
                   "Each step is the best given the tokens so far; a less likely start can lead to a likelier whole."),
            Option("Not always: a less likely first token can begin a likelier sentence.",
                   "The probability of a sentence is a product, and a good first factor can force poor later ones.",
                   right=True),
            Option("Never.", "It often does; it just need not."),
            Option("Only with a temperature of 1.", "The temperature does not change which token is the most likely."),
        ),
    ),
    Number(
        "14.q2",
        "First tokens: A with probability 0.6, B with 0.4. The best continuation of A has probability 0.3, that of B "
        "0.9, and then the sentence ends. What probability has the sentence that beam search with 2 beams finds?",
        0.36, "B then its continuation: 0.4 · 0.9 = 0.36, twice what greedy finds.",
        ((0.18, "That is 0.6 · 0.3, the greedy sentence; two beams keep B as well."),
         (0.54, "That is 0.6 · 0.9, but the two belong to different beginnings."),
         (0.9, "That is the second step alone; multiply it by the first."),
         (0.6, "That is the first step alone; multiply it by the second.")),
        "Multiply along each of the two paths and take the larger product.",
        tolerance=0.006,
    ),
    Choice(
        "14.q3",
        "You sample with a temperature close to 0. What do you get?",
        (
            Option("Uniformly random tokens.", "That is the other end, a very high temperature."),
            Option("Nearly always the most likely token.",
                   "Dividing by a small number spreads the logits far apart, so the softmax picks the largest.",
                   right=True),
            Option("The probabilities that the model learned.", "That is temperature 1."),
            Option("The least likely token.", "That would take a negative temperature."),
        ),
    ),
)

QUESTIONS = (
    *NOTEBOOK_00,
    *NOTEBOOK_01,
    *NOTEBOOK_02,
    *NOTEBOOK_03,
    *NOTEBOOK_04,
    *NOTEBOOK_05,
    *NOTEBOOK_06,
    *NOTEBOOK_07,
    *NOTEBOOK_08,
    *NOTEBOOK_12,
    *NOTEBOOK_13,
    *NOTEBOOK_14,
)
