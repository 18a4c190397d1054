"""The glossary and the references: complete, right in form, and in step with what notebooks, pages and code say."""

from __future__ import annotations

import copy
import doctest
import importlib
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

import transformer_lib as tl
from transformer_lib.course.notebooks import NOTEBOOKS, file_of, notebook
from transformer_lib.course.reading import entries, entry, literature, shown, words
from transformer_lib.course.reading.finding import nearest

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
PAPERS = literature.load()
WORDS = tomllib.loads(words.GLOSSARY.read_text(encoding="utf-8"))["word"]
ROWS = tomllib.loads(literature.REFERENCES.read_text(encoding="utf-8"))

# Citations that stand for more than one paper.
SEVERAL = {"Nadaraya and Watson 1964": ("nadaraya1964", "watson1964")}  # two papers of one year, found independently

NAME = r"(?:Mc)?[A-Z][a-zà-ž]+(?:[-'][A-Z]?[a-zà-ž]+)?"
CITATION = re.compile(rf"\b({NAME}(?:(?:, {NAME})* and {NAME}|,? et al\.)?),? \(?((?:18|19|20)\d\d)\b(?![-–]\d)")
NO_NAMES = {
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    *("December", "The", "Since", "In", "Early", "Late", "Until"),
}


@cache
def prose(notebook_id: str) -> str:
    """What a notebook says: its Markdown, on one line."""
    cells = json.loads(file_of(notebook(notebook_id)).read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return " ".join(" ".join(sources).replace("*", "").split())


def code() -> dict[str, str]:
    """The modules of the package, docstrings and comments included."""
    files = (ROOT / "transformer_lib").rglob("*.py")
    return {path.relative_to(ROOT).as_posix(): " ".join(path.read_text(encoding="utf-8").split()) for path in files}


def pages() -> dict[str, str]:
    files = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "data" / "README.md"]
    return {path.relative_to(ROOT).as_posix(): " ".join(path.read_text(encoding="utf-8").split()) for path in files}


@cache
def said() -> dict[str, str]:
    """Every text of the course that may cite, by where it stands."""
    definitions = {"data/glossary.toml": " ".join(row.means for row in entries())}
    return {each.filename: prose(each.id) for each in NOTEBOOKS} | pages() | code() | definitions


def cited(text: str) -> set[str]:
    """The citations of a text, each as a label: "Xu et al. 2019", "Nadaraya and Watson 1964"."""
    labels = set()
    for names, year in CITATION.findall(text):
        first, *others = re.split(r", | and ", names.replace(", et al.", " et al."))
        if first not in NO_NAMES:
            labels.add(f"{first} et al. {year}" if len(others) > 1 else f"{' and '.join([first, *others])} {year}")
    return labels


def says(text: str, name: str) -> bool:
    """True when a text has a name as a word, or as the beginning of one: "mask" in "masked"; -ise is also -ize."""
    pattern = r"[\s-]*".join(map(re.escape, re.split(r"[\s-]+", name)))
    pattern = re.sub(r"i[sz](?=e|ation)", "i[sz]", pattern)
    return re.search(rf"(?<!\w){pattern}", text, re.IGNORECASE) is not None


# Words ---------------------------------------------------------------------------------------------------


def test_the_words_that_the_course_promises_are_there():
    promised = """position, prefix, inverted mask, epoch, hyperparameter, regularisation, validation set, overfitting,
        gradient clipping, weight tying, perplexity, autoregressive, KV cache, prefill, nucleus (top-p) sampling,
        residual stream, activation patching, logit lens, ablation, probe, d_model, n_heads, d_k, d_v, d_ff, batch, src,
        tgt, tgt_in, tgt_out, memory, query, key, value, score, weights, logits, <pad>, <bos>, <eos>, mask,
        seed, early stopping, patience, bootstrap, metamorphic test, unigram, bigram, margin, twin, spectral radius,
        distributional hypothesis, residual distribution, error of the search"""
    missing = []
    for word in promised.split(","):
        try:
            entry(word.strip())
        except ValueError:
            missing.append(word.strip())
    assert missing == []


def test_each_word_is_said_in_the_notebook_that_explains_it():
    unsaid = {row.word for row in entries() if not any(says(prose(row.notebook), name) for name in row.names)}
    assert unsaid == set(), "the notebook of such a word should use it"


def test_definitions_are_short_and_leave_no_markup_in_text():
    for row in entries():
        sentences = re.split(r"(?<=[.?])\s+(?=[A-Z*`$<])", row.means.replace("et al. ", ""))
        assert len(sentences) <= 3 and 8 <= len(row.means.split()) <= 80, row.word
        assert not re.search(r"[\\{}$*]|\bmathrm\b", repr(tl.course.glossary(row.word))), row.word


