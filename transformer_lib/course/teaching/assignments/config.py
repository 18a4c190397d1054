"""The files of a course folder beside its notebooks: nbgrader's settings, and a page for feedback without scripts."""

from __future__ import annotations

import hmac
import re
from pathlib import Path

from ...exercises.model import SMALLEST_SEED

SECRET_LINE = re.compile(r"^# Keep secret, the seeds of the hidden cases follow from it: (\d+)$", flags=re.MULTILINE)

CONFIG = '''"""nbgrader's settings for this course; its commands are run in this folder."""

import sys
from pathlib import Path

import nbgrader

c = get_config()

# Keep secret, the seeds of the hidden cases follow from it: {secret}
c.CourseDirectory.course_id = {course_id!r}
c.ClearSolutions.code_stub = {{"python": "raise NotImplementedError"}}

# A submission is executed in a folder and a process of its own; then its answers are compared here.
# The steps are named, not imported: one that is not installed stops the grading, not the reading of this file,
# after which nbgrader would go on with steps of its own.
nbgraders, ours = "nbgrader.preprocessors.", "transformer_lib.course.teaching.assignments.grading."
c.Autograde.exporter_class = ours + "SubmissionExporter"
c.Autograde.sanitize_preprocessors = [
    "transformer_lib.course.teaching.assignments.repair.RepairCells",  # a check that was deleted is put back
    nbgraders + "ClearOutput",
    nbgraders + "OverwriteKernelspec",
    nbgraders + "OverwriteCells",
    nbgraders + "CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    ours + "ExecuteApart",
    ours + "CompareAnswers",
    nbgraders + "IgnorePattern",
    "nbconvert.preprocessors.ClearMetadataPreprocessor",
    nbgraders + "LimitOutput",
    nbgraders + "SaveAutoGrades",
    nbgraders + "AssignLatePenalties",
    nbgraders + "CheckCellMetadata",
]
c.ExecuteApart.cell_seconds = {cell_seconds}  # then a cell is interrupted
c.ExecuteApart.notebook_seconds = {notebook_seconds}  # then the rest of a notebook is given up
# Code of people you do not know: execute it in a container, see docs/teaching/grading.md.

# Feedback is one file that loads nothing: formulas are MathML, the template in this folder has no script, and those
# of a submission are taken out.
c.GenerateFeedback.preprocessors = [
    ours + "WithoutOtherFiles",
    nbgraders + "GetGrades",
    ours + "WithDiagnoses",
    ours + "WithoutHiddenTests",
    ours + "OfflineFormulas",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.GenerateFeedback.exporter_class = ours + "OfflineExporter"  # formgrader keeps its own
pages = Path(nbgrader.__file__).parent / "server_extensions" / "formgrader" / "templates"
c.OfflineExporter.extra_template_basedirs = [str(Path(__file__).parent / "templates"), str(pages)]
c.OfflineExporter.template_name = "offline"  # and what is not there is nbgrader's
c.OfflineExporter.template_file = "page.html.j2"
c.OfflineExporter.exclude_anchor_links = True

# Your own settings: own_config.py beside this file. This one is written anew whenever the course is made.
try:
    load_subconfig("own_config.py", path=str(Path(__file__).parent))
except Exception as error:  # without your settings, perhaps without your container, nothing is executed
    c.ExecuteApart.command = []
    print(f"own_config.py could not be read, so nothing will be graded: {{error!r}}", file=sys.stderr)
'''

PAGE = """\
{%- extends 'index.html.j2' -%}

{% block body %}
<body>
<a name="top"></a>
<div class="container">
<h1>{{ resources.nbgrader.notebook }}</h1>
<p class="total">{{ resources.nbgrader.score | float | round(2) }} of
{{ resources.nbgrader.max_score | float | round(2) }} points</p>
{% if resources.diagnoses %}
<table class="diagnoses">
<thead><tr><th>Exercise</th><th>Points</th><th>What is not right yet</th></tr></thead>
<tbody>
{% for each in resources.diagnoses %}
<tr><td><a href="#{{ each.name }}">{{ each.title | e }}</a></td>
<td>{{ each.score | float | round(2) }} of {{ each.points | float | round(2) }}</td>
<td>{{ each.said | e }}</td></tr>
{% endfor %}
</tbody>
</table>
{% endif %}
{% if resources.nbgrader.late_penalty > 0 %}
<p>Handed in late: −{{ resources.nbgrader.late_penalty | float | round(2) }}</p>
{% endif %}
<h2 class="whole">The notebook, as it was graded</h2>
{{ super.super() }}
</div>
</body>
{%- endblock body %}
"""

# Replaces nbconvert's macro, which loads MathJax from a network.
NO_MATHJAX = """\
{%- macro mathjax(url="") -%}
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body > .container > .total { font-size: 1.4em; font-weight: bold; }
.diagnoses { border-collapse: collapse; }
.diagnoses th, .diagnoses td { padding: .4em 1.2em .4em 0; text-align: left; vertical-align: top; }
.diagnoses tr { border-bottom: 1px solid #ccc; }
.whole { margin-top: 3em; break-before: page; }
div.prompt { display: none; }
summary { display: list-item; cursor: pointer; }
div.input_area pre, div.output_area pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.rendered_html, div.output_subarea { max-width: 100%; overflow-x: auto; }
.rendered_html img, .output_area img, .output_area svg { max-width: 100%; height: auto; }
.rendered_html th, .rendered_html td { padding: .2em .8em .2em 0; text-align: left; vertical-align: top; }
.rendered_html table { display: block; margin-bottom: 1em; max-width: 100%; overflow-x: auto; }
:not(sub, sup) { position: static !important; } /* no class of a submission lays anything over the points */
math[display=block] { margin: .8em 0; max-width: 100%; overflow-x: auto; }
</style>
{%- endmacro %}
"""

FILES = {
    "templates/offline/conf.json": '{"base_template": "feedback", "mimetypes": {"text/html": true}}\n',
    "templates/offline/page.html.j2": PAGE,
    "templates/offline/mathjax.html.j2": NO_MATHJAX,
}


def assignment_seed(secret: int, name: str) -> int:
    """Return the seed of an assignment's hidden cases; whoever sees one can tell neither the secret nor the others.

    Args:
        secret: of the course; its length is what makes it hard to guess.
        name: of the assignment.
    """
    digest = hmac.digest(str(secret).encode(), name.encode(), "sha256")
    return SMALLEST_SEED + int.from_bytes(digest[:8], "big") % 10**9


def write_settings(out: Path, **settings: object) -> None:
    """Write everything of a course folder that is no notebook; `settings` fill the gaps of CONFIG."""
    for name, text in {"nbgrader_config.py": CONFIG.format(**settings), **FILES}.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")
