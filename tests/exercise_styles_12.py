"""Right answers to later exercises of notebooks 12 and 14 in another style: the library's names, loops."""

from __future__ import annotations

import math

import torch

import transformer_lib as tl


def ids_to_logits(src, tgt_in, embed_src, embed_tgt, encoder, decoder, head, pad_id):
    src_mask = tl.padding_mask(src, pad_id)
    tgt_mask = tl.causal_mask(tgt_in.shape[1]) & tl.padding_mask(tgt_in, pad_id)
    return head(decoder(embed_tgt(tgt_in), encoder(embed_src(src), src_mask), tgt_mask, src_mask))


def cached_step(x, keys, values, W_Q, W_K, W_V):
    query, keys, values = (x @ W_Q)[0], torch.vstack([keys, x @ W_K]), torch.vstack([values, x @ W_V])
    grown = [math.exp(float(query @ key) / len(query) ** 0.5) for key in keys]
    output = sum(g / sum(grown) * value for g, value in zip(grown, values, strict=True))
    return output[None], keys, values


STYLES = [("12.4", ids_to_logits), ("14.6", cached_step)]
