"""The table of stored files in data/README.md: complete, as the files are, and written by its command."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from studies import listing
from studies.pages import put_between
from transformer_lib.course.lab import stored as stored_lab

pytestmark = pytest.mark.fast

AGAIN = "python -m studies.listing writes the table again"


def rows(table: str) -> dict[str, list[str]]:
    """{file: its other cells}"""
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:-1]]
    return {name.strip("`"): rest for name, *rest in cells}


def test_the_page_lists_the_files_as_they_are():
    page = listing.PAGE.read_text(encoding="utf-8")
    assert put_between(page, "files", listing.table()) == page, AGAIN


def test_each_file_has_one_row_with_its_size():
    folder = listing.PAGE.parent
    named = rows(listing.table())
    assert len(named) > 50 and [folder / name for name in named] == listing.files()
    for name, (size, *_) in named.items():
        assert abs(float(size.replace(",", "")) * 1000 - (folder / name).stat().st_size) <= 50
    assert set(listing.UNSAID) <= set(named)


def test_seeds_are_those_of_the_command():
    for name, (_, made, seeds, _) in rows(listing.table()).items():
        if found := re.search(r"--seeds ([\d ]+)", made):
            all_seeds = found[1].replace(" ", ", ")
            assert seeds == (all_seeds.split(", ")[0] if name.endswith(".safetensors") else all_seeds), name


def test_the_run_on_real_sentences_has_the_seed_of_its_options():
    runs = stored_lab.read(listing.DATA / "multi30k.json")["runs"]
    assert {run["options"]["seed"] for run in runs} == set(listing.UNSAID["multi30k.json"].seeds)


def study(folder, name, **more):
    (folder / name).write_text(json.dumps(more), encoding="utf-8")


def test_a_row_follows_its_file(tmp_path):
    study(tmp_path, "new.json", command="python -m x --seeds 3 4", date="2026-01-02", runs=[0] * 400)
    (tmp_path / "README.md").write_text("not listed")
    (tmp_path / "new.json.7.part").write_text("being written")
    (tmp_path / ".hidden").write_text("not listed")
    assert rows(listing.table(tmp_path)) == {"new.json": ["1.3", "`python -m x --seeds 3 4`", "3, 4", "2026-01-02"]}
    study(tmp_path, "new.json", command="make x", date="2026-01-03", seeds=[5])
    assert rows(listing.table(tmp_path)) == {"new.json": ["0.1", "`make x`", "5", "2026-01-03"]}


def test_weights_have_one_seed_and_the_date_of_the_results_of_their_command(tmp_path):
    (tmp_path / "context").mkdir()
    weights = "context/draft.safetensors"
    shutil.copyfile(listing.DATA / weights, tmp_path / weights)
    command = listing.origin(listing.DATA / weights).command
    assert rows(listing.table(tmp_path))[weights][1:] == [f"`{command}`", "0", "–"]
    study(tmp_path, "results.json", command=command, date="2026-01-02")
    assert rows(listing.table(tmp_path))[weights][1:] == [f"`{command}`", "0", "2026-01-02"]


@pytest.mark.parametrize("name", ["strange.json", "strange.csv"])
def test_a_file_of_unknown_origin_is_refused(tmp_path, name):
    study(tmp_path, name, date="2026-01-02")
    with pytest.raises(ValueError, match=f"name its command or be described in listing.UNSAID, got {name}"):
        listing.table(tmp_path)


def test_the_command_writes_between_the_marks(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- files: begin -->\nold\n<!-- files: end -->\nafter\n", encoding="utf-8")
    listing.main(["--page", str(page)])
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert listing.table() in text
