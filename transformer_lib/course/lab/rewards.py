"""What notebook 19's writer becomes when a program rewards it, with and without a price for leaving what it was."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from ...data.tokenizers import BOS_ID, EOS_ID, PAD_ID
from ...decoding.sampling import filter_logits
from ...model import modern
from ...training.preferences import group_advantages, grpo_loss, sequence_log_probs, token_log_probs
from . import masks, one_stack, stored

Reward = Callable[[list[str]], list[float]]

load_results = stored.loader("rewards.json")
STEPS, LONGEST = 400, 24  # steps in which the writer learns to write; words of a text that it may say
ANSWERS, RATE = 128, 5e-4  # texts that it writes for each step of reinforcement; the rate of this step


def next_word_loss(model: modern.LanguageModel, ids: Tensor) -> Tensor:
    """Return the cross-entropy per word, in nats, of sentences ids [batch, longest] from bos to eos."""
    return F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:], ignore_index=PAD_ID)


def new_writer(seed: int, steps: int = STEPS) -> modern.LanguageModel:
    """Return a small model of today's block that has learned the German sentences."""
    sizes = {"d_model": masks.SIZES[1], "n_heads": masks.SIZES[2], "n_layers": masks.SIZES[0], "d_ff": 128}
    torch.manual_seed(seed)
    model = modern.LanguageModel(modern.Config(vocab_size=len(one_stack.tokenizer()), **sizes))
    one_stack.fit(model, next_word_loss, steps)
    return model.eval()


@torch.no_grad()
def write(model: modern.LanguageModel, number: int, generator: torch.Generator, temperature: float = 1.0) -> Tensor:
    """Return texts that the model draws word by word: ids [number, at most 25] from bos to eos, padded behind."""
    ids = new = torch.full((number, 1), BOS_ID)
    cache, done = model.new_cache(), torch.zeros(number, dtype=torch.bool)
    while ids.shape[1] <= LONGEST and not done.all():
        logits = filter_logits(model(new, cache)[:, -1], temperature=temperature)
        new = torch.multinomial(logits.softmax(dim=-1), 1, generator=generator).masked_fill(done[:, None], PAD_ID)
        ids, done = torch.cat([ids, new], dim=1), done | (new[:, 0] == EOS_ID)
    return ids


def words_said(ids: Tensor) -> Tensor:
    """Return True for each word of the texts that was said: not for bos, which was given, nor for padding."""
    return (ids != PAD_ID).index_fill(1, torch.tensor(0), False)


def mean_log_prob(model: modern.LanguageModel, ids: Tensor) -> Tensor:
    """Return the mean log probability of a text's words under the model, in nats: [number], with gradients."""
    said = words_said(ids)
    return sequence_log_probs(model, ids, said) / said.sum(dim=1)


def texts(ids: Tensor) -> list[str]:
    """Return the texts as strings."""
    return [one_stack.tokenizer().decode(row) for row in ids]


def grammatical(said: list[str]) -> list[float]:
    """Return a reward of 1 for each text that the grammar of the corpus parses, and of 0 for every other."""
    return [float(masks.is_grammatical(text)) for text in said]


@torch.no_grad()
def look(model: modern.LanguageModel, temperature: float = 1.0, number: int = 400) -> tuple[list[str], float, float]:
    """Return texts drawn at this temperature, the share that is grammatical, and the perplexity of held-out sentences.

    The perplexity is that of the model as it is, at temperature 1.
    """
    said = texts(write(model, number, torch.Generator().manual_seed(99), temperature))
    return said, sum(grammatical(said)) / number, next_word_loss(model, one_stack.heldout()).exp().item()


def measured(arm: str, step: int, what: str) -> list[float]:
    """Return what is stored of an arm after so many steps (0 where it is not trained): a number for each seed.

    An arm of which this was not measured has none.
    """
    found = (run["steps"][str(step)] for run in load_results()["runs"] if run["arm"] == arm)
    return [each[what] for each in found if what in each]


def reinforce(
    model: modern.LanguageModel, steps: int, seed: int, *, reward: Reward = grammatical, beta: float = 0.0
) -> Iterator[float]:
    """Reinforce the model in place by GRPO, all texts of a step being one group; yield the mean reward of each step.

    Args:
        beta: the price of a nat between the model and what it was at first.
    """
    reference, generator = copy.deepcopy(model).requires_grad_(False), torch.Generator().manual_seed(seed)
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(steps):
        ids = write(model, ANSWERS, generator)
        rewards, said = torch.tensor([reward(texts(ids))]), words_said(ids)  # [1, ANSWERS], [ANSWERS, longest]
        with torch.no_grad():
            before = token_log_probs(reference, ids, said)
        log_probs = token_log_probs(model, ids, said)
        loss = grpo_loss(log_probs, group_advantages(rewards)[0], said, reference=before, beta=beta)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        yield rewards.mean().item()


def learn_from_own(model: modern.LanguageModel, steps: int, seed: int, *, reward: Reward = grammatical) -> None:
    """Let the model draw as many texts as `reinforce` would, and train it in place on those with a reward above 0."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [
        F.pad(ids, (0, LONGEST + 1 - ids.shape[1])) for ids in (write(model, ANSWERS, generator) for _ in range(steps))
    ]
    ids = torch.cat(drawn)
    good = ids[torch.tensor(reward(texts(ids))) > 0]
    adam = torch.optim.Adam(model.parameters(), lr=RATE)
    for _ in range(steps):
        loss = next_word_loss(model, good[torch.randint(len(good), (ANSWERS,), generator=generator)])
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
