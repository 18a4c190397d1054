"""What a course adds to nbgrader's steps: isolated execution, comparison of answers, feedback that loads nothing."""

from __future__ import annotations

import base64
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat
from nbconvert.exporters import HTMLExporter, NotebookExporter
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from traitlets import Bool, Integer, List, Unicode

from ...exercises import get
from ..diagnoses import diagnosis_in
from . import run
from .clean import without_scripts
from .formulas import mathml
from .hidden import problem_in
from .missing import is_missing, why_missing
from .run import MIME, not_run

if os.name != "nt":  # which has other users, but no such list of them
    import pwd

HIDDEN = re.compile(r'^grade\("(?P<id>[^"]+)", (?P<name>\w+), seed=(?P<seed>\d+)\)$', flags=re.MULTILINE)
REGION = re.compile(r"^### BEGIN HIDDEN TESTS$.*?^### END HIDDEN TESTS$", flags=re.MULTILINE | re.DOTALL)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
FILE = "submission.ipynb"
LARGEST = 200_000_000  # bytes that a submission may make of its file
NOT_STARTED = (125, 126, 127)  # exit codes of docker, timeout and shells that could not start the program
AS_ROOT = (
    "Nothing was graded: a submission would run as root, and could change everything on this machine. Grade as another "
    "user. Or name one as whom submissions run: put the line c.ExecuteApart.user = 'nobody' into own_config.py, after "
    "c = get_config(). Where root is harmless, as in a machine that is thrown away afterwards, "
    "put the line c.ExecuteApart.allow_root = True into own_config.py."
)
Resources = dict


class NotStarted(RuntimeError):
    """Nothing was executed, and the submission is not to blame; nbgrader reports it and gives no marks."""


class Step(Preprocessor):
    """A step that is taken without being switched on; nbconvert's own are off by default."""

    enabled = Bool(True).tag(config=True)


class SubmissionExporter(NotebookExporter):
    """Reads and writes submissions; as root it does nothing, unless it is told to."""

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        apart = ExecuteApart(parent=self)
        if is_root() and not (apart.allow_root or apart.user):
            self.log.critical(AS_ROOT)
            raise SystemExit(2)


def is_root() -> bool:
    """Return whether this process may do everything."""
    return os.name != "nt" and os.geteuid() == 0


class ExecuteApart(Step):
    """Executes a submission in a folder of its own by another program, and keeps nothing but its outputs."""

    command = List(
        Unicode(),
        [
            sys.executable,
            run.__file__,
            f"{{folder}}/{FILE}",  # as a file, it starts without PyTorch
            "--cell-seconds",
            "{cell_seconds}",
            "--notebook-seconds",
            "{notebook_seconds}",
        ],
        help="The program and its arguments; {folder} holds submission.ipynb, which it executes and writes back.",
    ).tag(config=True)
    cell_seconds = Integer(120, help="Seconds after which a cell is interrupted.").tag(config=True)
    notebook_seconds = Integer(1200, help="Seconds after which the rest of a notebook is given up.").tag(config=True)
    allow_root = Bool(False, help="Whether to grade as root, whom nothing on the machine resists.").tag(config=True)
    user = Unicode("", help="The user as whom a submission runs, where root grades; else whoever grades.").tag(
        config=True
    )

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Execute, or say in every code cell why that was not possible.

        Raises:
            NotStarted: if the command itself does not work, whatever the submission.
        """
        with tempfile.TemporaryDirectory(prefix="submission-", ignore_cleanup_errors=True) as folder:
            try:
                take_outputs(nb, self._executed(nb, Path(folder)))
            except NotStarted:
                raise
            except Exception as error:  # one submission must not stop the grading of the others
                self.log.error("Not executed: %s", error)
                why = f"the notebook could not be executed ({type(error).__name__})"
                for cell in nb.cells:
                    if cell.cell_type == "code":
                        cell.outputs = [not_run(why)]
        return nb, resources

    def _executed(self, nb: NotebookNode, folder: Path) -> NotebookNode:
        file = folder / FILE
        nbformat.write(nb, file)
        for path in (file, folder) if self.user else ():
            shutil.chown(path, self.user)
        names = {"folder": folder, "cell_seconds": self.cell_seconds, "notebook_seconds": self.notebook_seconds}
        patience = self.notebook_seconds + 60  # the program keeps the time itself; this is for one that fails to
        code, said = _run([part.format(**names) for part in self.command], folder, patience, self.user)
        if code:
            raise (NotStarted if code in NOT_STARTED else RuntimeError)(f"command ended with {code}: {said}")
        return read_back(file)


def _run(command: list[str], folder: Path, seconds: float, user: str = "") -> tuple[int, str]:
    """Run a program in a session of its own, as another user if one is named, who is at home in its folder.

    Returns:
        Its exit code, and the end of what it wrote to stderr.
    """
    if not command:
        raise NotStarted("ExecuteApart.command must name a program, got an empty list (see the messages above)")
    with tempfile.TemporaryFile() as stderr:  # a pipe would stay open as long as what a submission leaves running
        settings = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": stderr}
        settings |= _other_user(user, folder) if user else {}
        try:
            process = subprocess.Popen(command, cwd=folder, start_new_session=True, **settings)
        except OSError as error:
            raise NotStarted(f"ExecuteApart.command: {error}") from error
        try:
            code = process.wait(seconds)
        except BaseException:  # the time is over, or the teacher has stopped the grading
            _end(process)
            raise
        stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - 500))
        return code, stderr.read().decode("utf-8", errors="replace")


def _other_user(user: str, folder: Path) -> dict[str, object]:
    """Return what subprocess.Popen has to be told for a program to run as another user."""
    home = {name: str(folder) for name in ("HOME", "MPLCONFIGDIR")}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": [], "env": os.environ | home}


def _end(process: subprocess.Popen) -> None:
    """Ask a program to end, so that it can end what it has started; after ten seconds, no longer ask."""
    if os.name == "nt":  # which has no sessions
        return process.kill()
    os.killpg(process.pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGCONT)  # a submission can stop the program that runs it
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def read_back(file: Path) -> NotebookNode:
    """Return the notebook in a file that a submission could have replaced by anything.

    Raises:
        OSError: if it is a link, or not there.
        ValueError: if it is no file (reading a pipe would never end) or too large, or holds no notebook.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(file, flags), encoding="utf-8") as opened:
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise ValueError(f"file must be a regular file of at most {LARGEST} bytes")
        return nbformat.read(opened, as_version=4)


