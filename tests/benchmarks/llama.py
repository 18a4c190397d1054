"""llama.cpp's side of the table of a real model, in the environment that has llama-cpp-python: `python llama.py FILE`.

It stands alone, as that environment has nothing else: each line it reads is [ids, number of new ids, threads] in JSON,
and each it writes is the list of the ids that were said, greedily.
"""

from __future__ import annotations

import json
import sys

CONTEXT = 1024  # tokens of prompt and answer


def main() -> None:
    """Answer until nobody asks any more."""
    from llama_cpp import Llama

    models = {}
    for line in sys.stdin:
        ids, new_tokens, threads = json.loads(line)
        if threads not in models:
            options = {"n_threads": threads, "n_threads_batch": threads, "n_ctx": CONTEXT, "verbose": False}
            models[threads] = Llama(sys.argv[1], **options)
        print(json.dumps(said(models[threads], ids, new_tokens)), flush=True)


def said(model, ids: list[int], new_tokens: int) -> list[int]:
    model.reset()
    found = []
    for _ in range(new_tokens):
        model.eval(found[-1:] or ids)
        found.append(int(model.sample(temp=0.0)))
    return found


if __name__ == "__main__":
    main()
