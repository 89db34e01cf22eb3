"""How fast are the decision probabilities of one noisy belief-sum condition, every one within 1e-6?

Rival: the same quadrature (same nodes, shared product F) written directly with scipy.special.ndtr. Wanted: 5 times faster;
about 50 ns per query x class on a quiet core.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from airchoir import Awgn, BeliefSum, Privacy, Scheme, ScoreBank
from airchoir.exact import noise_std
from airchoir.quadrature import decision_probabilities, grid, step
from benchmarks.answer import Answer
from benchmarks.banks import synthesise
from benchmarks.timing import per, race

Floats = NDArray[np.float64]

REACH = 5.2
"""Of the nodes that `quadrature` uses."""
ORACLE_REACH, ORACLE_STEP = 8.0, 0.1
BLOCK_BYTES = 1 << 20
NOISE_STDS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Besides the condition's own, where the error is measured."""


def answers(quick: bool) -> Iterator[Answer]:
    for classes in (10, 100):
        bank = synthesise(queries=1_000 if quick else 10_000, classes=classes)
        scheme = Scheme(rule=BeliefSum(), privacy=Privacy(epsilon=1.0), channel=Awgn(10.0))
        std = noise_std(scheme, scheme.link(bank))
        sums = belief_sums(bank)
        nodes = grid(REACH, step(classes))

        def ours(sums: Floats = sums, std: float = std) -> object:
            return decision_probabilities(sums, std)

        def rival(sums: Floats = sums, std: float = std, nodes: Floats = nodes) -> object:
            return direct(sums, std, nodes)

        fast, slow = race(ours, rival, repeats=3 if classes == 100 else 5)
        yield Answer(
            f"belief condition, {bank.queries} queries x {classes} classes",
            per(fast, sums.size, "ns/query/class"),
            per(slow, sums.size, "ns/query/class"),
            ratio_wanted=5.0,
            note=f"noise std {std:.4g}, {len(nodes)} nodes; {worst_errors(sums, std)}",
        )


def belief_sums(bank: ScoreBank) -> Floats:
    """What the server would hear without noise."""
    total: Floats = BeliefSum().encode(bank.test_scores).sum(axis=0)
    return total


def direct(sums: Floats, std: float, nodes: Floats) -> Floats:
    """P(decide j) by the trapezoid rule, F shared by the classes: blocks stay in the cache, work is done in place.

    Step and 1 / sqrt(2 pi) are left out, as rows are normalised at the end.
    """
    queries, classes = sums.shape
    probabilities = np.empty(sums.shape)
    size = max(1, BLOCK_BYTES // (8 * classes * len(nodes)))
    for start in range(0, queries, size):
        block = sums[start : start + size]
        z = (block.max(axis=1, keepdims=True) - block)[:, :, None] / std + nodes
        cdf = special.ndtr(z)
        z *= z
        z *= -0.5
        hazard = np.exp(z, out=z)
        hazard /= cdf
        won = np.matmul(hazard, cdf.prod(axis=1)[:, :, None])[:, :, 0]
        probabilities[start : start + size] = won / won.sum(axis=1, keepdims=True)
    return probabilities


def worst_errors(sums: Floats, std: float) -> str:
    """How far we are off, against 81 or more nodes in float64."""
    oracle = grid(ORACLE_REACH, ORACLE_STEP)
    many, few = sums[:: max(1, sums.size // 100_000)], sums[:: max(1, sums.size // 10_000)]

    def worst(some: Floats, noise_std: float) -> float:
        return float(np.abs(decision_probabilities(some, noise_std) - direct(some, noise_std, oracle)).max())

    others = max(worst(few, noise_std) for noise_std in NOISE_STDS)
    return (
        f"worst error {worst(many, std):.1e} over {many.size} probabilities, and {others:.1e} over {few.size} at each noise "
        f"std of {', '.join(f'{noise_std:g}' for noise_std in NOISE_STDS)}; wanted below 1e-06"
    )
