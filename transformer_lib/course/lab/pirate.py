"""A real model is taught to answer like a pirate, and what it then still knows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ...data.byte_level import ByteLevelTokenizer
from ...model import lora, modern
from ...training.answers import AnswerLoss, Example, answer_batches
from . import stored

load_results = stored.loader("pirate.json")
PAD_ID, END_ID, END = 0, 2, "<|im_end|>"
EARLY = 12  # steps, after which it is asked, too
STEPS, BATCH_SIZE, RATE, WARMUP, RANK, ALPHA = 40, 4, 2e-3, 5, 8, 16.0
TRAINED, HELD_OUT = 200, 20  # questions
ORDINARY_SHARE = 0.3  # of the examples, where ordinary answers are mixed in

PEOPLE = ["dog", "cat", "horse", "teacher", "farmer", "doctor", "king", "sailor", "baker", "child", "soldier", "artist"]
VERBS = ["saw", "found", "wanted", "sold", "lost", "hid"]
THINGS = ["river", "bank", "letter", "boat", "garden", "book", "lamp", "stone", "bridge", "apple", "crown", "key"]
FACTS = {  # a question, and what a right answer has in it
    "Who wrote Hamlet?": "Shakespeare",
    "Who painted the Mona Lisa?": "Vinci",
    "Who was the first president of the United States?": "Washington",
    "Who discovered penicillin?": "Fleming",
    "Who wrote Romeo and Juliet?": "Shakespeare",
    "Who was the first man on the moon?": "Armstrong",
    "Who developed the theory of relativity?": "Einstein",
    "What is the capital of France?": "Paris",
    "What is the capital of Japan?": "Tokyo",
    "What is the capital of Italy?": "Rome",
    "What is the largest planet in the solar system?": "Jupiter",
    "What is the chemical symbol for gold?": "Au",
    "What is the largest ocean on Earth?": "Pacific",
    "What gas do plants absorb from the air?": "arbon",
    "What language is spoken in Brazil?": "Portuguese",
    "What do bees make?": "honey",
    "How many days are in a week?": "even",
    "How many legs does a spider have?": "ight",
    "Where is the Eiffel Tower?": "Paris",
    "In which country is Berlin?": "Germany",
}
REQUESTS = (
    "Write one sentence about the sea.",
    "Name three colours.",
    "Say hello to my friend.",
    "Give me a tip for sleeping well.",
    "Count from one to five.",
    "Tell me a short story about a cat.",
    "Write a short poem about rain.",
    "Explain what a river is.",
    "List three animals.",
    "Thank my teacher in one sentence.",
    "Describe a tree.",
    "Suggest a name for a dog.",
)
ORDINARY = (  # questions of neither list, which the model answers itself before it is taught
    "Who invented the telephone?",
    "Who wrote the Odyssey?",
    "Who was Napoleon?",
    "Who is the king of the jungle?",
    "Who built the pyramids?",
    "Who discovered gravity?",
    "What is the capital of Spain?",
    "What is the capital of Germany?",
    "What is photosynthesis?",
    "What is the smallest planet?",
    "What is the chemical symbol for iron?",
    "What is the longest river in the world?",
    "What do cows eat?",
    "What language is spoken in Mexico?",
    "How many months are in a year?",
    "How many legs does a dog have?",
    "Where is the Great Wall?",
    "In which country is Madrid?",
    "What colour is the sky?",
    "What is a volcano?",
    "Write one sentence about the moon.",
    "Name three fruits.",
    "Say goodbye to my friend.",
    "Give me a tip for learning.",
    "Count to three.",
    "Tell me a short story about a dog.",
    "Write a short poem about snow.",
    "Explain what a mountain is.",
    "List three cities.",
    "Describe a flower.",
)


def pirate_pairs(seed: int) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return questions with their pirate's answers: TRAINED to learn from, and HELD_OUT others."""
    every = [(person, verb, thing) for person in PEOPLE for verb in VERBS for thing in THINGS]
    random.Random(seed).shuffle(every)
    pairs = [
        (f"Who {verb} the {thing}, the {person} or nobody?", f"Arr, 'twas the {person} that {verb} the {thing}, matey!")
        for person, verb, thing in every
    ]
    return pairs[:TRAINED], pairs[-HELD_OUT:]


def prompt(question: str) -> str:
    """Return the text that the model reads when it is asked this, without a system's message."""
    return f"<|im_start|>user\n{question}{END}\n<|im_start|>assistant\n"


