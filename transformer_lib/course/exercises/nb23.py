"""The exercises of notebook 23: blocks of four-bit numbers, the order of rows, a chat's text, and the chat itself."""

from __future__ import annotations

import numpy as np
import torch

from .model import Case, Endless, Exercise, Mistake, integers, normal
from .slips import slips

# 23.1 A block of four-bit numbers -------------------------------------------------------------------------------------


def decode_block(block):
    """Return the 32 weights of a block of type Q4_1, in single precision.

    block: 20 bytes, a NumPy array of uint8. Bytes 0 and 1 are the scale, bytes 2 and 3 the minimum, both 16-bit floats
    (little-endian). Each of the other 16 bytes holds two numbers from 0 to 15: its lower four bits are number j of the
    block, its upper four bits number j + 16. weight = scale · number + minimum.
    """
    scale, minimum = np.frombuffer(block[:4].tobytes(), dtype="<f2").astype(np.float32)
    numbers = [int(byte) % 16 for byte in block[4:]] + [int(byte) // 16 for byte in block[4:]]
    return scale * np.array(numbers, dtype=np.float32) + minimum


def _block_of(scale, minimum, packed):
    """Return the 20 bytes of a block."""
    head = np.array([scale, minimum], dtype="<f2").view(np.uint8)
    return np.concatenate([head, np.asarray(packed, dtype=np.uint8)])


def _block_cases():
    def case(label, seed, scale, minimum):
        return Case(label, (_block_of(scale, minimum, integers(seed, (16,), 0, 256).numpy()),))

    return [
        Case("scale 1, minimum 0, numbers in order", (_block_of(1, 0, [16 * (j % 16) + j for j in range(16)]),)),
        case("a small scale, a negative minimum", 2300, 0.013, -0.11),
        case("a scale of 3, a minimum of 5", 2301, 3.0, 5.0),
        case("a negative scale", 2302, -0.5, 2.0),
        case("a scale of 0", 2303, 0.0, -0.25),
        case("a large scale", 2304, 4001.0, -30000.0),
    ]


EXERCISE_1 = Exercise(
    "23.1", "A block of four-bit numbers", 7, 1, decode_block, _block_cases,
    slips(
        "block", """
            scale, minimum = block[:4].view("<f2").astype(np.float32)
            packed = block[4:]
            numbers = np.concatenate([packed & 15, packed >> 4])
            return scale * numbers + minimum
        """,
        ("upper first", "[packed & 15, packed >> 4]", "[packed >> 4, packed & 15]",
         "The two halves of the block have changed places: the lower four bits of the 16 bytes are numbers 0 to 15, "
         "the upper ones numbers 16 to 31."),
        ("two neighbours", "np.concatenate([packed & 15, packed >> 4])",
         "np.stack([packed & 15, packed >> 4], axis=1).ravel()",
         "You put the two numbers of a byte side by side; byte j has the numbers j and j + 16."),
        ("no minimum", " + minimum", "", "The minimum is missing: weight = scale · number + minimum."),
        ("minimum taken off", "+ minimum", "- minimum", "You subtract the minimum; it is added."),
        ("zero in the middle", "scale * numbers", "scale * (numbers - 8.0)",
         "You took 8 off each number, as the type Q4_0 has it; in Q4_1 the minimum does that."),
        ("big-endian", '"<f2"', '">f2"',
         "You read the two floats with their bytes the wrong way round: the type is '<f2'."),
        ("head swapped", "scale, minimum =", "minimum, scale =",
         "Scale and minimum have changed places: the scale comes first."),
        ("only the lower", "packed >> 4", "packed & 15",
         "Both halves are the lower four bits; the upper ones are byte >> 4."),
        ("not shifted", "packed >> 4", "packed & 240",
         "The upper four bits are still where they were, so these numbers are 16 times too large: shift them by >> 4."),
        ("shifted too little", "packed >> 4", "packed >> 3 & 15", "Four bits are shifted away by >> 4."),
    ),
)  # fmt: skip


# 23.2 Round it yourself -----------------------------------------------------------------------------------------------


def round_block(weights):
    """Return (scale, minimum, numbers), so that scale · numbers + minimum is close to the weights.

    weights: [32]. scale and minimum: two numbers. numbers: [32], integers from 0 to 15. No weight may move by more than
    a thirtieth of the distance from the smallest weight to the largest.
    """
    minimum, largest = float(weights.min()), float(weights.max())
    scale = (largest - minimum) / 15
    numbers = torch.zeros(32, dtype=torch.int64) if scale == 0 else torch.round((weights - minimum) / scale).long()
    return scale, minimum, numbers


def _weights_cases():
    def case(label, seed, size=1.0, middle=0.0):
        return Case(label, ((middle + size * normal(seed, (32,))[0]),))

    one_large = 0.1 * normal(2314, (32,))[0]
    one_large[7] = 5.0
    return [
        case("around 0", 2310),
        case("small, as in the file", 2311, 0.03),
        case("all far above 0", 2312, 0.5, 9.0),
        case("all far below 0", 2313, 0.5, -9.0),
        Case("one that is much larger", (one_large,)),
        Case("32 equal ones", (torch.full((32,), 0.375),)),
        Case("nothing but zeros", (torch.zeros(32),)),
    ]


def _moves_too_far(weights, result):
    """Say what is wrong with a rounding, or return None."""
    if not isinstance(result, list | tuple) or len(result) != 3:
        return "Return three things: scale, minimum, numbers."
    try:
        scale, minimum = float(result[0]), float(result[1])
        numbers = torch.as_tensor(result[2]).double()
    except (TypeError, ValueError):
        return "The scale and the minimum must be numbers, and the numbers a tensor or a list."
    if numbers.shape != (32,):
        return f"The numbers must have shape (32,), got {tuple(numbers.shape)}."
    if not bool(torch.isfinite(numbers).all()) or not np.isfinite([scale, minimum]).all():
        return "Something is not a number, or infinite: what happens where all weights are equal?"
    if bool((numbers != numbers.round()).any()):
        return "The numbers must be whole."
    if numbers.min() < 0 or numbers.max() > 15:
        return _outside(weights, numbers)
    moved = (scale * numbers + minimum - weights.double()).abs().max().item()
    allowed = (weights.max() - weights.min()).item() / 30
    if moved > allowed * 1.001 + 1e-6 * weights.abs().max().item():
        return (
            f"A weight has moved by {moved:.3g}, and {allowed:.3g} is allowed: {_why(weights, scale, minimum, numbers)}"
        )
    return None


def _outside(weights, numbers):
    if weights.min() == weights.max():
        return "Where all weights are equal, the distance is 0: do you divide by it?"
    reach = f"from {numbers.min():g} to {numbers.max():g}"
    return f"The numbers must lie from 0 to 15, which is all that four bits can say; yours reach {reach}."


def _why(weights, scale, minimum, numbers):
    """Say what a rounding that moves weights too far has probably done."""
    low, high = weights.min().item(), weights.max().item()
    if (minimum * numbers + scale - weights).abs().max() < (high - low) / 29:
        return "scale and minimum have changed places, the scale comes first."
    first, last = sorted((minimum, minimum + 15 * scale))
    slack = (high - low) / 30
    if first > low + slack or last < high - slack:
        return "the sixteen steps do not reach from the smallest weight to the largest."
    if last - first > 1.02 * (high - low):
        return "the sixteen steps reach further than the weights do, so each is wider than it has to be."
    return "the steps are right, so look at how you choose the number of each weight."


EXERCISE_2 = Exercise(
    "23.2", "Round it yourself", 8, 2, round_block, _weights_cases,
    slips(
        "weights", """
            low, high = weights.min(), weights.max()
            scale = (high - low) / 15
            if scale == 0:
                return 0.0, low, torch.zeros(32)
            return scale, low, torch.round((weights - low) / scale)
        """,
        ("sixteen steps", "/ 15", "/ 16",
         "You divided the range into 16 steps, so the largest weight gets the number 16; sixteen numbers have 15 steps "
         "between them."),
        ("around zero", "low, high = weights.min(), weights.max()", "high = weights.abs().max()\nlow = -high",
         "Your sixteen steps reach as far below zero as above, whatever the weights do: let them reach from the "
         "smallest weight to the largest."),
        ("cut off", "torch.round((weights - low) / scale)", "((weights - low) / scale).floor()",
         "You cut numbers off; round them to the nearest, or a weight can move by a whole step."),
        ("equal ones", "if scale == 0:\n    return 0.0, low, torch.zeros(32)\n", "",
         "Where all weights are equal, the scale is 0 and you divide by it."),
        ("not rounded", "torch.round((weights - low) / scale)", "(weights - low) / scale",
         "Your numbers are not whole; four bits can say 0, 1, … 15."),
        ("from zero", "(weights - low) / scale", "weights / scale",
         "You did not take the minimum off before dividing, so the numbers do not lie from 0 to 15."),
    ),
    returns=("scale", "minimum", "numbers"),
    judge=_moves_too_far,
)  # fmt: skip


# 23.3 Somebody else's order -------------------------------------------------------------------------------------------


def rows_for_halves(rows, n_heads):
    """Return the rows of a projection to queries or keys in the order for rotary positions by halves.

    rows: [n_heads · d, d_model]; row r of a head makes its feature r. As they come, features 2i and 2i + 1 of a head
    are a pair. Afterwards features i and i + d/2 are that pair.
    """
    d = len(rows) // n_heads
    order = [head * d + row for head in range(n_heads) for row in [*range(0, d, 2), *range(1, d, 2)]]
    return rows[order]


def _rows_cases():
    def case(label, seed, n_heads, d, d_model):
        return Case(label, (normal(seed, (n_heads * d, d_model))[0], n_heads))

    return [
        Case("one head of 6, numbered rows", (torch.arange(6.0)[:, None].repeat(1, 3), 1)),
        case("2 heads of 4", 2320, 2, 4, 3),
        case("3 heads of 10", 2321, 3, 10, 7),
        case("5 heads of 2", 2322, 5, 2, 11),
        case("a narrow stream, 2 heads of 14", 2323, 2, 14, 1),
    ]


EXERCISE_3 = Exercise(
    "23.3", "Somebody else's order", 8, 2, rows_for_halves, _rows_cases,
    slips(
        "rows, n_heads", """
            heads = rows.unflatten(0, (n_heads, -1))
            ordered = torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1)
            return ordered.flatten(0, 1)
        """,
        ("the way back", "torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1)",
         "torch.stack(heads.chunk(2, dim=1), dim=2).flatten(1, 2)",
         "You went the other way: your rows suit neighbouring pairs if they came in halves."),
        ("all heads at once", "heads = rows.unflatten(0, (n_heads, -1))", "heads = rows[None]",
         "You put all even rows of the matrix first; each head keeps its own rows."),
        ("odd first", "[heads[:, 0::2], heads[:, 1::2]]", "[heads[:, 1::2], heads[:, 0::2]]",
         "The two halves have changed places, so each pair would be turned the other way: even features come first."),
        ("columns", "heads = rows.unflatten(0, (n_heads, -1))",
         "return torch.cat([rows[:, 0::2], rows[:, 1::2]], dim=1)\nheads = rows",
         "You put the columns in another order; a feature of a head is a row."),
        ("upside down", "heads = rows.unflatten(0, (n_heads, -1))",
         "return rows.unflatten(0, (n_heads, -1)).flip(1).flatten(0, 1)\nheads = rows",
         "You turned the rows of each head upside down; only the pairs have to be taken apart."),
        ("unchanged", "return ordered.flatten(0, 1)", "return rows * 1",
         "The rows are still in the order in which they came."),
    ),
)  # fmt: skip


# 23.4 A conversation is a text ----------------------------------------------------------------------------------------

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def render_chat(messages, system):
    """Return a conversation as the one text that the model reads.

    messages: a list of dictionaries, each {"role": "user" or "assistant" or "system", "content": a text}. A message is
    written as <|im_start|>, its role, a line break, its content, <|im_end|>, a line break. If the first message is not
    of the system, one with the text `system` is written first. The text ends with what opens the assistant's turn.
    """
    opening = [] if messages[0]["role"] == "system" else [{"role": "system", "content": system}]
    parts = ["<|im_start|>{role}\n{content}<|im_end|>\n".format(**message) for message in [*opening, *messages]]
    return "".join([*parts, "<|im_start|>assistant\n"])


def _says(role, content):
    return {"role": role, "content": content}


def _messages_cases():
    hello, answer = _says("user", "Hello!"), _says("assistant", "Hello.")
    return [
        Case("one question", ([hello], SYSTEM)),
        Case("a question after an answer", ([hello, answer, _says("user", "And\nnow?")], SYSTEM)),
        Case("the system speaks first", ([_says("system", "Be brief."), hello], SYSTEM)),
        Case("another system, an empty message", ([_says("user", "")], "Be kind.")),
        Case("the system speaks only later", ([hello, answer, _says("system", "B"), hello], "C")),
        Case("two questions in a row", ([hello, _says("user", "Are you there?")], "C")),
        Case("spaces and line breaks at the ends", ([_says("user", "  one\n\n")], " C\n")),
        Case("a system that says nothing", ([hello], "")),
        Case("the system speaks, and then again", ([_says("system", "A"), hello, answer, _says("system", "B")], "C")),
    ]


EXERCISE_4 = Exercise(
    "23.4", "A conversation is a text", 6, 1, render_chat, _messages_cases,
    slips(
        "messages, system", '''
            if messages[0]["role"] != "system":
                messages = [{"role": "system", "content": system}] + messages
            text = ""
            for message in messages:
                text += f"<|im_start|>{message['role']}\\n{message['content']}<|im_end|>\\n"
            return text + "<|im_start|>assistant\\n"
        ''',
        ("nobody's turn", ' + "<|im_start|>assistant\\n"', "",
         "The text ends with the question: open the assistant's turn, or the model does not know that it is its own."),
        ("turn closed", '"<|im_start|>assistant\\n"', '"<|im_start|>assistant\\n<|im_end|>\\n"',
         "You closed the assistant's turn before anything was said in it."),
        ("no line break after the end", "<|im_end|>\\n\"", '<|im_end|>"',
         "There is no line break after <|im_end|>."),
        ("no line break after the role", "['role']}\\n", "['role']} ",
         "After the role comes a line break, not a space."),
        ("always the system", 'if messages[0]["role"] != "system":', "if True:",
         "The system speaks twice where the messages begin with its own."),
        ("never the system", 'if messages[0]["role"] != "system":', "if False:",
         "Where the messages do not begin with the system's, its text comes first."),
        ("looks at all messages", 'if messages[0]["role"] != "system":',
         'if all(message["role"] != "system" for message in messages):',
         "You look for the system in all messages; only the first one decides."),
        ("stripped", "{message['content']}", "{message['content'].strip()}",
         "You strip the contents; they are written as they are."),
        ("nobody's system", 'if messages[0]["role"] != "system":', 'if system and messages[0]["role"] != "system":',
         "Also an empty text of the system is written, between its <|im_start|> and <|im_end|>."),
        ("never ended", "<|im_end|>", "", "A message must end with <|im_end|>."),
        ("no line break before the answer", 'return text + "<|im_start|>assistant\\n"',
         'return text + "<|im_start|>assistant"',
         "What opens the assistant's turn ends with a line break."),
    ),
)  # fmt: skip


# 23.5 Your chat loop --------------------------------------------------------------------------------------------------


class Reading:
    """A pretend model with its cache: the next token depends on everything that it has read, in that order."""

    given_to_be_trained = True  # it is changed by being called, so each call of an answer gets a copy of its own

    def __init__(self, seed, vocab_size):
        self.table, self.ids = normal(seed, (131, vocab_size))[0], []

    def __call__(self, ids):
        """Read ids, a list, and return the logits [vocab_size] of the token after them."""
        new = [int(i) for i in ids]
        if not new:
            raise ValueError("read must be given at least one id")
        self.ids += new
        if len(self.ids) > 500:
            raise Endless
        state = 1
        for i in self.ids:
            state = (state * 31 + i + 7) % 131
        return self.table[state]


def pretend_encode(text):
    """Return an id from 10 on for each character, which no answer has."""
    return [10 + ord(character) % 7 for character in text]


def pretend_decode(ids):
    """Return a letter for each id and what stands between two: as with bytes, a text is more than its ids' texts."""
    return "-".join(chr(97 + int(i)) for i in ids)


def converse(prompts, read, encode, decode, stop_id, max_new_tokens):
    """Return the answers of a whole conversation, a list of texts; nothing is read twice.

    prompts: texts; each is all that is new when it is the model's turn (the next question, and what opens its answer).
    read: give it the ids that are new, a list; it remembers them after all it was ever given, and returns the logits
    [vocab_size] of the token that follows. encode, decode: from a text to a list of ids, and back.
    The likeliest token is said, one at a time, until it is stop_id or max_new_tokens have been said. stop_id is no part
    of an answer, but the model must have read one after each answer before the next prompt: also after an answer that
    was cut off.
    """
    answers, ended = [], []
    for prompt in prompts:
        logits, said = read(ended + encode(prompt)), []
        while len(said) < max_new_tokens and (token := int(logits.argmax())) != stop_id:
            said.append(token)
            logits = read([token])
        ended = [stop_id]
        answers.append(decode(said))
    return answers


def _chat_cases():
    def case(label, seed, prompts, vocab_size, stop_id, most):
        return Case(label, (prompts, Reading(seed, vocab_size), pretend_encode, pretend_decode, stop_id, most))

    return [
        case("one question", 2347, ["hello"], 7, 2, 30),
        case("three questions", 2348, ["hello", "and you", "bye"], 7, 2, 30),
        case("two questions, another stop", 2349, ["ab", "c"], 5, 4, 20),
        case("an answer that is cut off", 2341, ["a long story", "go on", "more"], 9, 0, 3),
        case("one token allowed", 2352, ["a", "bc", "def", "g"], 3, 1, 1),
        case("four questions", 2365, ["w", "x", "yy", "zzz"], 5, 3, 25),
    ]


def _reads_everything_again(prompts, read, encode, decode, stop_id, max_new_tokens):
    """Give read the whole conversation, each time."""
    answers, history = [], []
    for prompt in prompts:
        history += encode(prompt)
        said = []
        while len(said) < max_new_tokens and (token := int(read(history).argmax())) != stop_id:
            said.append(token)
            history.append(token)
        history.append(stop_id)
        answers.append(decode(said))
    return answers


EXERCISE_5 = Exercise(
    "23.5", "Your chat loop", 12, 3, converse, _chat_cases,
    slips(
        "prompts, read, encode, decode, stop_id, max_new_tokens", """
            answers, unread = [], []
            for prompt in prompts:
                new = unread + encode(prompt)
                logits = read(new)
                said = []
                for _ in range(max_new_tokens):
                    token = int(logits.argmax())
                    if token == stop_id:
                        break
                    said.append(token)
                    logits = read([token])
                unread = [stop_id]
                answers.append(decode(said))
            return answers
        """,
        ("read again", "logits = read([token])", "logits = read(new + said)",
         "You give read the whole text for each token. It has a cache: give it only what is new, and nothing twice."),
        ("all of the answer again", "read([token])", "read(said)",
         "You give read the answer so far for each token; all but its last token have been read already."),
        ("no stop between turns", "unread = [stop_id]", "unread = []",
         "The next prompt comes right behind the answer: the model must have read stop_id in between."),
        ("stop said", "if token == stop_id:\n            break\n        said.append(token)",
         "said.append(token)\n        if token == stop_id:\n            break",
         "stop_id is part of your answers; it ends an answer, and is not said."),
        ("cut off", "unread = [stop_id]", "unread = [stop_id] if token == stop_id else []",
         "After an answer that was cut off at max_new_tokens, stop_id is missing before the next prompt."),
        ("never stops", "if token == stop_id:\n            break\n        ", "",
         "The answer goes on after stop_id."),
        ("decoded one by one", "decode(said)", '"".join(decode([token]) for token in said)',
         "You decode each token by itself; a character may need several: decode the whole answer at once."),
        ("one too many", "range(max_new_tokens)", "range(max_new_tokens + 1)", "You allow one token too many."),
        ("the last one unread", "logits = read([token])",
         "if len(said) < max_new_tokens:\n            logits = read([token])",
         "The last token of an answer that was cut off is never read: the model must have read all that it has said."),
        ("answers pile up",
         "answers, unread = [], []\nfor prompt in prompts:\n    new = unread + encode(prompt)\n"
         "    logits = read(new)\n    said = []\n    for _ in range(max_new_tokens):",
         "answers, unread, said = [], [], []\nfor prompt in prompts:\n    new = unread + encode(prompt)\n"
         "    logits = read(new)\n    for _ in range(max_new_tokens):",
         "Each of your answers begins with those before it: start each with an empty list."),
        ("one too few", "range(max_new_tokens)", "range(max_new_tokens - 1)", "You allow one token too few."),
        ("no limit", "for _ in range(max_new_tokens):", "while True:",
         "Nothing ends an answer in which stop_id never comes; end it after max_new_tokens."),
        ("forgets what it says", "        logits = read([token])\n", "        read([token])\n",
         "You read each token, but choose all of them from the same logits, those of the prompt."),
        ("never reads what it says", "said.append(token)\n        logits = read([token])", "said.append(token)",
         "What is said is never read, so the same token comes again and again: give each to read."),
        ("stop read at once", "if token == stop_id:\n            break",
         "if token == stop_id:\n            read([token])\n            break",
         "stop_id has been read twice: when it came, and again before the next prompt."),
        ("ids, not texts", "answers.append(decode(said))", "answers.append(said)",
         "You return ids; decode makes a text."),
        ("one answer", "    answers.append(decode(said))\nreturn answers", "    return [decode(said)]",
         "You return after the first answer; the conversation goes on."),
        Endless=Endless,
    )
    + (Mistake("everything again", _reads_everything_again,
               "You give read the whole conversation for each token. It has a cache: give it only what is new."),),
    items="answers",
    part="converse",
)  # fmt: skip

EXERCISES = (EXERCISE_1, EXERCISE_2, EXERCISE_3, EXERCISE_4, EXERCISE_5)
