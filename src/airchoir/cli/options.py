"""The options that several commands share. Their values are checked by what they build, so messages are the library's."""

from pathlib import Path
from typing import Annotated

import typer


def real(text: str) -> float:
    """A number; inf is one."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no number; write it like 0.5, 1e-6 or inf") from None


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no whole number; write it like 20") from None


Banks = Annotated[
    list[Path], typer.Argument(metavar="BANK...", help="Score banks (files) of one task.", show_default=False)
]
Rule = Annotated[
    str, typer.Option(help="How clients answer and the server decides: vote, belief, ... (airchoir list).")
]
Access = Annotated[str, typer.Option(help="Who transmits when: over-the-air, orthogonal, best-client, ...")]
Channel = Annotated[str, typer.Option(help="The air: awgn, rayleigh, ...")]
Epsilon = Annotated[
    float, typer.Option(parser=real, metavar="E", help="Privacy of every client's model; inf for none.")
]
Delta = Annotated[float, typer.Option(parser=real, metavar="D", help="Probability with which the promise may fail.")]
Sigma = Annotated[
    float, typer.Option(parser=real, metavar="S", help="Standard deviation of the aggregate privacy noise.")
]
SnrDb = Annotated[
    float,
    typer.Option(parser=real, metavar="DB", help="Power budget over the receiver's noise, in decibels; inf for none."),
]
Participation = Annotated[
    float, typer.Option(parser=real, metavar="P", help="Probability that a client takes part in a query.")
]
Threshold = Annotated[
    float | None,
    typer.Option(parser=real, metavar="T", help="Rayleigh: smallest |h|^2 of a participant. Without it, -log P."),
]
Accountant = Annotated[str, typer.Option(help="The theorem that sets the noise: paper, tight, counted.")]
Queries = Annotated[
    int, typer.Option(parser=whole, metavar="T", help="How many queries epsilon and delta must cover together.")
]
Lost = Annotated[
    int, typer.Option(parser=whole, metavar="D", help="How many participants may be lost or collude with the server.")
]
Clients = Annotated[int, typer.Option(parser=whole, metavar="N", help="Number of clients.")]
Classes = Annotated[int, typer.Option(parser=whole, metavar="K", help="Number of classes.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
