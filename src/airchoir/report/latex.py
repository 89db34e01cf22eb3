# ruff: noqa: RUF001  (signs that look like others are what this file is about)
"""Plain text -> LaTeX."""

import re

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    '"': "''",
}
_SIGNS = {
    "±": "$\\pm$",
    "×": "$\\times$",
    "÷": "$\\div$",
    "·": "$\\cdot$",
    "−": "$-$",
    "≤": "$\\leq$",
    "≥": "$\\geq$",
    "≈": "$\\approx$",
    "≠": "$\\neq$",
    "∞": "$\\infty$",
    "→": "$\\rightarrow$",
    "←": "$\\leftarrow$",
    "√": "$\\surd$",
    "²": "$^2$",
    "³": "$^3$",
    "°": "$^\\circ$",
    "–": "--",
    "—": "---",
    "…": "\\ldots{}",
    "\u00a0": "~",
    "\u2009": "\\,",
    "α": "$\\alpha$",
    "β": "$\\beta$",
    "γ": "$\\gamma$",
    "δ": "$\\delta$",
    "ε": "$\\varepsilon$",
    "η": "$\\eta$",
    "λ": "$\\lambda$",
    "μ": "$\\mu$",
    "µ": "$\\mu$",
    "π": "$\\pi$",
    "ρ": "$\\rho$",
    "σ": "$\\sigma$",
    "τ": "$\\tau$",
    "φ": "$\\varphi$",
    "χ": "$\\chi$",
    "ω": "$\\omega$",
    "Δ": "$\\Delta$",
    "Σ": "$\\Sigma$",
    "Φ": "$\\Phi$",
    "Ω": "$\\Omega$",
}
_ALL = _SPECIAL | _SIGNS
_ANY = re.compile("|".join(map(re.escape, _ALL)))


def escape(text: str) -> str:
    r"""The text as LaTeX that prints it, on one line.

    >>> escape("81 ± 2 % of f_1")
    '81 $\\pm$ 2 \\% of f\\_1'
    """
    return _ANY.sub(lambda found: _ALL[found[0]], " ".join(text.split()))
