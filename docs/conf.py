"""Settings of the reading site. `build_site.py` prepares the pages and runs Sphinx with them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # the site is built for the library beside it

from site_docstrings import as_restructuredtext  # noqa: E402

SIGNATURE = re.compile(r"<dl>\s*(?:<dd>(?:(?!<d[ld]>).)*?</dd>\s*)+</dl>", re.DOTALL)
BACK = re.compile(r'#(transformer_lib\.([\w.]+))"')
PARAMETER = re.compile(r"<(/?)d[ld]>")

project = "The Transformer, from one lookup to a translator"
html_title = "The Transformer"
author = "the authors of this course"
copyright = "the authors, MIT licence"  # noqa: A001
language = "en"
smartquotes_action = "D"  # dashes; quotation marks and dots stay as written
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx_copybutton"]
exclude_patterns = ["_static"]

# Notebooks: their tests have checked the stored outputs, so nothing runs here.
nb_execution_mode = "off"
nb_render_markdown_format = "myst"  # formulas and links in what a cell shows as Markdown
nb_code_prompt_show, nb_code_prompt_hide = "Show the {type}", "Hide the {type}"
FOLDS = {"the source": "the solution", "the output": "what comes out"}  # what pages fold
nb_ipywidgets_js: dict = {}  # panels have scripts of their own, in docs/web/panels
myst_enable_extensions = ["dollarmath", "amsmath"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # a cell may continue at level 3 where another left off

# API reference.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
add_module_names = False
python_use_unqualified_type_names = True
maximum_signature_line_length = 80
napoleon_google_docstring, napoleon_numpy_docstring = True, False
napoleon_use_rtype = False
viewcode_line_numbers = True

# Formulas: one file that needs no other (no fonts, no extensions fetched later), put into _static by build_site.py.
mathjax_path = "mathjax.js"
mathjax3_config = {
    "options": {"enableMenu": False},  # its menu would make every formula a stop for the Tab key
    "svg": {"fontCache": "global"},
    "startup": {"typeset": True},
}

html_theme = "sphinx_book_theme"
html_static_path = [str(HERE / "_static")]
html_css_files = ["icons.css", "site.css", "front.css", "panels.css"]
html_js_files = [("site.js", {"defer": "defer"}), ("asked.js", {"defer": "defer"})]
html_search_scorer = str(HERE / "search_scorer.js")  # notebooks and glossary first
html_favicon = str(HERE / "_static" / "favicon.svg")
html_copy_source = False  # the notebooks themselves lie beside their pages
html_show_sourcelink = False
html_show_search_summary = False  # found.js shows more, and only where a page may fetch others
html_domain_indices = False
html_context = {"default_mode": "auto"}  # light or dark, like the reader's system

# A repository's address adds its buttons: source, issue, edit.
repository = os.environ.get("SITE_REPOSITORY_URL", "").rstrip("/")
html_theme_options = {
    "repository_url": repository,
    "repository_branch": os.environ.get("SITE_REPOSITORY_BRANCH", "main"),
    "use_repository_button": bool(repository),
    "use_issues_button": bool(repository),
    "use_edit_page_button": bool(repository),
    "use_download_button": False,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "max_navbar_depth": 2,  # pages, not their sections, which are listed at the right
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def mend(app, page: str, template: str, context: dict, doctree) -> None:
    """Mend two things that screen readers stumble over: the names of folds, and signatures as lists without terms."""
    if "body" in context:
        body = context["body"].replace(' aria-label="Toggle hidden content"', "")  # it says "Show the solution"
        for said, better in FOLDS.items():
            body = re.sub(f">((?:Show|Hide) ){said}<", rf">\1{better}<", body)
        context["body"] = SIGNATURE.sub(lambda found: PARAMETER.sub(r"<\1div>", found[0]), body)


def back_from_source(app, page: str, template: str, context: dict, doctree) -> None:
    """Correct the links back from a source page: Sphinx writes all names of a file with the prefix of the first."""
    if page.startswith("_modules/transformer_lib/"):
        known, module = app.env.domains["py"].objects, page.removeprefix("_modules/").replace("/", ".")

        def name(found: re.Match) -> str:
            return found[0] if found[1] in known else f'#{module}.{found[2]}"'

        context["body"] = BACK.sub(name, context["body"])


def front_page(app, page: str, template: str, context: dict, doctree) -> None:
    """Correct where "Suggest edit" leads: the front page is docs/index.md; all others mirror the repository."""
    if page == "index":
        context["doc_path"] = "docs"


def search_page(app, page: str, template: str, context: dict, doctree) -> None:
    """Give the search what shows the sections that it has found."""
    if page == "search":
        app.add_js_file("found.js", defer="defer", priority=900)


def setup(app) -> None:
    """Read docstrings as they are written: single backticks are code."""
    app.connect("autodoc-process-docstring", as_restructuredtext, priority=400)  # before napoleon
    app.connect("html-page-context", mend)
    app.connect("html-page-context", back_from_source)
    app.connect("html-page-context", search_page)
    app.connect("html-page-context", front_page)  # before the theme makes its buttons, at 501
