"""Rows of the ledger as Markdown with links, and as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .model import VERDICTS, Claim, Erratum, load
from .search import errata, get, shown_in
from .where import Place

_SIGNS = {
    "times": "×",
    "cdot": "·",
    "top": "ᵀ",
    "le": "≤",
    "ge": "≥",
    "ne": "≠",
    "neq": "≠",
    "infty": "∞",
    "pi": "π",
    "omega": "ω",
    "delta": "δ",
    "mu": "μ",
    "sigma": "σ",
    "varepsilon": "ε",
    "epsilon": "ε",
    "Delta": "Δ",
    "gamma": "γ",
    "beta": "β",
    "alpha": "α",
    "approx": "≈",
    "ldots": "…",
    "dots": "…",
    "sum": "Σ",
    "to": "→",
    "mid": "|",
    "rho": "ρ",
    "pm": "±",
    "ln": "ln",
    "log": "log",
    "sin": "sin",
    "cos": "cos",
    "exp": "exp",
    "max": "max",
    "min": "min",
    "quad": " ",
    "in": "∈",
    "ll": "≪",
    "gg": "≫",
    "leq": "≤",
    "geq": "≥",
    "odot": "⊙",
    "rightarrow": "→",
    "circ": "°",
    "theta": "θ",
    "lambda": "λ",
    "lVert": "‖",
    "rVert": "‖",
    "neg": "¬",
    "lvert": "|",
    "rvert": "|",
}

_CLAIM_HEAD: tuple[str, ...] = ("id", "text", "claim", "verdict", "what is right, or to add", "shown in")
_ERRATUM_HEAD: tuple[str, ...] = ("", "what", "printed", "why it is wrong", "what is right", "rows", "shown in")


class Shown:
    """Shows itself as Markdown in a notebook and as text elsewhere."""

    def __init__(self, markdown: str, text: str) -> None:
        """Keep both forms."""
        self.markdown, self.text = markdown, text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/markdown": self.markdown, "text/plain": self.text}

    def __repr__(self) -> str:
        """Return the text form."""
        return self.text


def show(row_id: str) -> Shown:
    """Show one claim ("C168") or correction ("R01"), with links to the cells that settle it.

    Raises:
        ValueError: if there is no such row.
    """
    for correction in load().errata:
        if correction.id == row_id:
            return Shown(_correction(correction), plain(f"{correction.id} {correction.title}. {correction.right}"))
    row = get(row_id)
    lines = [f"**{row.id}** · text {row.text} · {load().topics[row.topic]} · **{signed(row.verdict)}**", row.claim]
    lines += [commented(row)] if row.right else []
    where = [f"[{place.notebook}: {place.heading}]({place.link})" for place in shown_in(row)]
    lines += ["*Shown in:* " + " · ".join(dict.fromkeys(where))]
    lines += [f"*Correction {entry.id}:* {entry.title}" for entry in errata(row.id)]
    return Shown("\n\n".join(lines), plain(f"{row.id}, {row.verdict}: {row.claim}"))


def table(rows: Iterable[Claim] | Iterable[Erratum]) -> Shown:
    """Show claims or corrections as one table, a row each, with links; `find` and `errata` give the rows."""
    listed: tuple[Claim | Erratum, ...] = tuple(rows)
    head = _ERRATUM_HEAD if listed and isinstance(listed[0], Erratum) else _CLAIM_HEAD
    lines = [head, tuple(":---" for _ in head), *map(_cells, listed)]
    ends = f", {listed[0].id} to {listed[-1].id}" if listed else ""
    noun = "row" if len(listed) == 1 else "rows"
    return Shown("\n".join(f"| {' | '.join(line)} |" for line in lines), f"{len(listed)} {noun}{ends}")


def _cells(row: Claim | Erratum) -> tuple[str, ...]:
    """Return what stands below the words of the head."""
    if isinstance(row, Erratum):
        return row.id, row.title, row.says, row.why, row.right, ", ".join(row.claims) or "–", _links(_of(row))
    return row.id, _unbroken(row.text), row.claim, signed(row.verdict), row.right or "–", _links(shown_in(row))


def titles() -> Shown:
    """Return the five texts by number, as the ledger calls them."""
    texts = load().texts
    return Shown("\n".join(f"- **Text {i}**: {text}" for i, text in enumerate(texts, 1)), f"{len(texts)} texts")


def commented(row: Claim) -> str:
    """Return what is right, or what a true claim leaves out, with a label in front; "" when there is nothing."""
    label = "To add" if row.verdict == "true" else "What is right"
    return f"{label}: {row.right}" if row.right else ""


def signed(verdict: str) -> str:
    """Return a verdict with its sign: ✗ false."""
    return f"{VERDICTS[verdict]} {verdict}"


def plain(text: str) -> str:
    r"""Return Markdown as one line of characters, its formulas written out: $\sqrt{d_k}$ becomes √d_k."""
    text = re.sub(r"\$([^$]*)\$", lambda formula: _spoken(formula[1]), text)
    return text.replace("`", "").replace("**", "")


def _spoken(formula: str) -> str:
    formula = re.sub(r"\\sqrt\{([^{}]*)\}", lambda m: f"√{m[1]}" if len(m[1]) < 4 else f"√({m[1]})", formula)
    formula = re.sub(r"\\(?:mathrm|text|mathbf|operatorname|hat|tilde|bar)\{([^{}]*)\}", r"\1", formula)
    formula = re.sub(r"\\sqrt ?(\w)", r"√\1", formula)
    formula = re.sub(r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", formula)
    formula = re.sub(r"\\[,;:! ]", " ", formula.replace("{,}", ","))
    formula = re.sub(r"\\([A-Za-z]+)", lambda m: _SIGNS.get(m[1], m[1]), formula)
    formula = re.sub(r"\^(?:\{([^{}]*)\}|(.))", lambda m: _raised(m[1] or m[2]), formula.replace("-", "−"))
    return re.sub(r"[{}\\]", "", formula)


def _raised(exponent: str) -> str:
    """Return an exponent in small raised signs where they exist, else in brackets."""
    if set(exponent) <= set("0123456789−nᵀ°"):
        return exponent.translate(str.maketrans("0123456789−n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ"))
    return f"^({exponent})"


def _of(row: Erratum) -> tuple[Place, ...]:
    """Return the places of all claims of a correction, each once."""
    return tuple(dict.fromkeys(place for claim in row.claims for place in shown_in(get(claim))))


def _links(where: Iterable[Place]) -> str:
    """Return one link for each section, to its first cell."""
    first: dict[str, Place] = {}
    for place in where:
        first.setdefault(place.label, place)
    return ", ".join(f"[{_unbroken(label)}]({place.link})" for label, place in first.items()) or "–"


def _unbroken(place: str) -> str:
    """Join a section or an equation to what precedes it, so that no line breaks between them."""
    return re.sub(r" (§|eq )", lambda found: "\u00a0" + found[1].replace(" ", "\u00a0"), place)


def _correction(row: Erratum) -> str:
    lines = [
        f"**{row.id} · {row.title}**",
        f"*Printed:* {row.says}",
        f"*Why it is wrong:* {row.why}",
        f"*What is right:* {row.right}",
    ]
    lines.append(f"*Rows:* {', '.join(row.claims) or '–'} · *Shown in:* {_links(_of(row))}")
    return "\n\n".join(lines)
