"""What the trained translator is worth: translations, BLEU and chrF with intervals, and how they came about."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
from collections.abc import Sequence
from typing import Any

import torch

from .._files import write_atomically
from .._machine import processor
from .._paths import PathName
from ..baselines import count_parameters
from ..data.corpora import Pair
from ..data.metrics import Score, bleu, chrf
from ..decoding.translator import Translator
from .learning import Learned
from .lines import one_line
from .preparation import SPLITS, Data

NAMES = {"multi30k": {"test": "test_2016_flickr"}}  # the split's full name, where ours is short
EXTRA_TOKENS = 50  # a translation may be longer than the longest source by this many (Vaswani et al. 2017, §6.1)


def score(translations: Sequence[str], pairs: Sequence[Pair]) -> dict[str, Score]:
    """Return BLEU, BLEU without regard to case, and chrF, each with sacrebleu's bootstrap (1,000 resamples)."""
    return {
        "BLEU": bleu(translations, pairs),
        "BLEU, lower-cased": bleu(translations, pairs, lowercase=True),
        "chrF": chrf(translations, pairs),
    }


def report(arguments: argparse.Namespace, argv: Sequence[str], data: Data, learned: Learned) -> dict[str, Any]:
    """Translate validation and test split, write translations and `scores.json` to the folder, and print a table."""
    translator = Translator(learned.model, data.tokenizer, data.tokenizer)
    _, validation, test = (NAMES.get(arguments.corpus, {}).get(name, name) for name in SPLITS[arguments.corpus])
    runs = [(validation, data.validation, 1), (test, data.test, 1), (test, data.test, arguments.beam)]
    scores = {}
    for split, pairs, beam in runs:
        how = "greedy" if beam == 1 else f"beam {beam}"
        if f"{split}, {how}" in scores:
            continue  # --beam 1
        translations = _translate(translator, pairs, beam, arguments.length_penalty, arguments.path)
        file = arguments.out / f"{split}.{how.replace(' ', '')}.txt"
        write_atomically(file, "".join(f"{one_line(text)}\n" for text in translations).encode("utf-8"))
        scores[f"{split}, {how}"] = score(translations, pairs)
    content = {
        **describe(arguments, argv, data, learned),
        "scores": {
            name: {metric: [round(x, 2) for x in (s.mean, s.low, s.high)] for metric, s in metrics.items()}
            for name, metrics in scores.items()
        },
    }
    write_atomically(arguments.out / "scores.json", (json.dumps(content, indent=1) + "\n").encode("utf-8"))
    print(table(scores), flush=True)
    return content


def _translate(
    translator: Translator, pairs: Sequence[Pair], beam: int, length_penalty: float, path: PathName
) -> list[str]:
    texts = [pair.src for pair in pairs]
    limit = longest_translation(translator, texts)
    return translator.translate(texts, beam_size=beam, max_new_tokens=limit, length_penalty=length_penalty, path=path)


def longest_translation(translator: Translator, texts: Sequence[str]) -> int:
    """Return how many tokens a translation may have: EXTRA_TOKENS more than the longest text."""
    longest = max((len(translator.src_tokenizer.encode(text)) for text in texts), default=0)
    return min(translator.model.config.max_len, longest + EXTRA_TOKENS)


def describe(arguments: argparse.Namespace, argv: Sequence[str], data: Data, learned: Learned) -> dict[str, Any]:
    """Return how the scores came about: command, sizes, time, steps, versions, and every epoch's validation loss."""
    history = learned.history
    return {
        "command": f"transformer-lib {shlex.join(argv)}",
        "pairs": {"train": len(data.train), "validation": len(data.validation), "test": len(data.test)},
        "vocabulary": len(data.tokenizer),
        "parameters": count_parameters(learned.model),
        "config": learned.model.config.to_dict(),
        "minutes": round(history.seconds / 60, 2),
        "steps": len(history.steps),
        "epochs": round(len(history.steps) / learned.steps_per_epoch, 2),
        "best": learned.best,
        "validation": [round(epoch["validation"], 4) for epoch in history.epochs if epoch is not None],
        "length_penalty": arguments.length_penalty,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processes": int(os.environ.get("WORLD_SIZE", 1)),
        "threads": torch.get_num_threads(),
        "precision": history.precision,
        "device": next(learned.model.parameters()).device.type,
        "processor": processor(),
    }


def table(scores: dict[str, dict[str, Score]]) -> str:
    """Return the scores as lines of text, one row for each way to translate."""
    metrics = list(next(iter(scores.values())))
    width = max(map(len, scores))
    lines = [" " * width + "".join(f"  {metric:>19}" for metric in metrics)]
    for name, row in scores.items():
        cells = (f"{s.mean:.1f} [{s.low:.1f}, {s.high:.1f}]" for s in row.values())
        lines.append(f"{name:<{width}}" + "".join(f"  {cell:>19}" for cell in cells))
    return "\n".join(lines)
