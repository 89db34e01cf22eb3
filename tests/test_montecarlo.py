"""simulate(): reproducible to the digit whatever the memory and the threads, and right within its own standard errors."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from airchoir import (
    Awgn,
    BeliefSum,
    BestClient,
    Estimate,
    MajorityVote,
    Orthogonal,
    OverTheAir,
    Privacy,
    Scheme,
    ScoreBank,
    evaluate,
    simulate,
)
from airchoir.metrics import macro_f1
from airchoir.montecarlo import _STREAM_QUERIES, _stream

MakeBank = Callable[..., ScoreBank]
NOISY = Privacy(epsilon=1.0, delta=0.05)
SCHEMES = {
    "votes, all present": Scheme(MajorityVote(), OverTheAir(), Awgn(3.0), NOISY),
    "votes, some present": Scheme(MajorityVote(), OverTheAir(), Awgn(3.0), NOISY, participation=0.4),
    "beliefs, all present": Scheme(BeliefSum(), Orthogonal(), Awgn(3.0), NOISY),
    "beliefs, some present": Scheme(BeliefSum(), Orthogonal(), Awgn(3.0), NOISY, participation=0.4),
    "no noise, some present": Scheme(BeliefSum(), OverTheAir(), Awgn(math.inf), participation=0.4),
    "one client": Scheme(BeliefSum(), BestClient(), Awgn(3.0), NOISY),
}
schemes = pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES.keys())


def same(first: Estimate, second: Estimate) -> bool:
    return all(np.array_equal(value, getattr(second, name)) for name, value in vars(first).items())


@schemes
def test_a_seed_gives_the_same_numbers_again_and_another_gives_others(make_bank: MakeBank, scheme: Scheme) -> None:
    first, again, other = (simulate(scheme, make_bank(), repeats=20, seed=seed) for seed in (5, 5, 6))
    assert same(first, again)
    assert not same(first, other)


@schemes
@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("memory_mb", [0.2, 2.0, math.inf])
def test_memory_and_workers_change_no_digit(
    make_bank: MakeBank, scheme: Scheme, workers: int, memory_mb: float
) -> None:
    bank = make_bank(clients=3, queries=_STREAM_QUERIES + 500, classes=3)
    expected = simulate(scheme, bank, repeats=4, seed=1)
    assert same(expected, simulate(scheme, bank, repeats=4, seed=1, workers=workers, memory_mb=memory_mb))


@schemes
def test_a_memory_limit_below_one_query_changes_no_digit(make_bank: MakeBank, scheme: Scheme) -> None:
    bank = make_bank(queries=101)
    expected = simulate(scheme, bank, repeats=3)
    assert same(expected, simulate(scheme, bank, repeats=3, memory_mb=1e-9, workers=2))


def test_more_repeats_begin_with_the_same_ones(make_bank: MakeBank) -> None:
    """Streams are keyed by repeat: the first two of three are the two."""
    scheme, bank = SCHEMES["beliefs, some present"], make_bank()
    two, three, four = (simulate(scheme, bank, repeats=repeats) for repeats in (2, 3, 4))
    third, fourth = 3.0 * three.hits - 2.0 * two.hits, 4.0 * four.hits - 3.0 * three.hits
    for single in (third, fourth):
        np.testing.assert_allclose(single, np.round(single), rtol=0, atol=1e-9)
        assert (single >= -1e-9).all()
        assert (single <= np.bincount(bank.test_labels) + 1e-9).all()
    assert not np.array_equal(np.round(third), np.round(fourth))


@schemes
def test_mean_meets_exact_within_four_standard_errors(make_bank: MakeBank, scheme: Scheme) -> None:
    bank = make_bank(queries=300)
    drawn, exact = simulate(scheme, bank, repeats=400, seed=11), evaluate(scheme, bank, tolerance=2e-3)
    support = np.bincount(bank.test_labels)
    for name, remainder in (("macro_f1", float(np.mean(0.07 / support**2))), ("accuracy", 0.0)):
        error = math.hypot(getattr(drawn, f"{name}_se"), getattr(exact, f"{name}_se"))
        assert abs(getattr(drawn, name) - getattr(exact, name)) <= 4.0 * error + remainder


def test_standard_errors_are_the_scatter_of_the_mean(make_bank: MakeBank) -> None:
    """Over 150 seeds the scatter is known to 1 / sqrt(300) of itself."""
    scheme, bank, seeds = SCHEMES["beliefs, some present"], make_bank(queries=40), 150
    estimates = [simulate(scheme, bank, repeats=20, seed=seed) for seed in range(seeds)]
    for name in ("macro_f1", "accuracy"):
        scatter = np.std([getattr(e, name) for e in estimates], ddof=1)
        reported = np.sqrt(np.mean([getattr(e, f"{name}_se") ** 2 for e in estimates]))
        assert reported == pytest.approx(scatter, rel=4.0 / math.sqrt(2.0 * seeds))


@schemes
def test_standard_errors_follow_from_the_spread_and_the_repeats(make_bank: MakeBank, scheme: Scheme) -> None:
    estimate = simulate(scheme, make_bank(), repeats=25)
    assert estimate.draws == 25
    assert estimate.macro_f1_se == pytest.approx(estimate.macro_f1_std / 5.0)
    assert estimate.accuracy_se == pytest.approx(estimate.accuracy_std / 5.0)


def test_spread_of_two_repeats_is_their_distance_over_root_two(make_bank: MakeBank) -> None:
    scheme, bank = SCHEMES["votes, all present"], make_bank()
    accuracies = []
    for repeat in range(2):
        sums = scheme.rule.encode(bank.test_scores).sum(axis=0)
        link = scheme.link(bank)
        variance = scheme.access.noise_variance(np.ones((bank.clients, 1), dtype=bool), link)
        noise = _stream(9, repeat, 0).standard_normal(sums.shape, dtype=np.float32)
        accuracies.append(np.mean((sums + np.sqrt(variance) * noise).argmax(axis=1) == bank.test_labels))
    estimate = simulate(scheme, bank, repeats=2, seed=9)
    assert estimate.accuracy == pytest.approx(np.mean(accuracies))
    assert estimate.accuracy_std == pytest.approx(abs(accuracies[0] - accuracies[1]) / math.sqrt(2.0))


def test_blocks_of_queries_draw_independently(make_bank: MakeBank) -> None:
    """Twin blocks that shared their draws would spread sqrt 2 too far."""
    once = make_bank(clients=2, queries=_STREAM_QUERIES, classes=2)
    twice = ScoreBank(np.tile(once.test_scores, (1, 2, 1)), np.tile(once.test_labels, 2))
    for scheme in (SCHEMES["votes, all present"], SCHEMES["no noise, some present"]):
        drawn, exact = simulate(scheme, twice, repeats=300), evaluate(scheme, twice, tolerance=1e-3)
        assert drawn.accuracy_std == pytest.approx(exact.accuracy_std, rel=4.0 / math.sqrt(600.0))


def test_no_noise_and_everyone_present_give_one_answer(make_bank: MakeBank) -> None:
    bank = make_bank()
    estimate = simulate(Scheme(BeliefSum(), OverTheAir(), Awgn(math.inf)), bank, repeats=3)
    decided = bank.test_scores.astype(np.float64).sum(axis=0).argmax(axis=1)
    assert estimate.macro_f1 == pytest.approx(macro_f1(bank.test_labels, decided, bank.classes), abs=1e-15)
    assert estimate.accuracy == pytest.approx(np.mean(decided == bank.test_labels), abs=1e-15)
    assert estimate.macro_f1_std == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("threshold", [1.0, 2.5, 4.0, 4.4])
def test_float32_noise_has_the_tails_of_a_normal(threshold: float) -> None:
    """Of N normals a share Q lies beyond the threshold, give or take 4 sqrt(Q N)."""
    noise = _stream(0, 0, 0).standard_normal(10_000_000, dtype=np.float32)
    expected = 1e7 * float(special.ndtr(-threshold))
    for tail in (noise > threshold, noise < -threshold):
        assert abs(np.count_nonzero(tail) - expected) <= 4.0 * math.sqrt(expected)


def test_float32_noise_is_fine_enough_and_uncorrelated_between_streams() -> None:
    first, second = (_stream(0, repeat, 0).standard_normal(100_000, dtype=np.float32) for repeat in (0, 1))
    assert len(np.unique(first)) > 0.98 * len(first)
    assert abs(np.corrcoef(first, second)[0, 1]) <= 4.0 / math.sqrt(1e5)
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) <= 4.0 / math.sqrt(1e5)


def test_progress_ends_at_the_total(make_bank: MakeBank) -> None:
    calls: list[tuple[int, int]] = []
    bank = make_bank(clients=1, queries=2 * _STREAM_QUERIES + 1, classes=2)
    scheme = SCHEMES["votes, all present"]
    simulate(scheme, bank, repeats=2, progress=lambda done, total: calls.append((done, total)))
    total = 2 * _STREAM_QUERIES + 1
    assert calls == [(_STREAM_QUERIES, total), (2 * _STREAM_QUERIES, total), (total, total)]


def test_costs_equal_those_of_evaluate(make_bank: MakeBank) -> None:
    scheme, bank = SCHEMES["beliefs, some present"], make_bank()
    drawn, exact = simulate(scheme, bank, repeats=2), evaluate(scheme, bank, tolerance=0.1)
    for name in ("sigma", "channel_noise_variance", "channel_uses", "accountant"):
        assert getattr(drawn, name) == getattr(exact, name)


@pytest.mark.parametrize(
    "setting",
    [
        {"repeats": 1},
        {"repeats": 0},
        {"repeats": 2.5},
        {"repeats": math.nan},
        {"repeats": "200"},
        {"workers": 0},
        {"workers": 1.5},
        {"workers": -1},
        {"memory_mb": 0.0},
        {"memory_mb": -1.0},
        {"memory_mb": math.nan},
    ],
    ids=str,
)
def test_a_bad_setting_is_refused_in_one_line_that_names_it(make_bank: MakeBank, setting: dict[str, Any]) -> None:
    ((name, value),) = setting.items()
    with pytest.raises(ValueError, match=rf"^{name} must be .*, got {value!r}; ") as refused:
        simulate(SCHEMES["votes, all present"], make_bank(), **setting)
    assert "\n" not in str(refused.value)
