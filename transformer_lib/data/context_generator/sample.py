"""Print a sample of the context corpus to be read: each sense as often as any other, and the frames evenly.

`python -m transformer_lib.data.context_generator.sample --pairs 300 --seed 0`
"""

from __future__ import annotations

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator

from ..._streams import run_command
from ..corpora import CONTEXT_SPLITS, Pair, load_corpus


def stratified(pairs: list[Pair], count: int, seed: int) -> Iterator[Pair]:
    """Yield `count` pairs, in turn of each sense (of "it": of each order and pronoun), from the frame shown least."""
    rng = random.Random(seed)
    senses: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        senses[pair.word, f"{pair.frame} {pair.expected.lower()}" if pair.word == "it" else pair.sense].append(pair)
    frames: Counter[str] = Counter()
    order: list[tuple[str, str]] = []
    for _ in range(count):
        order = order or rng.sample(sorted(senses), len(senses))
        left = senses[order.pop()]
        pair = min(rng.sample(left, 20), key=lambda choice: frames[choice.frame])
        left.remove(pair)
        frames[pair.frame] += 1
        yield pair


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    corpus = load_corpus("context")
    everything = [pair for split in CONTEXT_SPLITS for pair in corpus[split]]
    for number, pair in enumerate(stratified(everything, arguments.pairs, arguments.seed), start=1):
        print(f"{number}  {pair.word} → {pair.sense}  by {pair.cue}  ({pair.frame})\n   {pair.src}\n   {pair.tgt}")


if __name__ == "__main__":
    run_command(main)
