"""`python -m transformer_lib.train --help`: a translator from a corpus. Not to be imported: `train` is a function.

On several processors: `torchrun --standalone --nproc-per-node 2 -m transformer_lib.train …`
"""

from transformer_lib.corpus_training import main

if __name__ != "__main__":  # imported, it would take the place of the function transformer_lib.train
    raise ImportError("transformer_lib.train is a function and a command; run it: python -m transformer_lib.train")

raise SystemExit(main())
