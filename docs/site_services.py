"""Services that run a notebook of a GitHub repository: the buttons of a page, and the addresses on docs/editors.md.

All follow from SITE_REPOSITORY_URL and SITE_REPOSITORY_BRANCH. Without them, or with a repository elsewhere, no page
has a button, and docs/editors.md keeps `<owner>/<repository>` for the reader to fill in.
"""

from __future__ import annotations

import html
import os
import re

GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?/?")
PLACEHOLDER = re.compile(r"(?<=/)<owner>/<repository>")  # inside of an address
COLAB_CELL = "#the-cell-for-colab"  # on docs/editors.md
SERVICES = {
    "Colab": "https://colab.research.google.com/github/{repository}/blob/{branch}/{path}",
    "Binder": "https://mybinder.org/v2/gh/{repository}/{branch}?urlpath=lab/tree/{path}",
    "Codespaces": "https://codespaces.new/{repository}/tree/{branch}",
}


def repository() -> str:
    """Return owner/name of the repository on GitHub, or "" where none is known."""
    found = GITHUB.fullmatch(os.environ.get("SITE_REPOSITORY_URL", ""))
    return found[1] if found else ""


def addresses(path: str) -> dict[str, str]:
    """Return where each service opens a file of the repository; empty where no repository is known."""
    branch = os.environ.get("SITE_REPOSITORY_BRANCH") or "main"
    known = {"repository": repository(), "branch": branch, "path": path}
    return {name: address.format(**known) for name, address in SERVICES.items()} if known["repository"] else {}


def buttons(path: str, editors: str) -> str:
    """Return links that run a notebook elsewhere, and one to what Colab needs first, as HTML.

    Args:
        path: of the notebook in the repository. editors: the page on services, seen from the notebook's page.
    """
    made = [f'<a href="{html.escape(to)}" class="run">{name}</a>' for name, to in addresses(path).items()]
    if not made:
        return ""
    needs = f'<a href="{editors}{COLAB_CELL}" class="aside">what Colab needs first</a>'
    return f' <span class="run-elsewhere">Run it: {" ".join(made)} {needs}</span>'


def filled_in(text: str) -> str:
    """Return a page whose addresses name the repository; unchanged where none is known."""
    return PLACEHOLDER.sub(repository(), text) if repository() else text
