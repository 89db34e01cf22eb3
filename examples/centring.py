"""What does sending x - 1/k instead of x gain at low SNR, with and without privacy, and at p = 0.5 by the tight bound?

    python examples/centring.py BANK... --out results

One bank per number of classes. The argmax is the same, so all gain is power: less of it on a constant that tells nothing, and
less noise at p < 1 under accountant "tight". Votes, by the exact engine. Writes centring.json, .png and .svg.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from best_participation import TITLES
from record import STYLES, draw, row, write

from airchoir import Awgn, Estimate, MajorityVote, Privacy, Scheme, ScoreBank, evaluate
from airchoir.rules.centred import CentredVote

SNR_DB = tuple(range(-30, 11, 2))
SETTINGS: dict[str, tuple[Privacy, float]] = {
    "no privacy, p = 1": (Privacy(), 1.0),
    "$\\varepsilon$ = 1, p = 1": (Privacy(1.0), 1.0),
    "$\\varepsilon$ = 1, p = 0.5, tight": (Privacy(1.0, accountant="tight"), 0.5),
}


@dataclass(frozen=True, eq=False)
class Pair:
    """The vote and the centred vote under the same conditions."""

    snr_db: int
    schemes: tuple[Scheme, Scheme]
    estimates: tuple[Estimate, Estimate]

    @property
    def gain(self) -> float:
        """Of accuracy."""
        return self.estimates[1].accuracy - self.estimates[0].accuracy

    @property
    def channel_gain_db(self) -> float:
        """How much weaker the receiver's noise is in the decision variable."""
        plain, centred = (estimate.channel_noise_variance for estimate in self.estimates)
        return 10.0 * math.log10(plain / centred)


def main() -> None:
    """Evaluate, write, draw, and print the gains."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("banks", nargs="+", type=Path, metavar="BANK")
    parser.add_argument("--out", type=Path, default=Path("out"), metavar="DIR")
    options = parser.parse_args()
    banks = [ScoreBank.load(path) for path in options.banks]
    curves = {(bank, setting): curve(bank, *SETTINGS[setting]) for bank in banks for setting in SETTINGS}
    found = [gains(bank, setting, pairs) for (bank, setting), pairs in curves.items()]
    rows = [
        row(scheme, [bank], estimate)
        for (bank, _), pairs in curves.items()
        for pair in pairs
        for scheme, estimate in zip(pair.schemes, pair.estimates, strict=True)
    ]
    write(options.out / "centring.json", {"gains": found, "rows": rows})
    draw(figure(curves), options.out / "centring")
    for entry in found:
        print(", ".join(f"{name} {value}" for name, value in entry.items()))


def curve(bank: ScoreBank, privacy: Privacy, participation: float) -> list[Pair]:
    """Both rules at every SNR."""
    pairs = []
    for snr_db in SNR_DB:
        plain, centred = (
            Scheme(rule, channel=Awgn(float(snr_db)), privacy=privacy, participation=participation)
            for rule in (MajorityVote(), CentredVote())
        )
        pairs.append(Pair(snr_db, (plain, centred), (evaluate(plain, bank), evaluate(centred, bank))))
    return pairs


def gains(bank: ScoreBank, setting: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The largest gain of a curve, and what it comes from."""
    top = max(pairs, key=lambda pair: pair.gain)
    last = pairs[-1]
    return {
        "task": bank.metadata.get("task", ""),
        "classes": bank.classes,
        "setting": setting.replace("$\\varepsilon$", "epsilon"),
        "sigma": [estimate.sigma for estimate in top.estimates],
        "channel_noise_falls_db": top.channel_gain_db,
        "largest_gain": {"snr_db": top.snr_db, "accuracy": [estimate.accuracy for estimate in top.estimates]},
        f"at_{last.snr_db}_db": {"accuracy": [estimate.accuracy for estimate in last.estimates]},
    }


def figure(curves: dict[tuple[ScoreBank, str], list[Pair]]) -> Any:
    """Accuracy above, what centring adds to it below; a column per bank."""
    from matplotlib.figure import Figure

    banks = list(dict.fromkeys(bank for bank, _ in curves))
    made = Figure(figsize=(4.4 * len(banks), 6.0), layout="constrained")
    panels = made.subplots(2, len(banks), sharex=True, squeeze=False, height_ratios=(3, 2))
    for (bank, setting), pairs in curves.items():
        above, below = panels[:, banks.index(bank)]
        style = {name: value for name, value in STYLES[list(SETTINGS).index(setting)].items() if name != "marker"}
        plain, centred = ([100 * pair.estimates[which].accuracy for pair in pairs] for which in (0, 1))
        above.plot(SNR_DB, plain, color=style["color"], linewidth=1.0, linestyle="-", alpha=0.45)
        above.plot(SNR_DB, centred, **style, linewidth=1.8)
        below.plot(SNR_DB, [100 * pair.gain for pair in pairs], **style, linewidth=1.8, label=setting)
    for column, bank in enumerate(banks):
        task = bank.metadata.get("task", "")
        panels[0, column].set_title(f"{TITLES.get(task, task)}, k = {bank.classes}", fontsize=11)
        panels[1, column].set_xlabel("SNR (dB)")
        for axes in panels[:, column]:
            axes.grid(alpha=0.3, linewidth=0.6)
    panels[0, 0].set_ylabel("accuracy (%)\nthick: centred vote, thin: vote")
    panels[1, 0].set_ylabel("gain (percentage points)")
    lines, names = panels[1, 0].get_legend_handles_labels()
    made.legend(
        lines, names, loc="outside lower center", ncols=len(SETTINGS), fontsize=9, handlelength=4.5, frameon=False
    )
    return made


if __name__ == "__main__":
    main()
