from __future__ import annotations

import gzip
import hashlib
import shutil

import pytest

import transformer_lib as tl
from transformer_lib.data import corpora
from transformer_lib.data.corpora import CONTEXT_SPLITS, Corpus

pytestmark = pytest.mark.fast

HEADER = "src\ttgt\tcontrast\tword\tsense\texpected\tcue\tframe\tgap"
ROWS = [
    "He saw the bank.\tEr sah das Ufer.\tEr sah die Bank.|Er sah den Bank.\tbank\tdas Ufer\tUfer\triver\tsvo\t-3",
    'He "saw" it.\tEr "sah" es.\t\t\t\t\t\tplain\t',
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a small context corpus in it, the same two pairs in every split."""
    monkeypatch.setattr(corpora, "DATA", tmp_path)
    (tmp_path / "context").mkdir()
    for split in CONTEXT_SPLITS:
        write(tmp_path, split, [HEADER, *ROWS])
    return tmp_path


def write(folder, split, lines, end="\n"):
    content = "".join(line + end for line in lines)
    (folder / "context" / f"{split}.tsv").write_bytes(content.encode())


def test_pairs_and_their_columns(folder):
    loaded = tl.load_corpus("context")
    assert loaded.name == "context" and tuple(loaded.splits) == CONTEXT_SPLITS
    bank, plain = loaded["train"]
    assert bank == tl.Pair(
        "He saw the bank.",
        "Er sah das Ufer.",
        contrast=("Er sah die Bank.", "Er sah den Bank."),
        word="bank",
        sense="das Ufer",
        expected="Ufer",
        cue="river",
        frame="svo",
        gap=-3,
    )
    assert plain == tl.Pair('He "saw" it.', 'Er "sah" es.', frame="plain")  # quotation marks are text


def test_context_is_the_default(folder):
    assert tl.load_corpus() == tl.load_corpus("context")


def test_windows_line_ends_and_more_columns_do_no_harm(folder):
    write(folder, "train", [f"{line}\tmore" for line in (HEADER, *ROWS)], end="\r\n")
    assert tl.load_corpus()["train"] == tl.load_corpus()["heldout"]


def test_what_is_held_out_is_read_where_it_is_given(folder):
    write(folder, "compositional", [f"{HEADER}\theld", f"{ROWS[0]}\tword×frame"])
    assert tl.load_corpus()["compositional"][0].held == "word×frame"


def test_an_unknown_corpus_is_refused():
    with pytest.raises(ValueError, match="name must be one of 'context', 'multi30k', got 'wmt14'"):
        tl.load_corpus("wmt14")


def test_an_unknown_split_is_refused():
    with pytest.raises(KeyError, match="split must be one of train, test, got 'dev'"):
        Corpus("toy", {"train": (), "test": ()})["dev"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER, ROWS[0], "He sees.\tEr sieht."], "train.tsv line 3 must have as many columns as the header"),
        ([HEADER, ROWS[0] + "\tone more"], "train.tsv line 2 must have as many columns as the header"),
        ([HEADER, ROWS[0].replace("-3", "far")], "train.tsv line 2 must have an integer gap, got 'far'"),
        ([HEADER.replace("contrast", "other"), ROWS[0]], r"train.tsv must have the columns .* named \['contrast'\]"),
        ([], r"train.tsv must have the columns \['contrast', 'cue', .* got none named \['contrast', 'cue', "),
    ],
)
def test_a_malformed_file_is_refused(folder, lines, message):
    write(folder, "train", lines)
    with pytest.raises(ValueError, match=message):
        tl.load_corpus()


def test_a_missing_file_is_named(folder):
    (folder / "context" / "hard.tsv").unlink()
    with pytest.raises(FileNotFoundError, match="hard.tsv is missing: it belongs to the library's data"):
        tl.load_corpus()


MULTI30K = {
    "train": (["A man.", "Two dogs."], ["Ein Mann.", "Zwei Hunde."]),
    "val": (["A girl."], ["Ein Mädchen."]),
    "test_2016_flickr": (["A boy."], ["Ein Junge."]),
}


@pytest.fixture
def captions(tmp_path, monkeypatch):
    """A folder like Multi30k's, and its checksums in the place of the real ones."""
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for stem, sides in MULTI30K.items():
        for language, lines in zip(("en", "de"), sides, strict=True):
            put(folder, monkeypatch, f"{stem}.{language}.gz", lines)
    monkeypatch.setenv("MULTI30K_DIR", str(folder))
    return folder


def put(folder, monkeypatch, name, lines):
    content = gzip.compress("".join(line + "\n" for line in lines).encode(), mtime=0)
    (folder / name).write_bytes(content)
    monkeypatch.setitem(corpora.MULTI30K_FILES, name, hashlib.sha256(content).hexdigest())


def test_captions_from_a_folder(captions):
    loaded = tl.load_corpus("multi30k")
    assert loaded.name == "multi30k" and list(loaded.splits) == ["train", "val", "test"]
    assert loaded["train"] == (tl.Pair("A man.", "Ein Mann."), tl.Pair("Two dogs.", "Zwei Hunde."))
    assert loaded["test"] == (tl.Pair("A boy.", "Ein Junge."),)


def test_without_a_folder_there_are_no_captions(monkeypatch):
    monkeypatch.delenv("MULTI30K_DIR", raising=False)
    with pytest.raises(FileNotFoundError, match="multi30k is not included: set MULTI30K_DIR to the folder"):
        tl.load_corpus("multi30k")


def test_a_wrong_checksum_is_refused(captions):
    (captions / "val.de.gz").write_bytes(gzip.compress(b"Ein Hund.\n"))
    with pytest.raises(ValueError, match=r"val.de.gz must have SHA-256 [0-9a-f]{64}, got [0-9a-f]{64}: delete it"):
        tl.load_corpus("multi30k")


def test_sides_of_different_length_are_refused(captions, monkeypatch):
    put(captions, monkeypatch, "val.de.gz", ["Ein Mädchen.", "Ein Junge."])
    with pytest.raises(ValueError, match="val: both languages must have as many lines, got 1 and 2"):
        tl.load_corpus("multi30k")


def test_nothing_is_fetched_unasked(captions, monkeypatch):
    (captions / "val.en.gz").unlink()
    monkeypatch.setattr(corpora.urllib.request, "urlretrieve", lambda *_: pytest.fail("a download"))
    with pytest.raises(FileNotFoundError, match=r"val.en.gz is missing .*load_corpus\('multi30k', download=True\)"):
        tl.load_corpus("multi30k")


def test_missing_files_are_fetched_when_asked_for(captions, tmp_path, monkeypatch):
    (captions / "val.en.gz").rename(tmp_path / "val.en.gz")
    asked = []

    def fetch(address, target):
        asked.append(address)
        shutil.copy(tmp_path / address.rsplit("/", 1)[1], target)

    monkeypatch.setattr(corpora.urllib.request, "urlretrieve", fetch)
    loaded = tl.load_corpus("multi30k", download=True)
    assert loaded["val"] == (tl.Pair("A girl.", "Ein Mädchen."),)
    assert asked == [corpora.MULTI30K_SOURCE + "val.en.gz"]
    assert sorted(file.name for file in captions.iterdir()) == sorted(corpora.MULTI30K_FILES)


def test_an_interrupted_download_leaves_no_file(captions, monkeypatch):
    (captions / "val.en.gz").unlink()

    def fetch(_address, target):
        target.write_bytes(b"half a fi")
        raise ConnectionError("the line went dead")

    monkeypatch.setattr(corpora.urllib.request, "urlretrieve", fetch)
    with pytest.raises(ConnectionError, match="the line went dead"):
        tl.load_corpus("multi30k", download=True)
    assert not (captions / "val.en.gz").exists()


# The corpus that comes with the course.


@pytest.fixture(scope="module")
def context():
    return tl.load_corpus("context")


def test_every_pair_can_be_judged(context):
    for split in CONTEXT_SPLITS:
        pairs = context[split]
        assert all(tl.metrics.sense_matches([pair.tgt for pair in pairs], pairs))
        for place in (0, -1):  # nouns have one or two other senses
            assert not any(tl.metrics.sense_matches([pair.contrast[place] for pair in pairs], pairs))


def test_the_word_tokenizer_gives_every_sentence_back(context):
    for side in ("src", "tgt"):
        texts = [getattr(pair, side) for split in CONTEXT_SPLITS for pair in context[split]]
        tokenizer = tl.WordTokenizer.from_texts(getattr(pair, side) for pair in context["train"])
        for text in texts:  # no split has a word that training lacks
            assert tokenizer.decode(tokenizer.encode(text, bos=True, eos=True)) == text
