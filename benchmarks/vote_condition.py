"""How much cheaper is a majority-vote condition, everyone present, once the first has sorted the votes into patterns?

Rival: our own belief condition, also after the first. Both are whole `evaluate` calls, calibration and metrics included, in
sweeps over the figure's 12 SNR points at epsilon 1. Wanted: 20 times.
"""

from collections.abc import Iterator

from airchoir import Awgn, BeliefSum, MajorityVote, Privacy, Scheme, ScoreBank, evaluate
from airchoir.rules import Rule
from benchmarks.answer import Answer, Sample
from benchmarks.banks import synthesise
from benchmarks.timing import cpu_seconds, race

SNR_DB = range(-2, 21, 2)


def answers(quick: bool) -> Iterator[Answer]:
    for classes in (10, 100):
        bank = synthesise(queries=1_000 if quick else 10_000, classes=classes)
        first = cpu_seconds(lambda bank=bank: evaluate(scheme(MajorityVote(), 10.0), bank))
        ours, rival = race(
            lambda bank=bank: sweep(MajorityVote(), bank), lambda bank=bank: sweep(BeliefSum(), bank), repeats=7
        )
        link, _ = race(lambda bank=bank: links(bank), lambda: None, repeats=7)
        yield Answer(
            f"vote condition, {bank.queries} queries x {classes} classes, beside belief",
            per_condition(ours),
            per_condition(rival),
            ratio_wanted=20.0 if classes == 10 else None,
            note=f"the first took {1e3 * first:.1f} ms; of either, calibration and link take {per_condition(link)}",
        )


def scheme(rule: Rule, snr_db: float) -> Scheme:
    """A condition of the paper's figure."""
    return Scheme(rule=rule, privacy=Privacy(epsilon=1.0), channel=Awgn(snr_db))


def sweep(rule: Rule, bank: ScoreBank) -> None:
    """All conditions, one after the other."""
    for snr_db in SNR_DB:
        evaluate(scheme(rule, float(snr_db)), bank)


def links(bank: ScoreBank) -> None:
    """The part of a sweep that does not look at the queries."""
    for snr_db in SNR_DB:
        scheme(MajorityVote(), float(snr_db)).link(bank)


def per_condition(sweeps: Sample) -> Sample:
    """Seconds of a sweep as milliseconds for each of its conditions."""
    return Sample(tuple(1e3 * value / len(SNR_DB) for value in sweeps.values), "ms")
