"""Pages printed to PDF by a real Chromium: an examination, a certificate, and a deck, a slide a page."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from transformer_lib import __version__
from transformer_lib.course import certificate, notebooks, printing
from transformer_lib.course.teaching import exam


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine():
    """These pages need no JupyterLab; they are files, and the browser is told to fetch nothing."""


@pytest.fixture(autouse=True)
def chromium():
    if printing.chromium() is None:
        pytest.skip("no Chromium found: install one, or name it in CHROMIUM")


def pages_of(pdf: Path) -> tuple[int, set[tuple[float, ...]]]:
    """How many pages a PDF has, and their sizes in points."""
    data = pdf.read_bytes()
    boxes = re.findall(rb"/MediaBox\s*\[([^\]]*)\]", data)
    assert data.startswith(b"%PDF-")
    sizes = {tuple(round(float(number)) for number in box.split()[2:]) for box in boxes}
    return len(re.findall(rb"/Type\s*/Page\b", data)), sizes


def test_papers_and_their_key_are_printed_on_a4(tmp_path):
    exam.main(["--notebooks", "03", "04", "--count", "6", "--seed", "7", "--out", str(tmp_path), "--pdf"])
    for name in ("exam_A.pdf", "key.pdf"):
        count, sizes = pages_of(tmp_path / name)
        assert 1 <= count <= 3 and sizes == {(596, 842)}


def test_a_certificate_has_its_functions_on_a_page_of_their_own(tmp_path):
    stated = {"format": 1, "course": __version__, "name": "Ada", "made": "2026-11-28", "quiz": {}, "case": {}}
    stated |= {"prediction": {}, "exercise": {"04.1": "2026-11-28"}, "functions": ["softmax"], "source": "pass\n"}
    page = tmp_path / "page.html"
    page.write_text(certificate.page(stated), encoding="utf-8")
    assert pages_of(printing.print_pdf(page, tmp_path / "page.pdf"))[0] == 2


def test_a_deck_has_a_page_for_each_slide_in_the_form_of_a_screen(tmp_path):
    pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    from transformer_lib.course.teaching.slides import build as slides

    for package in {package for package, _ in slides.VENDORED.values()}:
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"{package} is not installed")
    slides.main(["00", "--out", str(tmp_path), "--pdf"])
    count, [(width, height)] = pages_of(tmp_path / "00_start_here.pdf")
    assert count == len(slides.deck_of(notebooks.notebook("00")))
    assert abs(width / height - 16 / 9) < 0.01


def test_a_page_that_never_gets_ready_is_given_up(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<p>slow</p>", encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"page\.html was not ready to be printed after 3 seconds"):
        printing.print_pdf(page, tmp_path / "page.pdf", ready="false", seconds=3)
    assert not (tmp_path / "page.pdf").exists()
