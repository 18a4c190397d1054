"""Markdown that shows itself in a notebook, and as plain text elsewhere."""

from __future__ import annotations

import re

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
