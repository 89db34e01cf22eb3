"""The law of P_t, against every subset counted one by one and against 50 digits."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airchoir.participation import Participation, check_participation

SMALL = [
    Participation(clients, probability, at_least)
    for clients in (1, 2, 3, 5)
    for probability in (1e-12, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0)
    for at_least in range(min(clients, 3) + 1)
]
DRAWN = [Participation(4, probability, at_least) for probability in (0.05, 0.3, 0.8) for at_least in (0, 1, 2, 3, 4)]
FEW_ROUNDINGS = 1e-14
"""What a handful of roundings to double precision may add up to, sixty at most."""

deterministic = settings(derandomize=True, deadline=None, max_examples=100)
probabilities = st.floats(-12.0, 0.0).map(lambda exponent: 10.0**exponent)
laws = st.integers(1, 200).flatmap(
    lambda clients: st.builds(Participation, st.just(clients), probabilities, st.integers(0, min(clients, 5)))
)


def subsets(clients: int) -> list[frozenset[int]]:
    sizes = (combinations(range(clients), size) for size in range(clients + 1))
    return [frozenset(members) for members in chain.from_iterable(sizes)]


def enumerate_law(law: Participation) -> dict[frozenset[int], Fraction]:
    """P(P_t = S) for every S, in exact rationals."""
    p = Fraction(law.probability)
    chance = {
        s: p ** len(s) * (1 - p) ** (law.clients - len(s)) for s in subsets(law.clients) if len(s) >= law.at_least
    }
    total = sum(chance.values())
    if total == 0:
        return {s: Fraction(len(s) == law.clients) for s in chance}
    return {s: weight / total for s, weight in chance.items()}


def close(exact: Any, rel: float = FEW_ROUNDINGS) -> Any:
    return pytest.approx(float(exact), rel=rel, abs=0)


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_inclusion_is_the_chance_that_a_client_takes_part(law: Participation) -> None:
    chance = enumerate_law(law)
    for client in range(law.clients):
        assert law.inclusion == close(sum(weight for s, weight in chance.items() if client in s))


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_mean_size_is_the_expected_number_of_participants(law: Participation) -> None:
    assert law.mean_size == close(sum(len(s) * weight for s, weight in enumerate_law(law).items()))


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_mean_inverse_size_is_the_expectation_given_that_a_client_takes_part(law: Participation) -> None:
    chance = {s: weight for s, weight in enumerate_law(law).items() if 0 in s}
    expected = sum(weight / len(s) for s, weight in chance.items()) / sum(chance.values())
    assert law.mean_inverse_size() == close(expected)


@pytest.mark.parametrize("law", [law for law in SMALL if law.at_least > 1 or law.probability == 1.0], ids=str)
def test_mean_inverse_size_counts_the_lost_out(law: Participation) -> None:
    smallest = law.clients if law.certain else law.at_least
    chance = {s: weight for s, weight in enumerate_law(law).items() if 0 in s}
    for lost in range(smallest):
        expected = sum(weight / (len(s) - lost) for s, weight in chance.items() if weight) / sum(chance.values())
        assert law.mean_inverse_size(lost) == close(expected)


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_size_law_is_the_law_of_the_size(law: Participation) -> None:
    chance = enumerate_law(law)
    sizes, probability = law.size_law
    assert sizes.tolist() == list(range(max(law.at_least, 1), law.clients + 1))
    for size, found in zip(sizes, probability, strict=True):
        assert found == close(sum(weight for s, weight in chance.items() if len(s) == size), rel=1e-12)


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_empty_probability_is_that_of_one_draw(law: Participation) -> None:
    unconditioned = enumerate_law(Participation(law.clients, law.probability, at_least=0))
    assert law.empty_probability == close(unconditioned[frozenset()])


@pytest.mark.parametrize("law", SMALL, ids=str)
def test_certain_means_that_only_the_whole_choir_ever_sings(law: Participation) -> None:
    everyone = frozenset(range(law.clients))
    assert law.certain == (enumerate_law(law)[everyone] == 1)


def test_inclusion_by_hand() -> None:
    assert Participation(2, 0.5).inclusion == pytest.approx(2 / 3, rel=FEW_ROUNDINGS)
    assert Participation(2, 0.5, at_least=0).inclusion == 0.5
    assert Participation(3, 0.5, at_least=2).inclusion == pytest.approx(3 / 4, rel=FEW_ROUNDINGS)
    assert Participation(20, 0.3).inclusion == pytest.approx(0.30023956795559, rel=1e-12)


@pytest.mark.parametrize("probability", [1e-300, 1e-15, 1e-6, 1e-3, 0.5, 0.999])
@pytest.mark.parametrize("clients", [1000, 100_000])
def test_large_choirs_keep_their_digits(clients: int, probability: float) -> None:
    law = Participation(clients, probability)
    with mpmath.workdps(50):
        p = mpmath.mpf(probability)
        some = -mpmath.expm1(clients * mpmath.log1p(-p))
        assert law.inclusion == close(p / some)
        assert law.mean_size == close(clients * p / some)
        assert law.mean_inverse_size() == close(some / (clients * p))
        assert law.empty_probability == pytest.approx(float((1 - p) ** clients), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("at_least", [0, 1, 2])
@pytest.mark.parametrize("probability", [1e-12, 1e-5, 1e-3, 0.5, 0.999])
@pytest.mark.parametrize("clients", [1000, 100_000])
def test_the_size_law_of_large_choirs_has_12_digits(clients: int, probability: float, at_least: int) -> None:
    law = Participation(clients, probability, at_least)
    sizes, found = law.size_law
    with mpmath.workdps(50):
        p = mpmath.mpf(probability)

        def chance(size: int) -> Any:
            return mpmath.binomial(clients, size) * p**size * (1 - p) ** (clients - size)

        kept = 1 - sum(chance(size) for size in range(at_least))
        spread = math.sqrt(clients * probability * (1 - probability))
        for step in (-6, -3, -1, 0, 1, 3, 6):
            size = int(np.clip(round(clients * probability + step * spread), sizes[0], clients))
            assert found[size - int(sizes[0])] == close(chance(size) / kept, rel=1e-12)


@pytest.mark.parametrize("probability", [1 - 2**-53, 1 - 1e-12])
@pytest.mark.parametrize("at_least", [0, 1, 2])
def test_the_laws_approach_full_participation(probability: float, at_least: int) -> None:
    law, full = Participation(20, probability, at_least), Participation(20, 1.0, at_least)
    missing = 20 * (1 - probability) + 20 * math.ulp(1.0)
    assert law.inclusion == pytest.approx(full.inclusion, abs=missing)
    assert law.mean_inverse_size() == pytest.approx(full.mean_inverse_size(), abs=missing)
    assert law.size_law[1] == pytest.approx(full.size_law[1], abs=missing)
    assert law.draw(1000, np.random.default_rng(0)).all()


@pytest.mark.parametrize("probability", [5e-324, 1e-300, 1e-18])
def test_the_laws_approach_the_smallest_round(probability: float) -> None:
    for at_least in [1, 2, 5]:
        law = Participation(20, probability, at_least)
        assert law.inclusion == close(at_least / 20)
        assert law.mean_inverse_size() == close(1 / at_least)
        assert law.size_law[1][0] == close(1)
        assert np.all(law.draw(100, np.random.default_rng(0)).sum(axis=0) == at_least)


@deterministic
@given(laws)
def test_every_participant_carries_its_share(law: Participation) -> None:
    """The sum over clients of E[1{i in P_t} / |P_t|] is the chance that there is anyone."""
    somebody = 1.0 if law.at_least > 0 or law.certain else -math.expm1(law.clients * math.log1p(-law.probability))
    assert law.mean_size * law.mean_inverse_size() == close(somebody, rel=1e-12)


@deterministic
@given(laws)
def test_the_size_law_adds_up_to_the_other_quantities(law: Participation) -> None:
    sizes, chance = law.size_law
    anyone = 1.0 if law.at_least > 0 or law.certain else -math.expm1(law.clients * math.log1p(-law.probability))
    assert math.fsum(chance) == close(anyone, rel=1e-12)
    assert math.fsum(sizes * chance) == close(law.mean_size, rel=1e-12)


@deterministic
@given(laws)
def test_drawing_small_rounds_again_only_raises_the_inclusion(law: Participation) -> None:
    assert law.probability * (1 - FEW_ROUNDINGS) <= law.inclusion <= 1.0
    if law.at_least < law.clients:
        stricter = Participation(law.clients, law.probability, law.at_least + 1)
        assert law.inclusion <= stricter.inclusion * (1 + FEW_ROUNDINGS)


@deterministic
@given(st.integers(1, 200), probabilities, probabilities)
def test_inclusion_grows_with_participation(clients: int, one: float, other: float) -> None:
    rare, common = sorted([one, other])
    assert Participation(clients, rare).inclusion <= Participation(clients, common).inclusion * (1 + FEW_ROUNDINGS)


def within_4_standard_errors(frequency: float, chance: float, draws: int) -> bool:
    return abs(frequency - chance) <= 4 * math.sqrt(chance * (1 - chance) / draws)


@pytest.mark.parametrize("law", DRAWN, ids=str)
def test_every_set_is_drawn_as_often_as_the_law_says(law: Participation) -> None:
    draws = 100_000
    present = law.draw(draws, np.random.default_rng(2024))
    assert present.shape == (4, draws)
    assert present.dtype == np.bool_
    code = np.bincount(2 ** np.arange(4) @ present, minlength=16)
    chance = enumerate_law(law)
    for s in subsets(4):
        frequency = code[sum(2**client for client in s)] / draws
        assert within_4_standard_errors(frequency, float(chance.get(s, 0)), draws), s


@pytest.mark.parametrize("at_least", [0, 1, 2])
def test_every_query_draws_afresh(at_least: int) -> None:
    law, pairs = Participation(4, 0.4, at_least), 50_000
    present = law.draw(2 * pairs, np.random.default_rng(7))
    same = np.all(present[:, ::2] == present[:, 1::2], axis=0).mean()
    assert within_4_standard_errors(same, float(sum(weight**2 for weight in enumerate_law(law).values())), pairs)


@pytest.mark.parametrize("at_least", [1, 2])
def test_tiny_participation_draws_the_smallest_rounds_evenly(at_least: int) -> None:
    law, draws = Participation(6, 1e-12, at_least), 60_000
    present = law.draw(draws, np.random.default_rng(3))
    assert np.all(present.sum(axis=0) == at_least)
    drawn = np.bincount(2 ** np.arange(6) @ present, minlength=64)
    rounds = list(combinations(range(6), at_least))
    for members in rounds:
        frequency = drawn[sum(2**client for client in members)] / draws
        assert within_4_standard_errors(frequency, 1 / len(rounds), draws), members


@pytest.mark.parametrize("at_least", [0, 1, 3])
def test_large_choirs_draw_the_right_sizes(at_least: int) -> None:
    law, draws = Participation(100_000, 2e-5, at_least), 100
    size = law.draw(draws, np.random.default_rng(11)).sum(axis=0)
    sizes, chance = law.size_law
    variance = float(chance @ sizes**2) - law.mean_size**2
    assert size.min() >= at_least
    assert abs(size.mean() - law.mean_size) <= 4 * math.sqrt(variance / draws)


def test_tiny_participation_may_leave_rounds_empty_where_that_is_allowed() -> None:
    assert not Participation(20, 1e-12, at_least=0).draw(1000, np.random.default_rng(0)).any()


@pytest.mark.parametrize("law", [Participation(3, 1.0), Participation(3, 0.2, at_least=3), Participation(1, 0.01)])
def test_whoever_must_take_part_does(law: Participation) -> None:
    assert law.draw(50, np.random.default_rng(0)).all()


def test_the_same_seed_draws_the_same_sets() -> None:
    law = Participation(5, 0.2, at_least=2)
    one, again, other = (law.draw(100, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("law", [Participation(5, 0.2), Participation(5, 1.0), Participation(5, 0.2, at_least=0)])
def test_no_queries_draw_nothing(law: Participation) -> None:
    assert law.draw(0, np.random.default_rng(0)).shape == (5, 0)


def test_a_single_precision_probability_is_calculated_in_double() -> None:
    single = np.float32(0.1)
    assert Participation(20, single) == Participation(20, float(single))
    assert Participation(20, single).inclusion == Participation(20, float(single)).inclusion
    assert isinstance(Participation(20, single).probability, float)


def assert_clear(refused: Callable[[], object], *, names: str, value: str) -> None:
    """One line: what, its value, what to do instead."""
    with pytest.raises(ValueError, match=names) as caught:
        refused()
    problem, remedy = str(caught.value).split("; ", maxsplit=1)
    assert value in problem
    assert remedy
    assert "\n" not in remedy


@pytest.mark.parametrize("bad", [0.0, -0.1, -1e-300, 1 + 1e-15, 2.0, math.inf, -math.inf, math.nan])
def test_participation_outside_0_1_is_refused(bad: float) -> None:
    for refused in (lambda: check_participation(bad), lambda: Participation(20, bad)):
        assert_clear(refused, names="participation", value=repr(bad))


@pytest.mark.parametrize("bad", [0, -1, 2.0, math.nan, "20", None])
def test_no_clients_or_half_ones_are_refused(bad: Any) -> None:
    assert_clear(lambda: Participation(bad, 0.5), names="clients", value=repr(bad))


@pytest.mark.parametrize("bad", [-1, 6, 1.5, None])
def test_rounds_larger_than_the_choir_are_refused(bad: Any) -> None:
    assert_clear(lambda: Participation(5, 0.5, bad), names="at_least", value=repr(bad))


@pytest.mark.parametrize(
    ("law", "lost"), [(Participation(5, 0.5), 1), (Participation(5, 0.5, 3), 3), (Participation(5, 1.0), 5)], ids=str
)
def test_losing_a_whole_round_is_refused(law: Participation, lost: int) -> None:
    assert_clear(lambda: law.mean_inverse_size(lost), names="lost", value=str(lost))
    assert_clear(lambda: law.mean_inverse_size(-1), names="lost", value="-1")


# --- listing the sets


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 10), st.floats(0.01, 1.0), st.data())
def test_all_sets_together_have_the_law_of_sizes_and_of_inclusion(clients: int, p: float, data: st.DataObject) -> None:
    law = Participation(clients, p, at_least=data.draw(st.integers(0, clients)))
    assert law.can_list(2**clients)
    assert not law.can_list(2**clients - 1)
    present, weights = law.sets(2**clients)
    assert present.shape == (clients, 2**clients) == (clients, len({column.tobytes() for column in present.T}))
    np.testing.assert_allclose(weights.sum(), 1.0)
    np.testing.assert_allclose(present @ weights, law.inclusion, rtol=1e-9)
    sizes, expected = law.size_law
    found = [weights[present.sum(axis=0) == size].sum() for size in sizes]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


def test_where_there_are_too_many_sets_they_are_drawn_always_the_same() -> None:
    law = Participation(20, 0.3)
    present, weights = law.sets(1024)
    np.testing.assert_array_equal(present, law.sets(1024)[0])
    assert present.shape == (20, 1024)
    assert weights.sum() == pytest.approx(1.0)
    error = np.sqrt(0.3 * 0.7 / 1024)
    assert (np.abs(present @ weights - law.inclusion) < 4.0 * error).all()