@pytest.mark.parametrize(
    ("asked", "word"),
    [
        ("layer normalization", "layer norm"),
        ("LayerNorm", "layer norm"),
        ("Layer-norms", "layer norm"),
        ("optimizer", "optimiser"),
        ("regularization", "regularisation"),
        ("key/value cache", "KV cache"),
        ("top p", "nucleus sampling"),
        ("<EOS>", "special token"),
        ("weights", "attention weights"),
        ("Byte pair encoding", "byte-pair encoding"),
    ],
)
def test_a_word_is_found_by_its_other_names(asked, word):
    assert entry(asked).word == word


def test_an_entry_shows_itself_in_jupyter_and_as_text():
    shown = tl.course.glossary("residual stream")
    bundle = shown._repr_mimebundle_()
    assert "[09: Residuals, norms, feed-forward](09_residuals_norms_feed_forward.ipynb)" in bundle["text/markdown"]
    assert "*See also:* residual connection, pre-norm" in bundle["text/markdown"]
    assert f"[Elhage et al. 2021]({PAPERS['elhage2021'].url})" in bundle["text/markdown"]
    assert repr(shown) == bundle["text/plain"] and repr(shown).startswith("residual stream (notebook 09): The vectors")
    assert "h_t = f(h_(t−1), x_t)" in repr(tl.course.glossary("RNN"))
    assert "`<bos>`, `<eos>`" in tl.course.glossary("special token").markdown


def test_without_a_word_all_words_are_listed():
    listed = re.findall(r"[^·\n]+", re.sub(r"^\*\*\w\*\* ", "", tl.course.glossary().markdown, flags=re.MULTILINE))
    assert [word.strip() for word in listed] == [row.word for row in entries()]


def test_a_word_that_is_not_there_names_the_nearest():
    message = "word must be in the glossary, got 'residul strem'; did you mean 'residual stream'"
    with pytest.raises(ValueError, match=re.escape(message)):
        tl.course.glossary("residul strem")
    with pytest.raises(ValueError, match="got 'xyzzy'$"):
        tl.course.glossary("xyzzy")
    with pytest.raises(TypeError, match="word must be a string, got 3 of type int"):
        tl.course.glossary(3)
    assert nearest("norm", ["softmax", "pre-norm", "post-norm"]) == ["pre-norm", "post-norm"]
    assert nearest("", ["softmax"]) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"word": "zebra"}, "not in alphabetical order"),
        (
            {"means": "No stop"},
            "'ablation' has a definition that is empty, without a full stop, or with half a formula",
        ),
        ({"means": "A $x."}, "half a formula"),
        ({"notebook": "99"}, "'ablation' names the unknown notebook '99'"),
        ({"see": ["ablation"]}, "says see 'ablation', which is no other word"),
        ({"also": ["Ablations"]}, "'ablation' has the same name twice"),
        ({"also": ["Adam"]}, "'Adam' is a name of 'ablation' and of 'Adam'"),
        ({"sources": ["nobody1900"]}, "'ablation' names the unknown reference 'nobody1900'"),
    ],
)
def test_a_glossary_that_breaks_a_rule_is_refused(change, message):
    rows = [{**WORDS[0], **change}, *WORDS[1:]]
    with pytest.raises(ValueError, match=f"^glossary: .*{re.escape(message)}"):
        words.made(rows)


# References ----------------------------------------------------------------------------------------------


def test_citations_are_recognised():
    text = "Xu et al. (2019), (Jain and Wallace, 2019), Elliott, Frank, Sima'an and Specia, 2016; Popović (2015)"
    assert cited(text) == {"Xu et al. 2019", "Jain and Wallace 2019", "Elliott et al. 2016", "Popović 2015"}
    assert cited("In November 2026, the paper of 2017, Aswan, 1871–1970, width 2048, The 2017 paper") == set()


def test_each_citation_is_one_reference():
    labels = {paper.label for paper in PAPERS.values()} | set(SEVERAL)
    assert [(place, label) for place, text in said().items() for label in cited(text) - labels] == []


def test_each_reference_is_cited():
    everywhere = set().union(*map(cited, said().values()))
    by_label = {key for key, paper in PAPERS.items() if paper.label in everywhere}
    together = {key for label, keys in SEVERAL.items() if label in everywhere for key in keys}
    by_word = {key for row in entries() for key in row.sources}
    numbers = "1978), 243–251"  # data/README.md cites this journal by volume and pages
    by_volume = {"cobb1978"} if numbers in said()["data/README.md"] else set()
    assert set(PAPERS) - by_label - together - by_word - by_volume == set()


@pytest.mark.parametrize("asked", ["xu2019", "Xu et al. 2019", "Xu et al. (2019)", "xu et al., 2019"])
def test_a_reference_is_found_as_it_is_cited(asked):
    shown = tl.course.cite(asked)
    assert shown.markdown == (
        "Xu, J., Sun, X., Zhang, Z., Zhao, G. and Lin, J. (2019). [Understanding and Improving Layer Normalization]"
        "(https://arxiv.org/abs/1911.07013). *Advances in Neural Information Processing Systems 32*."
    )
    assert repr(shown).endswith("Normalization. Advances in Neural Information Processing Systems 32. arXiv:1911.07013")


