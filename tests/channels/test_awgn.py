"""AWGN: the gain costs nothing, and any participation is possible."""

import pytest

from airchoir import Awgn


@pytest.mark.parametrize("probability", [1e-9, 0.3, 1.0])
def test_gains_cost_nothing_and_no_participation_is_refused(probability: float) -> None:
    channel = Awgn()
    channel.check_participation(probability)
    assert channel.inversion_cost(probability) == 1.0


def test_the_papers_snr_is_the_default() -> None:
    assert Awgn().snr_db == 10.0
