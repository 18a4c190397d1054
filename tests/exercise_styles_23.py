"""Right answers to the exercises of notebook 23 in another style: loops, library calls, other dtypes."""

from __future__ import annotations

import struct

import numpy as np
import torch


def decode_block_with_struct(block):
    scale, minimum = struct.unpack("<ee", bytes(block[:4].tolist()))
    lower, upper = zip(*(reversed(divmod(int(byte), 16)) for byte in block[4:]), strict=True)
    return np.array([scale * number + minimum for number in lower + upper])


def decode_block_by_loop(block):
    scale, minimum = (float(block[i : i + 2].view(np.float16)[0]) for i in (0, 2))
    weights = np.zeros(32)
    for j, byte in enumerate(block[4:]):
        weights[j], weights[j + 16] = byte % 16, byte // 16
    return weights * scale + minimum


def decode_block_by_bits(block):
    scale, minimum = block[:4].view(np.float16).astype(np.float64)
    bits = np.unpackbits(block[4:, None], axis=1).astype(int)  # the highest first
    numbers = np.concatenate([bits[:, 4:] @ [8, 4, 2, 1], bits[:, :4] @ [8, 4, 2, 1]])
    return scale * numbers + minimum


def round_block_from_above(weights):
    high, low = weights.max().item(), weights.min().item()
    step = (low - high) / 15 or 1.0
    return step, high, [round((w - high) / step) for w in weights.tolist()]


def round_block_by_trying(weights):
    low, step = weights.min(), (weights.max() - weights.min()) / 15
    levels = low + step * torch.arange(16)
    return step, low, (weights[:, None] - levels).abs().argmin(dim=1)


def round_block_in_numpy(weights):
    w = weights.double().numpy()
    scale = max(np.ptp(w) / 15, 1e-12)
    return scale, w.min(), np.clip(np.rint((w - w.min()) / scale), 0, 15).astype(np.uint8)


def rows_for_halves_by_reshape(rows, n_heads):
    return rows.reshape(n_heads, -1, 2, rows.shape[1]).transpose(1, 2).reshape(rows.shape)


def rows_for_halves_row_by_row(rows, n_heads):
    d = rows.shape[0] // n_heads
    ordered = torch.empty_like(rows)
    for r in range(len(rows)):
        head, feature = divmod(r, d)
        ordered[head * d + feature // 2 + feature % 2 * (d // 2)] = rows[r]
    return ordered


def render_chat_by_join(messages, system):
    first = messages[0]["role"] == "system"
    turns = [] if first else [("system", system)]
    turns += [(m["role"], m["content"]) for m in messages]
    return "".join(f"<|im_start|>{r}\n{c}<|im_end|>\n" for r, c in turns) + "<|im_start|>assistant\n"


def converse_reading_last_tokens_late(prompts, read, encode, decode, stop_id, max_new_tokens):
    answers, late = [], []
    for prompt in prompts:
        new, said = late + encode(prompt), []
        while True:
            token = read(new).argmax().item()
            new = [token]
            if token == stop_id:
                late = new
                break
            said.append(token)
            if len(said) == max_new_tokens:
                late = [token, stop_id]
                break
        answers.append(decode(said))
    return tuple(answers)


def converse_reading_stop_at_once(prompts, read, encode, decode, stop_id, max_new_tokens):
    def answer(prompt):
        row, ids = read(torch.tensor(encode(prompt))), []
        for _ in range(max_new_tokens):
            if torch.argmax(row) == stop_id:
                break
            ids += [torch.argmax(row)]
            row = read(ids[-1:])
        read([stop_id])
        return decode(ids)

    return [answer(prompt) for prompt in prompts]


STYLES = (
    ("23.1", decode_block_with_struct),
    ("23.1", decode_block_by_loop),
    ("23.1", decode_block_by_bits),
    ("23.2", round_block_from_above),
    ("23.2", round_block_by_trying),
    ("23.2", round_block_in_numpy),
    ("23.3", rows_for_halves_by_reshape),
    ("23.3", rows_for_halves_row_by_row),
    ("23.4", render_chat_by_join),
    ("23.5", converse_reading_last_tokens_late),
    ("23.5", converse_reading_stop_at_once),
)
