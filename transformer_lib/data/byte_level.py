"""Byte-level byte-pair encoding, the tokenizer of GPT-2 (Radford et al. 2019) and of most language models since.

A rule splits the text into words (`splitting`), each word is written as the bytes of its UTF-8, and merges join them,
as notebook 05 joins letters: always the pair that was learned first. Where every byte is a token, no text is unknown.
"""

from __future__ import annotations

import codecs
import heapq
import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import regex
from torch import Tensor

from .._lists import check_items
from .._validate import check_flag
from .chat_template import ChatTemplate, Message, check_messages
from .splitting import Splitter
from .tokenizer_json import read_gpt2, read_tokenizer

_MOST_WORDS, _LONGEST_WORD = 2**16, 64  # words whose ids are remembered: at most so many, of at most so many characters


def _byte_characters() -> dict[int, str]:
    """Return GPT-2's character for each byte: itself, where Latin-1 prints something, else one from U+0100 on."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printed]
    return {byte: chr(byte) for byte in printed} | {byte: chr(0x100 + i) for i, byte in enumerate(others)}


CHARACTER_OF_BYTE = _byte_characters()
BYTE_OF_CHARACTER = {character: byte for byte, character in CHARACTER_OF_BYTE.items()}


def join_pairs(symbols: Iterable[str], ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """Return the symbols after the pair of the lowest rank, the leftmost first, was joined until no pair has a rank.

    A queue holds the pairs by rank, so that n symbols take O(n log n) steps. Each symbol is kept where its first
    character was, and "" stands where another one has been joined to its left neighbour.
    """
    joined = list(symbols)
    right, left = [*range(1, len(joined)), -1], [*range(-1, len(joined) - 1)]  # neighbours; -1: none
    queue = [(ranks[pair], i, pair) for i, pair in enumerate(pairwise(joined)) if pair in ranks]
    heapq.heapify(queue)
    while queue:
        _, i, pair = heapq.heappop(queue)
        j = right[i]
        if j < 0 or (joined[i], joined[j]) != pair:
            continue  # one of the two has been joined with another meanwhile
        joined[i], joined[j] = joined[i] + joined[j], ""
        right[i], right[j] = right[j], -1
        if right[i] >= 0:
            left[right[i]] = i
        for start, end in ((left[i], i), (i, right[i])):
            if min(start, end) >= 0 and (new := (joined[start], joined[end])) in ranks:
                heapq.heappush(queue, (ranks[new], start, new))
    return [symbol for symbol in joined if symbol]


class ByteLevelTokenizer:
    """Byte-level byte-pair encoding with the vocabulary of a trained model.

    >>> tokenizer = tl.ByteLevelTokenizer.from_file("smollm2/tokenizer.json")
    >>> tokenizer.tokens("The capital of France")
    ['The', ' capital', ' of', ' France']

    Without `normalization`, `decode(encode(text)) == text` for every text. One with a byte for which the vocabulary has
    no token is refused: SmolLM2's lacks some control characters, and what begins the planes that Unicode leaves empty.

    Args:
        vocab: id of each token, which is written with `CHARACTER_OF_BYTE`, such as "Ġcapital" for " capital".
        merges: pairs of such tokens, the first learned first.
        splitting: a name of `SPLITTING`, or regular expressions; see `Splitter`.
        special_tokens: id of each special token, by its text. In a text that `encode` reads it is plain text, unless
            `special=True`.
        added_tokens: id of each other text that is always one token, wherever it stands.
        bos, eos: the special token that begins, and the one that ends a text, if there are.
        stop_ids: ids after which generating ends; eos by default.
        ignore_merges: whether a word in the vocabulary is one token, whatever the merges say (Llama 3).
        normalization: "NFC" composes letters and accents first (Qwen).
        chat_template: writes a conversation as one text; see `ChatTemplate`.
        max_len: the longest text in tokens that the model was made for, if it is known.

    Raises:
        TypeError, ValueError: an id belongs to two tokens, a merge gives no token, or another argument is wrong.
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        merges: Iterable[Sequence[str]],
        *,
        splitting: str | Sequence[str] = "gpt2",
        special_tokens: Mapping[str, int] | None = None,
        added_tokens: Mapping[str, int] | None = None,
        bos: str | None = None,
        eos: str | None = None,
        stop_ids: Iterable[int] | None = None,
        ignore_merges: bool = False,
        normalization: str | None = None,
        chat_template: ChatTemplate | None = None,
        max_len: int | None = None,
    ) -> None:
        self.special_tokens, self.added_tokens = dict(special_tokens or {}), dict(added_tokens or {})
        whole = self.added_tokens | self.special_tokens
        self.vocab = {token: i for token, i in vocab.items() if token not in whole}
        self._bytes = _bytes_of_ids(self.vocab, whole)
        self._ranks = {self._pair(pair): rank for rank, pair in enumerate(merges)}
        self.splitter, self.ignore_merges = Splitter(splitting), check_flag("ignore_merges", ignore_merges)
        if normalization not in (None, "NFC"):
            raise ValueError(f"normalization must be None or 'NFC', got {normalization!r}")
        self.normalization, self.chat_template, self.max_len = normalization, chat_template, max_len
        self._whole, self._special_ids = whole, frozenset(self.special_tokens.values())
        self._added_pattern, self._special_pattern = _any_of(self.added_tokens), _any_of(self.special_tokens)
        self._whole_pattern = _any_of(whole)
        self.bos_id, self.eos_id = self._id_of("bos", bos), self._id_of("eos", eos)
        by_default = () if self.eos_id is None else (self.eos_id,)
        self.stop_ids = self._check_stop_ids(by_default if stop_ids is None else stop_ids)
        self._known_words: dict[str, list[int]] = {}

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> ByteLevelTokenizer:
        """Read Hugging Face's `tokenizer.json`, or a folder with it.

        What stands beside it is read, too: bos, eos, `model_max_length` and the chat template in
        `tokenizer_config.json`, a template in `chat_template.jinja`, and `eos_token_id` in `generation_config.json`.
        No bos or eos is ever added to a text: in a conversation the chat template writes them. Truncation and padding,
        which the file can ask for, are left to the caller.

        Raises:
            FileNotFoundError: there is no such file. ValueError: it is no byte-level BPE, or asks for a step that is
                not computed here; the message names it.
        """
        return cls(**read_tokenizer(path))

    @classmethod
    def from_gpt2(cls, vocab: str | os.PathLike[str], merges: str | os.PathLike[str]) -> ByteLevelTokenizer:
        """Read GPT-2's own two files, `vocab.json` and `merges.txt`; its special token is "<|endoftext|>".

        Raises:
            FileNotFoundError: a file is missing. ValueError: it is not of this form.
        """
        return cls(**read_gpt2(vocab, merges))

    def __len__(self) -> int:
        return max(self._bytes) + 1

    def encode(self, text: str, *, special: bool = False) -> list[int]:
        """Return the ids of `text`.

        Args:
            special: whether "<|im_end|>" in the text, and each other special token, is that token. By default it is
                plain text, so that what somebody types cannot end their turn in a conversation.

        Raises:
            TypeError: text is no string. ValueError: it has a lone surrogate, or a byte without a token.
        """
        _check_text(text)
        return self._encode(text, self._whole_pattern if check_flag("special", special) else self._added_pattern)

    def encode_chat(
        self, messages: Iterable[Message], *, add_generation_prompt: bool = True, **variables: object
    ) -> list[int]:
        """Return the ids of a conversation, as the chat template writes it.

        The special tokens are the template's. One in the content of a message is plain text there, too.

        Args: as for `ChatTemplate.render`; by default what stands before an answer comes last.

        Raises:
            TypeError, ValueError: there is no template, it refuses the messages, or one has another form.
        """
        if self.chat_template is None:
            raise ValueError("the tokenizer must have a chat_template to write a conversation, got None")
        listed = check_messages(messages)
        unused = _unused_characters(json.dumps(listed, ensure_ascii=False))
        stand_ins = dict(zip(self.special_tokens, unused, strict=False))
        hidden = [message | {"content": self._hidden(message["content"], stand_ins)} for message in listed]
        text = self.chat_template.render(hidden, add_generation_prompt=add_generation_prompt, **variables)
        _check_text(text)
        return self._encode(text, self._whole_pattern, {ord(one): token for token, one in stand_ins.items()})

    def decode(self, ids: Iterable[int] | Tensor, *, special: bool = False) -> str:
        """Return the text of ids; special tokens are left out, unless `special`.

        Bytes that are no UTF-8, as when a character is cut in two, become U+FFFD, the replacement character.
        """
        return "".join(self.decode_stream(_listed(ids), special=special))

    def decode_stream(self, ids: Iterable[int], *, special: bool = False) -> Iterator[str]:
        """Yield the text of ids as they come, such as those of `tl.generate`.

        A character whose bytes are in several tokens is yielded when it is whole; joined the pieces are what `decode`
        returns.
        """
        check_flag("special", special)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for i in ids:
            if piece := decoder.decode(self._bytes_of(i, special)):
                yield piece
        if rest := decoder.decode(b"", final=True):
            yield rest

    def token(self, id: int) -> str:
        """Return the text of one token, such as " capital"; a byte that is no character alone is written as \\xe4.

        Raises:
            ValueError: no token has this id.
        """
        return self._bytes_of(id, special=True).decode("utf-8", errors="backslashreplace")

    def tokens(self, text: str | Iterable[int] | Tensor) -> list[str]:
        """Return the tokens of a text, or of ids, each as `token` writes it."""
        return [self.token(i) for i in (self.encode(text) if isinstance(text, str) else _listed(text))]

    # Steps ---------------------------------------------------------------------------------------------------
    def _encode(
        self, text: str, whole: regex.Pattern[str] | None, hidden: Mapping[int, str] | None = None
    ) -> list[int]:
        """Return the ids of a text in which the texts of `whole` are tokens; hidden ones come back as plain text."""
        ids: list[int] = []
        for i, piece in enumerate([text] if whole is None else whole.split(text)):  # at odd indices: what it found
            if i % 2:
                ids.append(self._whole[piece])
                continue
            plain = piece.translate(hidden) if hidden else piece
            for word in self.splitter.split(unicodedata.normalize("NFC", plain) if self.normalization else plain):
                ids += self._ids_of_word(word)
        return ids

    def _hidden(self, content: Any, stand_ins: Mapping[str, str]) -> Any:
        """Return a message's content with a character for each special token, so that none is found there."""
        if isinstance(content, str):
            pattern = self._special_pattern
            return content if pattern is None else pattern.sub(lambda found: stand_ins[found[0]], content)
        if isinstance(content, list):
            return [self._hidden(part, stand_ins) for part in content]
        if isinstance(content, dict):
            return {name: self._hidden(part, stand_ins) for name, part in content.items()}
        return content

    def _ids_of_word(self, word: str) -> list[int]:
        """Return the ids of one word, from memory where it was met before: words repeat, and joining is slow."""
        ids = self._known_words.get(word)
        if ids is None:
            ids = self._joined(word)
            if len(self._known_words) >= _MOST_WORDS:
                self._known_words = {}
            if len(word) <= _LONGEST_WORD:
                self._known_words[word] = ids
        return ids

    def _joined(self, word: str) -> list[int]:
        characters = "".join(map(CHARACTER_OF_BYTE.__getitem__, word.encode()))
        if self.ignore_merges and characters in self.vocab:
            return [self.vocab[characters]]
        try:
            return [self.vocab[symbol] for symbol in join_pairs(characters, self._ranks)]
        except KeyError as missing:
            byte = BYTE_OF_CHARACTER[missing.args[0]]
            raise ValueError(f"text has {word!r}, for whose byte 0x{byte:02x} the vocabulary has no token") from None

    def _bytes_of(self, i: int, special: bool) -> bytes:
        try:
            return b"" if not special and i in self._special_ids else self._bytes[i]
        except (KeyError, TypeError):
            raise ValueError(f"ids must be ids of tokens, in [0, {len(self)}), got {i!r}") from None

    # Checks --------------------------------------------------------------------------------------------------
    def _pair(self, pair: Sequence[str]) -> tuple[str, str]:
        """Return a merge, if it joins two tokens to a third one."""
        if len(pair) != 2 or isinstance(pair, str):
            raise ValueError(f"merges must hold pairs of tokens, got {pair!r}")
        left, right = pair
        if missing := [token for token in (left, right, left + right) if token not in self.vocab]:
            raise ValueError(f"merges must join tokens to tokens, got {pair!r}, and vocab has no {missing[0]!r}")
        return left, right

    def _id_of(self, name: str, token: str | None) -> int | None:
        if token is not None and token not in self._whole and token not in self.vocab:
            raise ValueError(f"{name} must be a token, got {token!r}")
        return None if token is None else (self.vocab | self._whole)[token]

    def _check_stop_ids(self, ids: Iterable[int]) -> frozenset[int]:
        ids = list(ids)
        if unknown := [i for i in ids if i not in self._bytes]:
            raise ValueError(f"stop_ids must be ids of tokens, got {unknown}")
        return frozenset(ids)


