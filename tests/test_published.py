"""What a visitor meets first: the README, its loop, the card of the site, and the workflow that publishes it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import record_front
import yaml  # JupyterLab comes with it
from PIL import Image, ImageSequence

import transformer_lib as tl
from transformer_lib.course.mine import PARTS

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[1]
WORKFLOWS = ROOT / ".github" / "workflows"
DEFINED = re.compile(r"^\[([\w-]+)\]: (\S+)$", re.MULTILINE)
USED = re.compile(r"\]\[([\w-]+)\]")
HOST = re.compile(r"https?://([\w.-]+)")


def readme() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def first_screen() -> str:
    return readme().partition("\n## ")[0]


# The README --------------------------------------------------------------------------------------------------


def test_each_reference_of_the_readme_is_defined_once_and_used():
    names = [name for name, _ in DEFINED.findall(readme())]
    assert sorted(names) == sorted(set(USED.findall(readme())))


def test_a_reference_leads_to_a_file_a_workflow_or_the_published_site():
    for name, target in DEFINED.findall(readme()):
        if target.startswith("../../actions/workflows/"):
            workflow = target.removeprefix("../../actions/workflows/").removesuffix("/badge.svg")
            assert (WORKFLOWS / workflow).is_file(), name
        elif name == "site" and target.startswith("https://"):
            assert "OWNER" not in target
        else:
            file, _, place = target.partition("#")
            headings = re.findall(r"^#+ (.*)$", (ROOT / file).read_text("utf-8"), re.MULTILINE)
            assert place in {heading.lower().replace(" ", "-").replace(",", "") for heading in headings}, name


def test_the_address_stands_in_one_place():
    address = dict(DEFINED.findall(readme()))["site"]
    assert readme().count(f": {address}\n") == 1
    assert readme().count(address) == 1 or "://" not in address  # a page of docs/ may be linked elsewhere, too
    assert first_screen().count("][site]") >= 3  # try it, the loop, read it


def test_the_first_screen_needs_no_other_machine():
    assert HOST.findall(first_screen()) == []


def test_the_numbers_of_the_first_screen_are_true():
    text, translator = " ".join(first_screen().split()), tl.load_trained()
    of_model = sum(part.of_model for part in PARTS)
    assert f"{of_model} functions of yours" in text
    special = 4  # padding, unknown, begin, end
    assert f"of {len(translator.src_tokenizer) - special} words" in text
    claims = re.search(r"lists (\d+) claims", (ROOT / "docs" / "index.md").read_text("utf-8"))[1]
    assert f"{claims} claims" in text


def test_what_the_loop_shows_is_what_the_translator_says():
    described = re.search(r"!\[(.*?)\]\(docs/bank\.gif\)", first_screen(), re.DOTALL)[1]
    translator, (river, money) = (
        tl.load_trained(),
        (f"The man saw the bank near the {cue}." for cue in ("river", "money")),
    )
    assert "das Ufer" in translator.translate([river])[0]
    assert "die Bank" in translator.translate([money])[0]
    with tl.cut(translator.model, query=4, key=7):
        assert "das Ufer" in translator.translate([money])[0]
    assert re.findall("das Ufer|die Bank", described) == ["das Ufer", "die Bank", "die Bank", "das Ufer"]


# Pictures ----------------------------------------------------------------------------------------------------


def test_the_loop_takes_eight_seconds_and_goes_on_for_ever():
    assert record_front.LOOP.stat().st_size < 1_500_000
    with Image.open(record_front.LOOP) as loop:
        assert (loop.format, loop.info["loop"]) == ("GIF", 0)  # a format that GitHub lists among those it shows
        assert loop.width == record_front.WIDTH * record_front.SCALE
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(loop)]
    assert 7_500 <= sum(times) <= 8_500
    assert min(times) >= 50 and len(times) > 30


def test_the_card_is_as_others_show_it():
    with Image.open(record_front.CARD) as card:
        assert card.size == (1200, 630)
    assert record_front.CARD.stat().st_size <= 120_000


def test_a_recording_needs_a_site(tmp_path, capsys):
    with pytest.raises(SystemExit):
        record_front.main(["--site", str(tmp_path)])
    assert "--site must be a built site, got" in capsys.readouterr().err


# The workflow ------------------------------------------------------------------------------------------------


def steps(job: dict) -> str:
    return "\n".join(step.get("run", step.get("uses", "")) for step in job["steps"])


def test_the_site_is_built_then_tested_then_published_from_main():
    text = (WORKFLOWS / "site.yml").read_text("utf-8")
    workflow = yaml.safe_load(text)
    build, deploy = workflow["jobs"]["build"], workflow["jobs"]["deploy"]
    order = ["docs/build_site.py --out build/site", "pytest", "actions/upload-pages-artifact"]
    places = [steps(build).index(name) for name in order]
    assert places == sorted(places)
    [tested] = [step for step in build["steps"] if "pytest" in step.get("run", "")]
    assert tested["env"]["COURSE_SITE"] == "build/site"
    assert [name for name in re.findall(r"tests/[\w/]+\.py", tested["run"]) if not (ROOT / name).is_file()] == []
    assert (deploy["needs"], "actions/deploy-pages" in steps(deploy)) == ("build", True)
    assert "github.ref == 'refs/heads/main'" in deploy["if"]
    assert workflow[True]["push"] == {"branches": ["main"]}  # YAML reads "on" as true
    assert {"pages": "write", "id-token": "write"}.items() <= workflow["permissions"].items()


def test_the_workflow_names_no_machine_and_takes_its_addresses_from_the_repository():
    text = (WORKFLOWS / "site.yml").read_text("utf-8")
    assert HOST.findall(text) == []
    assert "vars.SITE_URL || steps.pages.outputs.base_url" in text
    assert "vars.SITE_REPOSITORY_URL || format('{0}/{1}', github.server_url, github.repository)" in text