def test_forms_of_entries():
    assert literature.reference("wu2016").markdown.startswith(
        "Wu, Y., Schuster, M., Chen, Z., Le, Q. V., Norouzi, M. and others ("
    )
    assert literature.reference("nadaraya1964").number == "doi:10.1137/1109020"
    assert literature.reference("nostalgebraist2020").label == "nostalgebraist 2020"
    assert "Better than One? Advances" in literature.reference("michel2019").text
    assert literature.reference("muller2019").label == "Müller et al. 2019"


def test_a_list_for_further_reading():
    listed = tl.course.references({"xu2019": "What the gain is for.", "xiong2020": ""})
    first, second = listed.markdown.splitlines()
    assert first.startswith("- Xu, J.") and first.endswith("32*. What the gain is for.")
    assert second == f"- {PAPERS['xiong2020'].markdown}"
    assert repr(listed).splitlines()[0].endswith("arXiv:1911.07013 – What the gain is for.")
    assert tl.course.references(["xu2019"]).markdown == f"- {PAPERS['xu2019'].markdown}"
    with pytest.raises(ValueError, match="keys must be several keys, .* got the string 'xu2019'"):
        tl.course.references("xu2019")


def test_a_reference_that_is_not_there_names_the_nearest():
    with pytest.raises(ValueError, match=r"key must be in data/references.toml, got 'xu2018'; did you mean 'xu2019'"):
        tl.course.cite("xu2018")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"authors": ["Bau, J."]}, "ainslie2023 should have the key bau2023"),
        ({"authors": ["Joshua Ainslie"]}, "has the author 'Joshua Ainslie', which is not of the form 'Vaswani, A.'"),
        ({"year": 2022}, "ainslie2023 is of 2022, but its arXiv number is of 2023"),
        ({"title": "GQA."}, "has the title 'GQA.', which is empty or has a space or a full stop at its end"),
        ({"venue": ""}, "has the venue ''"),
        ({"url": "http://arxiv.org/abs/2305.13245"}, "has the address 'http://arxiv.org/abs/2305.13245'"),
    ],
)
def test_references_that_break_a_rule_are_refused(change, message):
    rows = copy.deepcopy(ROWS)
    rows["ainslie2023"] |= change
    with pytest.raises(ValueError, match=f"^references: .*{re.escape(message)}"):
        literature.made(rows)


def test_two_references_with_one_label_or_out_of_order_are_refused():
    twin = {**ROWS["xu2019"], "url": "https://arxiv.org/abs/1902.00001"}
    with pytest.raises(ValueError, match="Xu et al. 2019 could be 2 papers"):
        literature.made({**ROWS, "xu2019b": twin})
    with pytest.raises(ValueError, match="the keys are not in alphabetical order"):
        literature.made(dict(reversed(ROWS.items())))


# How they are reached ------------------------------------------------------------------------------------


def test_nothing_of_it_loads_before_it_is_asked_for():
    code = (
        "import sys, transformer_lib as tl; loaded = lambda: 'transformer_lib.course.reading' in sys.modules; "
        "tl.course; assert not loaded(); tl.course.cite('xu2019'); assert loaded(); print(dir(tl.course))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert all(f"'{name}'" in done.stdout for name in ("glossary", "cite", "references", "NOTEBOOKS"))


def test_the_course_has_no_other_names():
    with pytest.raises(AttributeError, match="module 'transformer_lib.course' has no attribute 'glosary'"):
        _ = tl.course.glosary


def test_examples_run():
    for module in ("", ".finding"):
        found = doctest.testmod(importlib.import_module(f"transformer_lib.course.reading{module}"))
        assert found.attempted >= 1 and found.failed == 0


# As plain text ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        (r"divide by $\sqrt{d_k}$", "divide by √d_k"),
        (r"$\sqrt{a + b}$ and $\sqrt 4$", "√(a + b) and √4"),
        (r"$QK^\top/\sqrt{d_k} + M$ is $n \times n$", "QKᵀ/√d_k + M is n × n"),
        (r"$10000^{-2j/d}$, $2^n - 1$, $d^2$, $10^{-10}$", "10000^(−2j/d), 2ⁿ − 1, d², 10⁻¹⁰"),
        (r"$3{,}072$ of $2nd\,d_{ff}$", "3,072 of 2nd d_ff"),
        (r"$\frac{1}{n}$, $\mathrm{softmax}(-\infty) \le 0$", "1/n, softmax(−∞) ≤ 0"),
        ("`<end>` is **no** input - at all", "<end> is no input - at all"),
    ],
)
def test_formulas_as_characters(markdown, text):
    assert shown.plain(markdown) == text


def test_no_formula_of_the_glossary_is_left_in_latex():
    assert [row.word for row in entries() if re.search(r"[\\${}]", shown.plain(row.means))] == []
