"""A class on a real JupyterHub, by docs/teaching/hub: two students in the browser, a teacher, nbgrader's exchange."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hub_driver
import nbformat
import pytest
from hub_driver import Hub
from lab_driver import Lab, cell, errors, rewrite_and_run, run_cell

READY, CHECK = "import transformer_lib as tl", "from pathlib import Path"
STUDENTS = ("ada", "ben")
NAME, RIGHT = "00_start_here", "return x.mean(dim=0)"  # the assignment, and the answer to its exercise 00.1
ASK = """async verb => {  // what the buttons of nbgrader's assignment list do, in the student's own server
    const token = document.cookie.match(/_xsrf=([^;]*)/)[1], home = location.pathname.split('/lab')[0];
    const body = new URLSearchParams({course_id: 'transformer', assignment_id: '00_start_here'});
    const reply = await fetch(`${home}/assignments/${verb}`, {method: 'POST', body, headers: {'X-XSRFToken': token}});
    return reply.json();
}"""


@pytest.fixture(scope="module")
def hub(browser, tmp_path_factory) -> Iterator[Hub]:
    for module in ("jupyterhub", "jupyterhub_idle_culler", "nbgitpuller", "nbgrader"):
        pytest.importorskip(module, reason=f'{module} is not installed: pip install -e ".[hub]"')
    if not hub_driver.proxy_found():
        pytest.skip("no configurable-http-proxy: npm install --global configurable-http-proxy@5")
    course = hub_driver.make_course(tmp_path_factory.mktemp("git") / "transformer-course")
    hub = hub_driver.start_hub(tmp_path_factory.mktemp("class"), course, list(STUDENTS), ["teacher"])
    try:
        if not hub.answers():
            pytest.fail(f"JupyterHub did not start:\n{hub.log[-3000:]}")
        yield hub
    finally:
        hub.stop()


@pytest.fixture(scope="module")
def people(browser, hub, shots) -> Iterator[dict[str, tuple[Lab, object]]]:
    """{student: (lab, page)}, each logged in with notebook 00 open, by nothing but the login form."""
    found = {}
    for name in STUDENTS:
        session = browser.new_context(viewport={"width": 1280, "height": 900})
        lab = Lab(session, hub.address, hub.home(name), shots)
        found[name] = lab, hub_driver.log_in(lab, hub, name)
    yield found
    for lab, page in found.values():
        page.close()
        lab.context.close()


@pytest.fixture(autouse=True)
def nothing_leaves_the_machine(people) -> Iterator[None]:
    """In place of the single JupyterLab's: no student's browser asks anybody but the hub."""
    yield
    assert [request for lab, _ in people.values() for request in lab.strangers] == [], "requests left this machine"


@pytest.mark.parametrize("name", STUDENTS)
def test_a_student_gets_the_course_and_runs_a_cell(people, hub, name):
    lab, page = people[name]
    lab.menu(page, "Edit", "editmenu:clear-all")
    run_cell(lab, page, cell(page, READY))
    said = run_cell(lab, page, cell(page, CHECK))
    assert "torch: within the supported range" in said and "OUTSIDE" not in said
    assert errors(page) == []
    lab.shoot(page, f"hub_{name}")
    assert (hub.home(name) / "course" / ".git").is_dir()


def test_one_does_not_see_the_file_of_another(people, hub):
    lab, page = people["ada"]
    written = f"{CHECK}\nPath.home().joinpath('mine.txt').write_text('ada only')"
    rewrite_and_run(lab, page, cell(page, CHECK), written)
    assert (hub.home("ada") / "mine.txt").read_text() == "ada only"
    assert not (hub.home("ben") / "mine.txt").exists()
    for name, status in (("ada", 200), ("ben", 403)):
        session = people[name][0].context
        assert session.request.get(f"{hub.address}/user/ada/api/contents/mine.txt").status == status


def test_an_assignment_goes_out_and_comes_back_and_is_graded(people, hub):
    grading, fetched = hub.home("teacher") / "grading", hub.home("ada") / NAME / f"{NAME}.ipynb"
    making = ("-m", "transformer_lib.course.teaching.assignments", "--out", str(grading), "00", "--only", "00.1")
    hub_driver.run_python(hub, "teacher", *making)
    hub_driver.nbgrader(hub, "teacher", "generate_assignment", NAME)
    hub_driver.nbgrader(hub, "teacher", "release_assignment", NAME)
    assert oct((hub.folder / "exchange" / "transformer" / "inbound").stat().st_mode)[-4:] == "2733"
    assert statuses(people["ada"][1].evaluate(ASK, "fetch")) == {"fetched"}
    answer(fetched)
    assert "submitted" in statuses(people["ada"][1].evaluate(ASK, "submit"))
    hub_driver.nbgrader(hub, "teacher", "collect", NAME)
    [handed_in] = (grading / "submitted").glob(f"*/{NAME}/{NAME}.ipynb")
    assert handed_in.parts[-3] == fetched.owner()  # all servers of this trial run as one account
    hub_driver.nbgrader(hub, "teacher", "autograde", NAME, "--ExecuteApart.allow_root=True")
    graded = nbformat.read(grading / "autograded" / handed_in.relative_to(grading / "submitted"), as_version=4)
    [check] = [found for found in graded.cells if found.metadata.get("nbgrader", {}).get("grade")]
    assert "✓ 00.1 hidden cases: right." in str(check.outputs)  # said by the course's settings, not by nbgrader's own


def answer(path: Path) -> None:
    """Return what a student does with exercise 00.1."""
    notebook = nbformat.read(path, as_version=4)
    [stub] = [found for found in notebook.cells if found.source.startswith("def mean_of_rows")]
    stub.source = stub.source.replace("raise NotImplementedError", RIGHT)
    nbformat.write(notebook, path)


def statuses(reply: dict) -> set[str]:
    assert reply["success"], reply
    return {found["status"] for found in reply["value"]}