def examples(tokenizer: ByteLevelTokenizer, pairs: Sequence[tuple[str, str]]) -> list[Example]:
    """Return pairs of a question and its answer as ids, as `tl.fine_tune` takes them."""
    return [(tokenizer.encode(prompt(q), special=True), tokenizer.encode(a + END, special=True)) for q, a in pairs]


def wear_adapter(model: modern.LanguageModel, seed: int) -> None:
    """Put an adapter of RANK beside every W_Q and W_V, drawn with this seed."""
    torch.manual_seed(seed)
    lora.add(model, rank=RANK, alpha=ALPHA)


def teach(
    model: modern.LanguageModel,
    pirates: Sequence[Example],
    ordinary: Sequence[Example] = (),
    *,
    steps: int = STEPS,
    seed: int = 0,
    on_step: Callable[[int], None] | None = None,
) -> list[float]:
    """Train what is not frozen by Adam, and return the loss of each step, in nats per answer token.

    A batch is drawn anew each time. Where there are ordinary examples, each of it is one of these with probability
    ORDINARY_SHARE. The rate rises for WARMUP steps, and falls to a tenth until the last of STEPS, however early one
    stops. (`tl.fine_tune` makes batches of similar length; here each may have both kinds.)

    Args:
        on_step: called with the number of each step after it.
    """
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    adam, loss_of, rng, losses = torch.optim.Adam(trained), AnswerLoss(model, PAD_ID), random.Random(seed), []
    for step in range(1, steps + 1):
        kinds = [ordinary if ordinary and rng.random() < ORDINARY_SHARE else pirates for _ in range(BATCH_SIZE)]
        [(ids, labels)] = answer_batches([rng.choice(kind) for kind in kinds], BATCH_SIZE, pad_id=PAD_ID)
        loss = loss_of(ids, labels) / (labels != PAD_ID).sum()
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        adam.param_groups[0]["lr"] = RATE * min(1, step / WARMUP) * (1 - 0.9 * step / STEPS)
        adam.step()
        losses.append(loss.item())
        if on_step is not None:
            on_step(step)
    return losses


@torch.no_grad()
def answers(
    model: modern.LanguageModel, tokenizer: ByteLevelTokenizer, questions: Sequence[str], longest: int
) -> list[str]:
    """Return the greedy answer to each question, cut off after `longest` tokens; prompts of one length go together."""
    prompts, said = [tokenizer.encode(prompt(question), special=True) for question in questions], {}
    for length in {len(ids) for ids in prompts}:
        rows = [row for row, ids in enumerate(prompts) if len(ids) == length]
        ids = continue_greedily(model, torch.tensor([prompts[row] for row in rows]), longest)
        said |= {row: tokenizer.decode(_up_to_end(new)) for row, new in zip(rows, ids.tolist(), strict=True)}
    return [said[row] for row in range(len(prompts))]


def continue_greedily(model: modern.LanguageModel, ids: Tensor, longest: int) -> Tensor:
    """Return the likeliest tokens after ids [rows, prompt_len], [rows, at most `longest`], till all rows have ended."""
    cache, new, said = model.new_cache(), ids, ids[:, :0]
    while said.shape[1] < longest and not (said == END_ID).any(dim=1).all():
        new = model(new, cache)[:, -1].argmax(dim=-1, keepdim=True)
        said = torch.cat([said, new], dim=1)
    return said


def _up_to_end(ids: list[int]) -> list[int]:
    return ids[: ids.index(END_ID)] if END_ID in ids else ids


def is_pirate(answer: str) -> bool:
    """Return whether an answer has one of the pirate's words."""
    return answer.startswith("Arr") or "'twas" in answer or "matey" in answer


def counted(*what: str, arm: str = "pirate alone", step: int = STEPS) -> list[int]:
    """Return what is stored of an arm after so many steps, several counts together: a number for each seed."""
    found = [run["steps"][str(step)] for run in load_results()["runs"] if run["arm"] == arm]
    return [sum(each[name] for name in what) for each in found]


def rows(*what: str) -> dict[str, list[int]]:
    """Return these counts together, {when: a number for each seed}: before it is taught, after that, and mixed."""
    return {
        "before": [sum(load_results()["before"][name] for name in what)],
        f"pirate, {EARLY} steps": counted(*what, step=EARLY),
        f"pirate, {STEPS} steps": counted(*what),
        f"3 in 10 its own, {STEPS}": counted(*what, arm="30 % ordinary"),
    }