def _unused_characters(text: str) -> Iterator[str]:
    """Yield characters for private use, to which Unicode gives no meaning, that a text does not have."""
    return (character for character in map(chr, range(0xF0000, 0xFFFFE)) if character not in text)


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"text must be a string, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        number = ord(text[error.start])
        raise ValueError(
            f"text must be what UTF-8 can write, got the lone surrogate U+{number:04X} at index {error.start}"
        ) from None


def _bytes_of_ids(vocab: Mapping[str, int], whole: Mapping[str, int]) -> dict[int, bytes]:
    """Return what each id stands for: a token of the vocabulary in GPT-2's characters, an added one as it is.

    Raises:
        ValueError: two tokens have the same id, there are none, or one has another character.
    """
    try:
        tokens = {i: bytes(map(BYTE_OF_CHARACTER.__getitem__, token)) for token, i in vocab.items()}
    except KeyError as error:
        raise ValueError(f"vocab must be written in GPT-2's characters for bytes, got {error.args[0]!r}") from None
    tokens |= {i: token.encode() for token, i in whole.items()}
    if not tokens or len(tokens) < len(vocab) + len(whole):
        count = len(vocab) + len(whole)
        raise ValueError(f"vocab must hold tokens, each with its own id, got {count} tokens and {len(tokens)} ids")
    return tokens


def _any_of(texts: Iterable[str]) -> regex.Pattern[str] | None:
    """Return a pattern, in one group, that finds the texts, the longest where several begin; None if there are none."""
    longest_first = sorted(texts, key=len, reverse=True)
    return regex.compile(f"({'|'.join(map(regex.escape, longest_first))})") if longest_first else None


def _listed(ids: Iterable[int] | Tensor) -> list[int]:
    return check_items("ids", ids.tolist() if hasattr(ids, "tolist") else ids, "one sentence's ids")
