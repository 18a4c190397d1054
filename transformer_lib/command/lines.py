"""Sentences as people's files have them: one a line, with marks, line ends and forms of a letter of many kinds."""

from __future__ import annotations

import codecs
import io
import re
import sys
import unicodedata
from collections.abc import Iterator
from typing import BinaryIO

AT_ONCE = 1000  # lines handed on together: enough of each length to be worth a batch
_BYTES = 2**16  # read at once
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NOT_TEXT = re.compile("[\ud800-\udfff]")  # a byte that could not be decoded, or half of a pair of UTF-16
_SPACE = re.compile(r"\s")
_INVISIBLE = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_TYPOGRAPHIC = str.maketrans("‘’‚‛“”„‟‐", "''''\"\"\"\"-")


def standard_input() -> Iterator[list[str]]:
    """Yield the lines of standard input, as `lines_of` does: in UTF-8, but as a terminal's own where one types them.

    Raises:
        ValueError: standard input is closed.
    """
    if sys.stdin is None:
        raise ValueError("SENTENCE must be given where standard input is closed")
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:  # put in its place by another program, as text
        return lines_of(io.BytesIO(sys.stdin.read().encode("utf-8", "surrogateescape")))
    return lines_of(stream, sys.stdin.encoding if sys.stdin.isatty() else "utf-8")


def lines_of(stream: BinaryIO, encoding: str = "utf-8") -> Iterator[list[str]]:
    """Yield the lines of a stream as they come: those that are there already, at most AT_ONCE together.

    A line ends in \\n, \\r\\n or \\r. A byte order mark is no part of the text; that of UTF-16 says how to read on.
    A byte that cannot be decoded becomes a lone surrogate (PEP 383), which `plain` refuses in its line.

    Raises:
        ValueError: the stream ends within a character of UTF-16. OSError: it cannot be read.
    """
    rest = ""
    for text in _decoded(stream, encoding):
        *lines, rest = (rest + text).split("\n")
        for start in range(0, len(lines), AT_ONCE):
            yield lines[start : start + AT_ONCE]
    if rest:
        yield [rest]


def _decoded(stream: BinaryIO, encoding: str) -> Iterator[str]:
    """Yield the text of a stream, piece by piece, with \\n for every end of a line."""
    piece = stream.read1(_BYTES)  # type: ignore[attr-defined] # of every buffered stream
    if piece in (b"\xff", b"\xfe"):  # half a mark
        piece += stream.read1(_BYTES)  # type: ignore[attr-defined]
    decoder = io.IncrementalNewlineDecoder(_decoder(piece, encoding), translate=True)
    while piece:
        yield decoder.decode(piece)
        piece = stream.read1(_BYTES)  # type: ignore[attr-defined]
    yield decoder.decode(b"", final=True)


def _decoder(start: bytes, encoding: str) -> codecs.IncrementalDecoder:
    if start.startswith(_UTF_16):
        return codecs.getincrementaldecoder("utf-16")("surrogatepass")
    name = codecs.lookup(encoding).name
    return codecs.getincrementaldecoder("utf-8-sig" if name == "utf-8" else name)("surrogateescape")


def plain(line: str) -> str:
    """Return a line in one form: letters composed (NFC), every space a plain one, nothing invisible.

    Raises:
        ValueError: it is not text.
    """
    if wrong := _NOT_TEXT.search(line):
        raise ValueError(_not_text(line[: wrong.start()], ord(wrong[0])))
    if "\0" in line:
        raise ValueError("text must not have NUL characters; UTF-16 is read where it begins with a byte order mark")
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", _SPACE.sub(" ", line))).strip()


def one_line(text: str) -> str:
    """Return the text with a space for each line end within it, so that a file has one line for each text."""
    return re.sub(r"[\r\n]+", " ", text)


def _not_text(before: str, code: int) -> str:
    after = f" after {before[-20:]!r}" if before else ""
    if not 0xDC80 <= code <= 0xDCFF:
        return f"text must be Unicode, got half of a surrogate pair{after}"
    return (
        f"text must be UTF-8, got the byte 0x{code - 0xDC00:02x}{after}; "
        "a file is converted, for example, by iconv -f WINDOWS-1252 -t UTF-8"
    )


def simplified(text: str) -> str:
    """Return the text with compatible forms of letters (NFKC), such as a ligature's two, and a typewriter's quotes."""
    return unicodedata.normalize("NFKC", text.translate(_TYPOGRAPHIC))
