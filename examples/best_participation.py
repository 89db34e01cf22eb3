"""Which participation is best at epsilon 1, over the air by each accountant, and with always-on noise?

    python examples/best_participation.py [BANK...] --out results/best_participation/digits

Without banks it trains one on the handwritten digits. Writes best_participation.json, .png and .svg.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from record import STYLES, draw, row, write

from airchoir import ScoreBank
from airchoir.experiments.best_participation import Point, best, best_participation
from airchoir.tasks.digits import Digits
from airchoir.training import train

CLOSE = 0.01
"""Of accuracy: what a deployment may give up for fewer transmitters."""
TITLES = {"digits": "Digits", "cifar10": "CIFAR-10", "fashion_mnist": "Fashion-MNIST", "imdb": "IMDb"}


def main() -> None:
    """Evaluate, write, draw, and print the best of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="*", type=Path, metavar="BANK")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR")
    options = parser.parse_args()
    banks = [ScoreBank.load(path) for path in options.banks] or [train(Digits())]
    points = best_participation(banks)
    rows = [{"contender": point.contender, **row(point.scheme, banks, point.estimate)} for point in points]
    found = summary(points)
    write(options.out / "best_participation.json", {"best": found, "rows": rows})
    draw(figure(points, banks), options.out / "best_participation")
    for entry in found:
        print(
            f"{entry['contender']}: best at p = {entry['participation']:g}, {100 * entry['accuracy']:.2f} %; "
            f"within {100 * CLOSE:g} point from p = {entry['close_from']:g}"
        )


def summary(points: Sequence[Point]) -> list[dict[str, Any]]:
    """The best of each contender, and the smallest participation that costs no more than `CLOSE`."""
    return [
        {
            "contender": name,
            "participation": top.participation,
            "accuracy": top.estimate.accuracy,
            "close_from": min(
                point.participation
                for point in points
                if point.contender == name and point.estimate.accuracy >= top.estimate.accuracy - CLOSE
            ),
        }
        for name, top in best(points).items()
    ]


def figure(points: Sequence[Point], banks: Sequence[ScoreBank]) -> Any:
    """Accuracy against p: a line per contender, a marker at its best."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(6.4, 4.4))
    axes = made.subplots()
    for index, (name, top) in enumerate(best(points).items()):
        own = [point for point in points if point.contender == name]
        style = {name: value for name, value in STYLES[index].items() if name != "marker"}
        summit = top.participation, 100 * top.estimate.accuracy
        axes.plot(
            [point.participation for point in own],
            [100 * point.estimate.accuracy for point in own],
            **style,
            linewidth=1.8,
            label=f"{name}: best {summit[1]:.1f} % at p = {summit[0]:g}",
        )
        axes.plot(
            *summit,
            marker=STYLES[index]["marker"],
            markersize=3.5 * (len(STYLES) - index) + 1.5,  # where several are best at one point, all are seen
            markeredgecolor=style["color"],
            markerfacecolor="none",
            markeredgewidth=1.3,
            zorder=4,
        )
    privacy, task = points[0].scheme.privacy, banks[0].metadata.get("task", "")
    axes.set_title(
        f"{TITLES.get(task, task)}: majority vote of {banks[0].clients} clients, "
        f"$\\varepsilon$ = {privacy.epsilon:g}, $\\delta$ = $10^{{{math.log10(privacy.delta):.0f}}}$ per query",
        fontsize=11,
    )
    axes.set_xlabel("participation p: how likely each client is to answer a query")
    axes.set_ylabel("accuracy (%); hollow marks: the best")
    axes.set_xlim(0.0, 1.05)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.legend(loc="lower right", fontsize=9, handlelength=4.5, frameon=False)
    return made


if __name__ == "__main__":
    main()