def take_outputs(nb: NotebookNode, executed: NotebookNode) -> None:
    """Copy the outputs of each cell, and nothing else.

    Raises:
        ValueError: if the executed notebook has other cells.
    """
    if [cell.source for cell in executed.cells] != [cell.source for cell in nb.cells]:
        raise ValueError("executed must have the same cells")
    nbformat.validate(executed)
    for cell, done in zip(nb.cells, executed.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = done.get("outputs", []), done.get("execution_count")


class CompareAnswers(Step):
    """Gives the points of a test only for answers that are right, whatever the kernel says about them."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Replace the outputs of each test by the verdict."""
        for place, cell in enumerate(nb.cells):
            hidden = HIDDEN.search(cell.source) if cell.metadata.get("nbgrader", {}).get("grade") else None
            if hidden and is_missing(cell.outputs, hidden["name"]):
                cell.outputs = [failed(why_missing(nb.cells, place, hidden["id"], hidden["name"]))]
            elif hidden:
                cell.outputs = verdict(cell.outputs, hidden["id"], int(hidden["seed"]))
        return nb, resources


def verdict(outputs: list[NotebookNode], exercise_id: str, seed: int) -> list[NotebookNode]:
    """Return what a test cell shows after the answers were compared: an error, or nothing that costs points."""
    answers = [output.data[MIME] for output in outputs if MIME in output.get("data", {})]
    shown = [short(output) for output in outputs if MIME not in output.get("data", {})]
    printed = "".join(output.text for output in shown if output.output_type == "stream")
    errors = [output for output in shown if output.output_type == "error"]
    for error in errors:
        error.traceback = ["No points: see above."] if error.evalue and error.evalue in printed else error.traceback
    if errors:
        return shown
    problem = "The test was not run to its end: the hidden cases were not answered."
    if len(answers) == 1:
        try:
            problem = problem_in(exercise_id, answers[0], seed=seed)
        except Exception as error:  # a submission may have put anything in its place
            problem = f"The answers could not be read ({type(error).__name__})."
    if problem:
        return [*shown, failed(problem)]
    # nbgrader takes points for any text on stderr, and reads a number as partial credit.
    printed += "" if printed.endswith("\n") or not printed else "\n"
    return [nbformat.v4.new_output("stream", name="stdout", text=f"{printed}✓ {exercise_id} hidden cases: right.\n")]


def failed(text: str) -> NotebookNode:
    """Return the error that costs the points of a test, and says why."""
    return nbformat.v4.new_output("error", ename="CheckFailed", evalue=text.splitlines()[0], traceback=[text])


def short(output: NotebookNode) -> NotebookNode:
    """Return a result that nbgrader does not take for points, or an error without what helps no student.

    That is the way through the library, and the seed of the hidden cases.
    """
    if output.output_type == "execute_result":
        return nbformat.v4.new_output("display_data", data=output.data)
    if output.output_type != "error":
        return output
    lines = [output.evalue] if output.ename == "CheckFailed" else list(output.traceback)
    lines = [re.sub(r"seed\W+\d+", "seed=…", ANSI.sub("", line)) for line in lines]
    return nbformat.v4.new_output("error", ename=output.ename, evalue=output.evalue, traceback=lines)


class WithoutHiddenTests(Step):
    """Removes the hidden tests from what a student gets back, and tells the exporter their seeds, which it masks."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Replace the region of each test, and remember its seed."""
        tests = [cell for cell in nb.cells if cell.metadata.get("nbgrader", {}).get("grade")]
        resources["seeds"] = {found["seed"] for cell in tests for found in HIDDEN.finditer(cell.source)}
        return super().preprocess(nb, resources)

    def preprocess_cell(self, cell: NotebookNode, resources: Resources, index: int) -> tuple[NotebookNode, Resources]:
        """Replace the region of one cell."""
        cell.source = REGION.sub("# … and cases that are not shown", cell.source)
        return cell, resources


def masked(html: str, numbers: Iterable[str]) -> str:
    """Return part of a page with an ellipsis for each digit of these numbers, whatever stands between the digits."""
    for number in numbers:
        spread = r"(?:<[^>]*>|&#?\w+;|[^\w<]|_){0,8}".join(number)
        html = re.sub(rf"(?<!\d){spread}(?!\d)", _without_digits, html)
    return html


def _without_digits(found: re.Match) -> str:
    return re.sub(r"(<[^>]*>|&#?\w+;)|\d", lambda part: part[1] or "…", found[0])


class WithDiagnoses(Step):
    """Tells the exporter what the first page says: of each test its exercise, its points, and what is not right."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Collect it; the seeds that a diagnosis might show are masked with the rest of the page."""
        resources["diagnoses"] = [
            {"name": marks["grade_id"], "score": marks.get("score", 0), "points": marks["points"]}
            | _told(cell, marks["grade_id"])
            for cell in nb.cells
            if (marks := cell.metadata.get("nbgrader", {})).get("grade")
        ]
        return nb, resources


def _told(cell: NotebookNode, grade_id: str) -> dict[str, str]:
    """Return the title of a graded cell, and what is not right, in one text; "" where all is."""
    hidden = HIDDEN.search(cell.source)
    title = f"{hidden['id']} {get(hidden['id']).title}" if hidden else grade_id
    said = diagnosis_in(cell.outputs) if cell.cell_type == "code" else ""
    return {"title": title, "said": said[:1].upper() + said[1:]}


class WithoutOtherFiles(Step):
    """Removes the student's other files from a feedback folder, into which nbgrader has copied them."""

    def preprocess(self, nb: NotebookNode, resources: Resources) -> tuple[NotebookNode, Resources]:
        """Keep the pages, and nbgrader's note of when the notebook was handed in."""
        course, names = CourseDirectory(parent=self), resources["nbgrader"]
        folder = Path(course.format_path(course.feedback_directory, names["student"], names["assignment"]))
        for path in sorted(folder.rglob("*"), reverse=True):  # what is in a folder comes before it
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            elif path.parent != folder or not (path.suffix == ".html" or path.name == "timestamp.txt"):
                path.unlink()
        return nb, resources


class OfflineFormulas(Step):
    """Turns the formulas of Markdown cells into MathML, which browsers show without a script."""

    def preprocess_cell(self, cell: NotebookNode, resources: Resources, index: int) -> tuple[NotebookNode, Resources]:
        """Replace the formulas of one cell."""
        if cell.cell_type == "markdown":
            cell.source = mathml(cell.source)
        return cell, resources


class OfflineExporter(HTMLExporter):
    """Writes feedback pages by settings of its own name: those of HTMLExporter are formgrader's, too."""

    def from_notebook_node(
        self, nb: NotebookNode, resources: Resources | None = None, **kw: object
    ) -> tuple[str, Resources]:
        """Return the page; nothing in its body acts, loads or shows a seed, whatever the submission holds."""
        for output in (output for cell in nb.cells for output in cell.get("outputs", [])):
            keep_still(output)
        page, resources = super().from_notebook_node(nb, resources, **kw)
        head, body, rest = page.partition("<body>")  # the head holds nothing of a submission
        if not body:
            raise ValueError("the template of a page must have a <body>, got none")
        content, end, _ = rest.rpartition("</body>")
        content = masked(without_scripts(content), resources.get("seeds", ()))
        return head + body + content + end + "\n</html>\n", resources


def keep_still(output: NotebookNode) -> None:
    """Make an SVG drawing a picture, in which no script runs, and remove what is a script."""
    data = output.get("data", {})
    data.pop("application/javascript", None)
    drawing = data.pop("image/svg+xml", None)
    if drawing and "text/html" not in data:
        encoded = base64.b64encode(drawing.encode()).decode("ascii")
        data["text/html"] = f'<img alt="" src="data:image/svg+xml;base64,{encoded}">'
    if "data" in output and not data:
        data["text/plain"] = ""  # nbconvert warns of an output without any form
