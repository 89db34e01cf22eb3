"""How close does `simulate` come to its bound, the random numbers?

Rival: drawing the same float32 normals and nothing else. The ratio is the share of the time that the bound explains.
"""

from collections.abc import Iterator

import numpy as np

from airchoir import BeliefSum, Privacy, Scheme, simulate
from benchmarks.answer import Answer
from benchmarks.banks import SEED, synthesise
from benchmarks.timing import per, race

BLOCK_QUERIES = 4096


def answers(quick: bool) -> Iterator[Answer]:
    bank = synthesise(queries=2_000 if quick else 10_000)
    repeats = 10 if quick else 50

    def bare() -> None:
        rng = np.random.Generator(np.random.SFC64(SEED))
        for block in [*bank.blocks(BLOCK_QUERIES)] * repeats:
            rng.standard_normal((block.stop - block.start, bank.classes), dtype=np.float32)

    for participation in (1.0, 0.5):
        scheme = Scheme(rule=BeliefSum(), privacy=Privacy(epsilon=1.0), participation=participation)

        def ours(scheme: Scheme = scheme) -> object:
            return simulate(scheme, bank, repeats=repeats, seed=SEED)

        fast, slow = race(ours, bare, repeats=5)
        normals = repeats * bank.queries * bank.classes
        yield Answer(
            f"simulate belief, p = {participation:g}, {repeats} repeats, beside its bare normals",
            per(fast, normals, "ns/normal"),
            per(slow, normals, "ns/normal"),
        )
