"""How fast is the whole of the paper's figure 2, loading and calibration included?

2 rules x epsilon in {infinity, 1} x (12 SNR points at p = 1 and 10 participations at 10 dB) x 5 banks on disk. Ours is exact,
with one participant set per query where sets must be drawn (beliefs at p < 1). Rival: the literal path of `scheme`, ONE draw
per point. Wanted: 5 times less CPU time, better 8. The literal path is given blocks small enough for the cache and the
allocator; `infer` with the bank's own block size is shown beside it.
"""

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from airchoir import Awgn, BeliefSum, Estimate, MajorityVote, Privacy, Scheme, ScoreBank, evaluate, infer
from airchoir.metrics import macro_f1
from airchoir.scheme import answer
from benchmarks.answer import Answer, Sample
from benchmarks.banks import SEED, synthesise
from benchmarks.timing import cpu_seconds

LITERAL_BLOCK_BYTES = 1 << 20
"""Of a block's symbols. From 4 MiB on the C library may hand every freed array back to the system, and the page faults that
follow can double the time."""


def answers(quick: bool) -> Iterator[Answer]:
    times = np.zeros((1 if quick else 5, 3))
    estimates: list[list[Estimate]] = []
    with tempfile.TemporaryDirectory() as folder:
        for bank in range(len(times)):
            path = Path(folder) / f"{bank}.safetensors"
            synthesise(seed=SEED + bank).save(path)
            times[bank, 0] = cpu_seconds(lambda path=path: estimates.append(exact(path)))
            times[bank, 1] = cpu_seconds(lambda path=path: literal(path))
            times[bank, 2] = cpu_seconds(lambda path=path: inferred(path))
    ours, rival, as_it_is = (Sample(tuple(column.tolist()), "s") for column in times.T)
    name = f"figure 2, {len(schemes())} points, a bank of {len(times)}"
    whole = [f"{total:.3g} s" for total in times.sum(axis=0)]
    yield Answer(
        f"{name}, beside the literal path",
        ours,
        rival,
        ratio_wanted=5.0,
        note=f"all {len(times)} bank(s): {whole[0]}, literal {whole[1]}, `infer` {whole[2]}; {errors(estimates)}",
    )
    yield Answer(f"{name}, beside `infer` as it is", ours, as_it_is, ratio_wanted=5.0)


def schemes() -> list[Scheme]:
    """Every point of the figure."""
    points = []
    for rule in (BeliefSum(), MajorityVote()):
        for privacy in (Privacy(epsilon=math.inf), Privacy(epsilon=1.0)):
            points += [Scheme(rule=rule, privacy=privacy, channel=Awgn(float(snr))) for snr in range(-2, 21, 2)]
            points += [Scheme(rule=rule, privacy=privacy, participation=tenths / 10) for tenths in range(1, 11)]
    return points


def exact(path: Path) -> list[Estimate]:
    """The figure's values for one bank."""
    bank = ScoreBank.load(path)
    return [evaluate(scheme, bank, tolerance=math.inf) for scheme in schemes()]


def literal(path: Path) -> list[float]:
    """The same, each point from one literal draw."""
    bank, rng = ScoreBank.load(path), np.random.default_rng(SEED)
    queries = LITERAL_BLOCK_BYTES // (8 * bank.clients * bank.classes)
    values = []
    for scheme in schemes():
        link = scheme.link(bank)
        blocks = bank.blocks(queries)
        labels = [answer(scheme, link, bank.test_scores[link.roster, block], rng) for block in blocks]
        values.append(macro_f1(bank.test_labels, np.concatenate(labels), bank.classes))
    return values


def inferred(path: Path) -> list[float]:
    """The same by `infer`."""
    bank, rng = ScoreBank.load(path), np.random.default_rng(SEED)
    return [macro_f1(bank.test_labels, infer(scheme, bank, rng=rng), bank.classes) for scheme in schemes()]


def errors(estimates: list[list[Estimate]]) -> str:
    """The standard error of the points whose participant sets were drawn, and what a literal draw has."""
    drawn = [e for bank in estimates for e in bank if e.draws]
    ours = np.array([e.macro_f1_se for e in drawn])
    one_draw = np.array([e.macro_f1_std for e in drawn])
    needed = (one_draw / ours) ** 2
    points = len(drawn) // len(estimates)
    return (
        f"{points} points were drawn, with standard error {ours.min():.1e} to {ours.max():.1e} where one literal draw has "
        f"{one_draw.min():.1e} to {one_draw.max():.1e}: the same takes {needed.min():.1f} to {needed.max():.0f} (median "
        f"{np.median(needed):.1f}) literal draws; the other {len(schemes()) - points} have no error at all"
    )
