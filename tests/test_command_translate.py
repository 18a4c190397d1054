"""`transformer-lib translate` on text as people's files have it, line by line, and on models that are not there."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
import torch

import transformer_lib as tl
from factories import make_config, make_model
from transformer_lib import command
from transformer_lib.command import lines, translating
from transformer_lib.training import checkpoint

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
SENTENCE = "The brother saw the team and an ugly bat."
GERMAN = "Der Bruder sah die Mannschaft und einen hässlichen Schläger."
KNOWN = ("café", "field", "don", "'", "t", '"', "-", ".", *"abcdefghijk")  # 19 words
MANY = [f"w{number}" for number in range(25)]


@pytest.fixture
def translate(monkeypatch, capsys):
    """Run the command on these bytes of standard input; return its status and the lines of its two outputs."""

    def run(content, *options):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="ascii"))
        status = command.main(["translate", *options])
        said = capsys.readouterr()
        return status, said.out.split("\n")[:-1], said.err.splitlines()

    return run


@pytest.fixture
def rambler(tmp_path):
    """The folder of a run whose model hardly ever ends a sentence."""
    model = make_model(scale=2.0, max_len=89)
    with torch.no_grad():
        model.output_head.weight[:4] = 0  # no special token is ever the likeliest of 29
    folder = tmp_path / "run"
    tl.Translator(model, tl.WordTokenizer(KNOWN), tl.WordTokenizer(MANY)).save(folder / "best.safetensors")
    return folder


# Line by line


def test_a_line_that_cannot_be_translated_costs_no_other(translate):
    content = f"{SENTENCE}\nThe qwx.\n\n{'the ' * 67}\n{SENTENCE}".encode()
    status, out, errors = translate(content)
    assert (status, out) == (1, [GERMAN, "", "", "", GERMAN])
    assert [error.split(": ", 1)[0] for error in errors] == ["transformer-lib translate"] * 2
    assert "line 2: text has the unknown word 'qwx', not among the 452 known ones" in errors[0]
    assert "line 4: text has 67 tokens, more than max_len = 64" in errors[1]


def test_so_it_is_with_sentences_of_the_command_line(capsys):
    assert command.main(["translate", SENTENCE, "The qwx.", SENTENCE + "\udce9", f"{SENTENCE}\n"]) == 1
    said = capsys.readouterr()
    assert said.out.split("\n") == [GERMAN, "", "", GERMAN, ""]
    assert "sentence 2: text has the unknown word 'qwx'" in said.err
    assert "sentence 3: text must be UTF-8, got the byte 0xe9 after 'eam and an ugly bat.'" in said.err


@pytest.mark.parametrize("beam", [1, 3])
def test_a_translation_does_not_depend_on_the_lines_around_it(translate, rambler, beam, monkeypatch):
    texts = ["a", "b c d e f g h i j k a b c", "c a", "b c d e f", "a", "k j"]
    options = ("--run", str(rambler), "--beam", str(beam))
    alone = [translate(text.encode(), *options)[1][0] for text in texts]
    if beam == 1:  # as long as may be: 50 words more than the source
        assert [len(line.split()) for line in alone] == [len(text.split()) + 50 for text in texts]
    together = "\n".join(texts).encode()
    assert translate(together, *options) == (0, alone, [])
    monkeypatch.setattr(lines, "AT_ONCE", 2)
    assert translate(together, *options) == (0, alone, [])


def test_what_has_come_is_translated_before_more_is_read(monkeypatch, capsys):
    """A conversation: the second line is written when the first has been answered."""
    answers = []

    class Pipe(io.BytesIO):
        pieces = [SENTENCE[:9].encode(), SENTENCE[9:].encode() + b"\n", SENTENCE.encode(), b""]

        def read1(self, size=-1):
            answers.append(capsys.readouterr().out)
            return self.pieces.pop(0)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(), encoding="utf-8"))
    assert command.main(["translate"]) == 0
    assert answers == ["", "", GERMAN + "\n", ""]
    assert capsys.readouterr().out == GERMAN + "\n"


def test_a_translation_is_one_line_even_if_the_model_writes_more():
    class Breaking:
        model = tl.load_trained().model
        src_tokenizer = tl.load_trained().src_tokenizer

        def translate(self, texts, **options):
            return ["ein\r\nWort\n" for _ in texts]

    assert translating.translate(Breaking(), [SENTENCE], beam_size=1) == [translating.Translated("ein Wort ")]


# Text as people's files have it


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + SENTENCE.encode(),
        SENTENCE.encode("utf-16"),
        b"\xfe\xff" + SENTENCE.encode("utf-16-be"),
        SENTENCE.encode() + b"\r\n",
        SENTENCE.encode() + b"\r",
        b"\t" + SENTENCE.replace(" ", "\xa0").encode() + b" \n",
        SENTENCE.replace(" ", "\u2028", 1).replace(" ", "\f", 1).replace(" ", "\x85", 1).encode(),
        SENTENCE.replace("brother", "bro\u200bther\ufeff\xad").encode(),
        SENTENCE.replace("ugly", "u\ufb02y".replace("\ufb02", "g\uff4c")).encode(),  # a wide l
    ],
    ids=["mark", "UTF-16", "UTF-16, big", "CR LF", "CR", "spaces", "separators", "invisible", "wide"],
)
def test_one_sentence_in_many_files(translate, content):
    assert translate(content) == (0, [GERMAN], [])


def test_nothing_gives_nothing(translate):
    assert translate(b"") == translate(b"\xef\xbb\xbf") == (0, [], [])
    assert translate(b" \n\xe2\x80\x8b") == (0, ["", ""], [])


@pytest.mark.parametrize("beam", ["1", "2"])
def test_forms_of_the_same_letter_are_the_same_word(translate, rambler, beam):
    forms = ["don't a-b café field.", "don’t a‐b cafe\u0301 ﬁeld.", "ｄon‘t a-b café field."]
    assert unicodedata.is_normalized("NFC", forms[0])
    status, out, errors = translate("\n".join(forms).encode(), "--run", str(rambler), "--beam", beam)
    assert (status, errors) == (0, []) and out[0] and len(set(out)) == 1


def test_subwords_are_given_what_they_can_tell_apart(tmp_path, translate):
    """Composed, but otherwise as it was: a ligature and a raised 2 are characters of their own."""
    seen = []

    class Noting(tl.BPETokenizer):
        def encode(self, text, **options):
            seen.append(text)
            return super().encode(text, **options)

    bpe = Noting.from_texts(["a b"], vocab_size=260)
    model = make_model(src_vocab_size=len(bpe), tgt_vocab_size=len(bpe), max_len=89)
    found = translating.translate(tl.Translator(model, bpe, bpe), ["  a²  ﬁ “cafe\u0301” "], beam_size=1)
    assert set(seen) == {"a²  ﬁ “café”"} and not found[0].problem


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9 au lait", "line 1: text must be UTF-8, got the byte 0xe9 after 'caf'; a file is converted"),
        (b"\xffa", "line 1: text must be UTF-8, got the byte 0xff; a file is converted"),
        (b"\xff", "line 1: text must be UTF-8, got the byte 0xff; a file is converted"),
        (b"\x93The brother\x94", "line 1: text must be UTF-8, got the byte 0x93; a file is converted"),
        (b"The\x00brother", "line 1: text must not have NUL characters"),
        (b"\xff\xfea\x00\x00\xd8b\x00", "line 1: text must be Unicode, got half of a surrogate pair after 'a'"),
    ],
)
def test_what_is_no_text_is_said_with_its_line(translate, content, message):
    mark = b"" if content.startswith(b"\xff\xfe") else f"\n{SENTENCE}".encode()
    status, out, errors = translate(content + mark)
    assert status == 1 and out == ["", *[GERMAN] * bool(mark)]
    [error] = errors
    assert message in error


def test_utf_16_that_ends_within_a_character_is_refused(translate, capsys):
    with pytest.raises(SystemExit) as left:
        translate(SENTENCE.encode("utf-16")[:-1])
    assert left.value.code == 2 and "truncated data" in capsys.readouterr().err


def test_lines_end_where_they_should_however_the_pieces_fall():
    class InPieces(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(cut)

    for length in range(6):
        for content in map(b"".join, itertools.product([b"\r", b"\n", "é\u2028".encode(), b"\x1c"], repeat=length)):
            *whole, last = re.split(r"\r\n|\r|\n", content.decode())
            wanted = [*whole, last] if last else whole
            for cut in (1, 2, 3):
                found = [line for part in lines.lines_of(InPieces(content)) for line in part]
                assert found == wanted, (content, cut)


def test_a_terminal_speaks_its_own_encoding_and_a_file_utf_8(monkeypatch):
    for typed, content in ((True, "é".encode("latin-1")), (False, "é".encode())):
        stream = io.TextIOWrapper(io.BytesIO(content), encoding="latin-1")
        monkeypatch.setattr(stream.buffer, "isatty", lambda typed=typed: typed, raising=False)
        monkeypatch.setattr(sys, "stdin", Standing(stream, typed))
        assert list(lines.standard_input()) == [["é"]]


class Standing:
    """A stream in the place of standard input, typed or not."""

    def __init__(self, stream, typed):
        self.buffer, self.encoding, self.isatty = stream.buffer, stream.encoding, lambda: typed


def test_text_that_another_program_put_in_the_place_of_standard_input_is_read(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SENTENCE}\n"))
    assert command.main(["translate"]) == 0
    assert capsys.readouterr().out == GERMAN + "\n"


def test_a_closed_standard_input_is_said(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(SystemExit) as left:
        command.main(["translate"])
    assert left.value.code == 2 and "SENTENCE must be given where standard input is closed" in capsys.readouterr().err


# Consoles


def started(*words, encoding="utf-8", **options):
    own = os.environ | {"PYTHONIOENCODING": encoding}
    words = [sys.executable, "-m", "transformer_lib", *words]
    return subprocess.Popen(words, env=own, cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp932", "latin-1"])
def test_a_translation_keeps_its_letters_in_a_file_whatever_the_console(encoding):
    process = started("translate", encoding=encoding, stdout=subprocess.PIPE)
    out, errors = process.communicate(f"{SENTENCE}\nThe \u00fcber.\n".encode(), timeout=120)
    assert (process.returncode, out.decode().splitlines()) == (1, [GERMAN, ""])
    said = errors.decode(encoding)
    assert "line 2: text has the unknown word" in said and ("über" in said or "\\xfcber" in said)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a terminal that a test can make")
@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", GERMAN), ("cp932", GERMAN.replace("ä", "\\xe4"))])
def test_on_a_terminal_a_letter_that_it_lacks_is_shown_by_its_number(encoding, shown):
    reading, terminal = os.openpty()
    process = started("translate", SENTENCE, encoding=encoding, stdout=terminal)
    assert process.communicate(timeout=120)[1] == b""
    os.close(terminal)
    assert os.read(reading, 1000).decode(encoding).splitlines() == [shown]
    os.close(reading)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipe")
def test_a_reader_that_has_seen_enough_is_no_error():
    process = started("translate", stdout=subprocess.PIPE)
    process.stdout.close()
    process.stdout = None
    said = process.communicate(f"{SENTENCE}\n".encode() * 7, timeout=120)[1]
    assert (process.returncode, said) == (141, b"")


def test_the_help_says_what_is_read_and_how_it_ends(capsys):
    with pytest.raises(SystemExit):
        command.main(["translate", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "UTF-8" in said and "The exit status is then 1" in said and "141" in said


# Models


def refusal(capsys, folder):
    """Return what the command says of a folder that has no translator."""
    with pytest.raises(SystemExit) as left:
        command.main(["translate", "--run", str(folder), SENTENCE])
    assert left.value.code == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err.removeprefix("transformer-lib translate: error: ").rstrip()


def test_a_folder_without_a_translator_says_why(tmp_path, capsys):
    path = tmp_path / "nowhere"
    wanted = f"checkpoint {path / 'best.safetensors'} does not exist: there is no such folder"
    assert refusal(capsys, path) == wanted
    path.mkdir()
    assert refusal(capsys, path).endswith("the folder holds no run of `transformer-lib train`")
    (path / "config.json").write_text(json.dumps({"model": "ours"}))
    assert refusal(capsys, path).endswith("the run there has not ended its first epoch yet")
    assert refusal(capsys, path / "config.json").endswith("that is a file, and a run is a folder")


def test_the_checkpoint_names_the_class_of_its_model_and_the_options_where_it_does_not(rambler, capsys, monkeypatch):
    file, options, model = (
        rambler / "best.safetensors",
        rambler / "config.json",
        tl.baselines.TorchTranslator(make_config()),
    )
    words = {"src_words": list(KNOWN), "tgt_words": MANY}

    def kind_read(stored, chosen):
        monkeypatch.setattr(checkpoint, "kind_of", lambda _model: stored)  # None: as version 1.0 wrote it
        tl.save_checkpoint(file, model, extra=words)
        options.write_text(json.dumps({"model": chosen}), encoding="utf-8")
        return type(translating.load_run(rambler).model)

    assert kind_read("TorchTranslator", "ours") is kind_read(None, "torch") is type(model)
    with pytest.raises(ValueError, match="must hold a model of `train`, Transformer or TorchTranslator, got a GRUTran"):
        kind_read("GRUTranslator", "torch")
    options.unlink()
    monkeypatch.undo()
    tl.save_checkpoint(file, model, extra=words)
    assert type(translating.load_run(rambler).model) is type(model)


def test_a_damaged_translator_is_named(rambler, capsys):
    file = rambler / "best.safetensors"
    whole = file.read_bytes()
    for damaged in (whole[:-7], b"", whole[:-8] + bytes(8), b"not weights"):
        file.write_bytes(damaged)
        assert refusal(capsys, rambler).startswith(f"checkpoint {file} must be ")
    file.write_bytes(whole)
    (rambler / "config.json").write_text("{")
    assert refusal(capsys, rambler).startswith(f"{rambler / 'config.json'} must be the options of a run as JSON")


def test_weights_that_are_no_numbers_are_refused(rambler, capsys):
    translator = tl.Translator.load(rambler / "best.safetensors")
    with torch.no_grad():
        next(translator.model.parameters())[7] = torch.nan
    translator.save(rambler / "best.safetensors")
    with pytest.raises(SystemExit) as left:
        command.main(["translate", "--run", str(rambler), "a"])
    assert left.value.code == 2 and re.search("NaN|finite|nan", capsys.readouterr().err)
