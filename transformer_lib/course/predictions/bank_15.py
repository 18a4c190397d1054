"""What notebook 15 asks to predict: large weights that do nothing, a silent head, what it says, and to whom."""

from __future__ import annotations

from .model import Choice, Number

NOTEBOOK_15 = (
    Number("15.p1", "What share of the 723 large entries is idle?", 0, 1, close=0.1, decimals=2),
    Number("15.p2", "How many of the 144 pronouns are still right without head 3?", 0, 144, close=8),
    Choice(
        "15.p3",
        "Where *er* is right, which German words does head 3 put first?",
        (
            "*er*, *sie*, *es*, *Sie*: pronouns.",
            "*Hund*, *Wolf*, *Esel*, *Katze*: animals.",
            "*er*, *den*, *Er*, *der*: masculine words.",
            "*müde*, *zu*, *breit*, *weil*: words beside it.",
        ),
        right="C",
    ),
    Number("15.p4", "For what share of the articles does head 3 say the right gender?", 0, 1, close=0.05, decimals=2),
    Number("15.p5", "What share of the pronouns do your strangers flip?", 0, 1, close=0.1, decimals=2),
    Number("15.p6", "In how many of the other four does one head do it alone, in nine sentences of ten?", 0, 4),
)
