"""evaluate() from end to end: against METHOD.md written out literally, against simulate(), and against itself."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

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
from airchoir.access import Access
from airchoir.exact import answer_probabilities, decisions, is_exact, noise_std
from airchoir.metrics import DenseTally, macro_f1, summarise
from airchoir.registry import plugins
from airchoir.rules import Rule

MakeBank = Callable[..., ScoreBank]
ERROR = 1e-6
X = np.arange(-13.0, 13.0, 0.05)
RULES, ACCESSES = (MajorityVote(), BeliefSum()), (OverTheAir(), Orthogonal(), BestClient())
SNRS_DB = (-30.0, -10.0, 0.0, 10.0, 30.0, 100.0, 300.0, 3000.0, math.inf)
combinations = pytest.mark.parametrize("access", ACCESSES, ids=lambda access: access.name)
rules = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


def scheme_of(
    rule: Rule, access: Access, *, p: float = 1.0, snr_db: float = 10.0, epsilon: float = math.inf, delta: float = 0.05
) -> Scheme:
    return Scheme(rule, access, Awgn(snr_db), Privacy(epsilon, delta), participation=p)


def is_drawn(scheme: Scheme) -> bool:
    """What METHOD and the issue leave to drawn sets: everything at p < 1 but votes over the air and a lone best client."""
    if scheme.participation == 1.0 or scheme.access == BestClient():
        return False
    return not (scheme.rule == MajorityVote() and scheme.access == OverTheAir())


def noisy_argmax(sums: np.ndarray, variance: float) -> np.ndarray:
    """One query's probabilities by definition in float64; without noise the first largest wins."""
    if variance == 0.0:
        return np.eye(len(sums))[np.argmax(sums)]
    levels = np.maximum((sums - sums.max()) / math.sqrt(variance), -50.0)[:, None]
    log_phi = special.log_ndtr(X - levels)
    log_density = -0.5 * (X - levels) ** 2 - math.log(math.sqrt(2.0 * math.pi))
    return 0.05 * np.exp(log_density + log_phi.sum(axis=0) - log_phi).sum(axis=1)


def literal_rows(scheme: Scheme, bank: ScoreBank, sigma: float) -> np.ndarray:
    """METHOD.md with AWGN: every participant set with its chance, its sum and its noise."""
    scores = bank.test_scores.astype(np.float64)
    beliefs = scores / scores.sum(axis=2, keepdims=True)
    votes = np.eye(bank.classes)[np.argmax(scores, axis=2)]
    symbols = votes if scheme.rule == MajorityVote() else beliefs
    n, p = bank.clients, scheme.participation
    over_the_air = scheme.access == OverTheAir()
    inverse_size = (1.0 - (1.0 - p) ** n) / (n * p) if over_the_air else 1.0
    power = (symbols**2).mean(axis=(1, 2)) + sigma**2 * inverse_size
    snr = 10.0 ** (scheme.channel.snr_db / 10.0)
    rows = np.zeros((bank.queries, bank.classes))
    for present in map(np.array, itertools.product((0, 1), repeat=n)):
        size = present.sum()
        chance = p**size * (1.0 - p) ** (n - size) / (1.0 - (1.0 - p) ** n)
        if size > 0 and chance > 0.0:
            variance = sigma**2 + power.max() / snr if over_the_air else size * sigma**2 + present @ power / snr
            sums = np.round(np.tensordot(present, symbols, axes=1), 12)
            rows += chance * np.array([noisy_argmax(query, variance) for query in sums])
    return rows


@rules
@pytest.mark.parametrize("access", [OverTheAir(), Orthogonal()], ids=lambda access: access.name)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_everyone_present_equals_the_method_written_out_at_any_snr(
    make_bank: MakeBank, rule: Rule, access: Access, epsilon: float
) -> None:
    bank = make_bank(clients=4, queries=12, dtype="float16")
    for snr_db in SNRS_DB:
        scheme = scheme_of(rule, access, snr_db=snr_db, epsilon=epsilon)
        estimate = evaluate(scheme, bank)
        rows = literal_rows(scheme, bank, estimate.sigma)
        np.testing.assert_allclose(decisions(scheme, bank).probabilities, rows, rtol=0, atol=ERROR)
        expected = summarise(DenseTally.of(rows, bank.test_labels))
        assert estimate.accuracy == pytest.approx(expected.accuracy, abs=ERROR)
        np.testing.assert_allclose(estimate.per_class_f1, expected.per_class_f1, rtol=0, atol=3 * ERROR)


@pytest.mark.parametrize("p", [1e-9, 0.3, 0.9])
def test_votes_over_the_air_equal_the_method_written_out_at_any_participation(make_bank: MakeBank, p: float) -> None:
    bank = make_bank(clients=4, queries=12)
    for snr_db, epsilon in ((-30.0, 1.0), (0.0, 1.0), (20.0, math.inf), (300.0, math.inf), (math.inf, math.inf)):
        scheme = scheme_of(MajorityVote(), OverTheAir(), p=p, snr_db=snr_db, epsilon=epsilon)
        estimate = evaluate(scheme, bank)
        rows = literal_rows(scheme, bank, estimate.sigma)
        np.testing.assert_allclose(decisions(scheme, bank).probabilities, rows, rtol=0, atol=ERROR)
        assert estimate.accuracy == pytest.approx(rows[np.arange(12), bank.test_labels].mean(), abs=ERROR)
        assert (estimate.draws, estimate.macro_f1_se, estimate.accuracy_se) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("rule", "access"), [(BeliefSum(), OverTheAir()), (BeliefSum(), Orthogonal()), (MajorityVote(), Orthogonal())]
)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_drawn_evaluation_meets_the_method_written_out(
    make_bank: MakeBank, rule: Rule, access: Access, epsilon: float
) -> None:
    bank = make_bank(clients=4, queries=100)
    scheme = scheme_of(rule, access, p=0.4, epsilon=epsilon)
    estimate = evaluate(scheme, bank, tolerance=2e-3)
    rows = literal_rows(scheme, bank, estimate.sigma)
    exact = summarise(DenseTally.of(rows, bank.test_labels))
    assert estimate.draws >= 1
    assert 0.0 < estimate.macro_f1_se <= 2e-3
    assert abs(estimate.accuracy - exact.accuracy) <= 4.0 * estimate.accuracy_se
    assert abs(estimate.macro_f1 - exact.macro_f1) <= 4.0 * estimate.macro_f1_se
    assert abs(estimate.macro_f1_std - exact.macro_f1_std) <= estimate.macro_f1_se
    assert abs(estimate.accuracy_std - exact.accuracy_std) <= estimate.accuracy_se


def remainder(bank: ScoreBank) -> float:
    """What the second-order correction may leave in macro-F1 [summarise]."""
    support = np.bincount(bank.test_labels, minlength=bank.classes)
    return float(np.mean(0.07 / np.maximum(support, 1) ** 2))


@rules
@combinations
@pytest.mark.parametrize(("p", "epsilon"), [(1.0, 1.0), (1.0, math.inf), (0.4, 1.0), (0.4, math.inf)])
def test_mean_and_spread_meet_simulate(
    make_bank: MakeBank, rule: Rule, access: Access, p: float, epsilon: float
) -> None:
    bank, repeats = make_bank(clients=4, queries=250), 300
    scheme = scheme_of(rule, access, p=p, epsilon=epsilon, snr_db=3.0)
    exact, drawn = evaluate(scheme, bank, tolerance=2e-3), simulate(scheme, bank, repeats=repeats, seed=3)
    f1_error = 4.0 * math.hypot(drawn.macro_f1_se, exact.macro_f1_se) + remainder(bank)
    assert abs(exact.macro_f1 - drawn.macro_f1) <= f1_error
    assert abs(exact.accuracy - drawn.accuracy) <= 4.0 * math.hypot(drawn.accuracy_se, exact.accuracy_se)
    of_std = 4.0 / math.sqrt(2.0 * repeats)
    assert exact.macro_f1_std == pytest.approx(drawn.macro_f1_std, rel=of_std)
    assert exact.accuracy_std == pytest.approx(drawn.accuracy_std, rel=of_std)


def test_per_class_spread_meets_simulate_even_with_a_single_draw(make_bank: MakeBank) -> None:
    """Without noise all the spread comes from the sets, of which one per query was drawn."""
    bank, repeats = make_bank(clients=4, queries=1000), 300
    scheme = scheme_of(BeliefSum(), OverTheAir(), p=0.4, snr_db=math.inf)
    exact, drawn = evaluate(scheme, bank, tolerance=1.0), simulate(scheme, bank, repeats=repeats)
    assert exact.draws == 1
    # The pilot's variance comes from some 90 queries per class: 4 standard errors of its root, and of the simulated one.
    allowed = 4.0 * math.hypot(1.0 / math.sqrt(2.0 * 90.0), 1.0 / math.sqrt(2.0 * repeats))
    np.testing.assert_allclose(exact.per_class_f1_std, drawn.per_class_f1_std, rtol=allowed)


def test_independent_seeds_scatter_by_the_reported_standard_error(make_bank: MakeBank) -> None:
    bank, seeds = make_bank(clients=4, queries=300), 200
    scheme = scheme_of(BeliefSum(), OverTheAir(), p=0.4, epsilon=1.0)
    estimates = [evaluate(scheme, bank, tolerance=0.01, seed=seed) for seed in range(seeds)]
    for name in ("macro_f1", "accuracy"):
        values = np.array([getattr(e, name) for e in estimates])
        errors = np.array([getattr(e, f"{name}_se") for e in estimates])
        assert values.std(ddof=1) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=4.0 / math.sqrt(2.0 * seeds))
    assert max(e.macro_f1_se for e in estimates) <= 0.01


def same(first: Estimate, second: Estimate) -> bool:
    return all(np.array_equal(value, getattr(second, name)) for name, value in vars(first).items())


def test_a_seed_gives_the_same_draws_again_and_another_gives_others(make_bank: MakeBank) -> None:
    scheme = scheme_of(BeliefSum(), OverTheAir(), p=0.4)
    first, again, other = (evaluate(scheme, make_bank(), tolerance=0.01, seed=seed) for seed in (7, 7, 8))
    assert same(first, again)
    assert first.macro_f1 != other.macro_f1


def test_a_smaller_tolerance_draws_more_and_keeps_it(make_bank: MakeBank) -> None:
    scheme, bank = scheme_of(BeliefSum(), Orthogonal(), p=0.4), make_bank(queries=3000)
    draws = []
    for tolerance in (1e-2, 2e-3, 5e-4):
        estimate = evaluate(scheme, bank, tolerance=tolerance)
        assert 0.0 < estimate.macro_f1_se <= tolerance
        draws.append(estimate.draws)
    assert draws == sorted(draws)
    assert draws[-1] > draws[0]


@rules
@combinations
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_nothing_is_drawn_where_nothing_need_be(make_bank: MakeBank, rule: Rule, access: Access, p: float) -> None:
    scheme, bank = scheme_of(rule, access, p=p), make_bank()
    first, second = (evaluate(scheme, bank, tolerance=0.02, seed=seed) for seed in (1, 2))
    if is_drawn(scheme):
        assert first.draws > 0
        assert first.macro_f1_se > 0.0
        assert not same(first, second)
    else:
        assert (first.draws, first.macro_f1_se, first.accuracy_se) == (0, 0.0, 0.0)
        assert same(first, second)


@rules
@combinations
def test_no_noise_and_everyone_present_leave_no_spread(make_bank: MakeBank, rule: Rule, access: Access) -> None:
    bank = make_bank(queries=333, classes=5)
    estimate = evaluate(scheme_of(rule, access, snr_db=math.inf), bank)
    assert (estimate.macro_f1_std, estimate.accuracy_std, estimate.macro_f1_se, estimate.accuracy_se) == (0, 0, 0, 0)
    np.testing.assert_array_equal(estimate.per_class_f1_std, 0.0)
    chosen = decisions(scheme_of(rule, access, snr_db=math.inf), bank).probabilities.argmax(axis=1)
    assert estimate.macro_f1 == pytest.approx(macro_f1(bank.test_labels, chosen, 5), abs=1e-12)


@rules
@combinations
@pytest.mark.parametrize(("p", "snr_db"), [(1.0, 0.0), (0.5, 0.0), (0.5, math.inf), (1.0, math.inf)])
def test_decisions_are_those_behind_the_estimate(
    make_bank: MakeBank, rule: Rule, access: Access, p: float, snr_db: float
) -> None:
    bank = make_bank(queries=90)
    scheme = scheme_of(rule, access, p=p, snr_db=snr_db)
    estimate = evaluate(scheme, bank, tolerance=0.02, seed=5)
    behind = decisions(scheme, bank, draws=estimate.draws, seed=5)
    rows, labels = behind.probabilities, bank.test_labels
    np.testing.assert_array_equal(behind.labels, labels)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=ERROR)
    expected = np.array([rows[labels == c].sum(axis=0, dtype=np.float64) for c in range(bank.classes)])
    np.testing.assert_allclose(behind.confusion, expected, rtol=1e-6)
    np.testing.assert_allclose(behind.confusion.sum(axis=1), np.bincount(labels), rtol=1e-6)
    assert behind.confusion.trace() / bank.queries == pytest.approx(estimate.accuracy, abs=1e-9)
    np.testing.assert_allclose(behind.confusion.sum(axis=0), estimate.decided, rtol=1e-6)
    np.testing.assert_allclose(behind.confusion.diagonal(), estimate.hits, rtol=1e-6)


def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few queries at a time, and nothing kept in the bank."""
    monkeypatch.setattr("airchoir.exact._BLOCK_BYTES", 500)
    monkeypatch.setattr("airchoir.exact._KEPT_BYTES", 0)


@rules
@combinations
@pytest.mark.parametrize(("p", "snr_db"), [(1.0, 0.0), (0.5, 0.0), (0.5, math.inf)])
def test_estimates_do_not_depend_on_blocks(
    make_bank: MakeBank, monkeypatch: pytest.MonkeyPatch, rule: Rule, access: Access, p: float, snr_db: float
) -> None:
    scheme = scheme_of(rule, access, p=p, snr_db=snr_db)
    whole = evaluate(scheme, make_bank(queries=400), tolerance=0.005)
    small_blocks(monkeypatch)
    pieces = evaluate(scheme, make_bank(queries=400), tolerance=0.005)
    if is_drawn(scheme):  # other sets were drawn: a stream belongs to a block
        assert abs(whole.macro_f1 - pieces.macro_f1) <= 4.0 * math.hypot(whole.macro_f1_se, pieces.macro_f1_se)
        assert abs(whole.accuracy - pieces.accuracy) <= 4.0 * math.hypot(whole.accuracy_se, pieces.accuracy_se)
    else:
        for name in ("macro_f1", "macro_f1_std", "accuracy", "accuracy_std", "per_class_f1", "per_class_f1_std"):
            np.testing.assert_allclose(getattr(pieces, name), getattr(whole, name), rtol=0, atol=ERROR, err_msg=name)


@rules
@pytest.mark.parametrize(("p", "snr_db"), [(1.0, 0.0), (0.5, 0.0), (0.5, math.inf)])
def test_what_a_bank_keeps_changes_no_later_estimate(make_bank: MakeBank, rule: Rule, p: float, snr_db: float) -> None:
    used = make_bank()
    for other, access, chance in itertools.product(RULES, ACCESSES, (1.0, 0.7)):
        evaluate(scheme_of(other, access, p=chance), used, tolerance=0.05)
    scheme = scheme_of(rule, OverTheAir(), p=p, snr_db=snr_db)
    assert same(evaluate(scheme, used, tolerance=0.02), evaluate(scheme, make_bank(), tolerance=0.02))


@rules
@combinations
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_progress_never_falls_and_ends_at_the_total(
    make_bank: MakeBank, monkeypatch: pytest.MonkeyPatch, rule: Rule, access: Access, p: float
) -> None:
    calls: list[tuple[int, int]] = []
    scheme = scheme_of(rule, access, p=p)
    evaluate(scheme, make_bank(), tolerance=1.0, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (60, 60)
    small_blocks(monkeypatch)
    calls.clear()
    evaluate(scheme, make_bank(), tolerance=1.0, progress=lambda done, total: calls.append((done, total)))
    assert len(calls) > 1
    assert calls == sorted(calls)
    assert calls[-1] == (60, 60)


def permuted(bank: ScoreBank, *, clients: np.ndarray | None = None, classes: np.ndarray | None = None) -> ScoreBank:
    """The bank with its clients in another order, and class `classes[j]` renamed to j."""
    client = slice(None) if clients is None else clients
    order = np.arange(bank.classes) if classes is None else classes
    renamed = np.argsort(order)
    assert bank.val_scores is not None
    assert bank.val_labels is not None
    return ScoreBank(
        bank.test_scores[client][..., order],
        renamed[bank.test_labels],
        bank.val_scores[client][..., order],
        renamed[bank.val_labels],
    )


@rules
@combinations
@pytest.mark.parametrize(("p", "snr_db"), [(1.0, 0.0), (0.5, 0.0), (1.0, math.inf), (0.5, math.inf)])
def test_permuting_clients_changes_nothing(
    make_bank: MakeBank, rule: Rule, access: Access, p: float, snr_db: float
) -> None:
    bank = make_bank(queries=200)
    scheme = scheme_of(rule, access, p=p, snr_db=snr_db)
    before = evaluate(scheme, bank, tolerance=0.01)
    after = evaluate(scheme, permuted(bank, clients=np.array([3, 0, 4, 2, 1])), tolerance=0.01)
    drawn = 4.0 * math.hypot(before.macro_f1_se, after.macro_f1_se)
    assert after.macro_f1 == pytest.approx(before.macro_f1, abs=drawn + ERROR)
    if not is_drawn(scheme):
        np.testing.assert_allclose(after.per_class_f1, before.per_class_f1, rtol=0, atol=ERROR)
        assert after.macro_f1_std == pytest.approx(before.macro_f1_std, abs=ERROR)
        assert after.channel_noise_variance == pytest.approx(before.channel_noise_variance)


@rules
@combinations
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_permuting_classes_permutes_the_results(make_bank: MakeBank, rule: Rule, access: Access, p: float) -> None:
    bank, order = make_bank(queries=200), np.array([2, 0, 3, 1])
    scheme = scheme_of(rule, access, p=p, snr_db=0.0)
    before = evaluate(scheme, bank, tolerance=0.01)
    after = evaluate(scheme, permuted(bank, classes=order), tolerance=0.01)
    for name in ("per_class_f1", "per_class_f1_std", "hits", "decided"):  # the same sets are drawn in the same order
        np.testing.assert_allclose(getattr(after, name), getattr(before, name)[order], rtol=1e-5, err_msg=name)
    assert after.macro_f1 == pytest.approx(before.macro_f1, abs=ERROR)


@rules
@combinations
@pytest.mark.parametrize("p", [1.0, 0.3])
def test_one_client_alone_gives_its_own_answers(make_bank: MakeBank, rule: Rule, access: Access, p: float) -> None:
    """Empty rounds are drawn again, so a lone client always answers."""
    bank = make_bank(clients=1, queries=50)
    estimate = evaluate(scheme_of(rule, access, p=p, snr_db=math.inf), bank)
    assert estimate.macro_f1 == pytest.approx(macro_f1(bank.test_labels, bank.test_scores[0].argmax(axis=1), 4))
    assert estimate.draws == 0


@rules
@combinations
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_two_classes_and_a_client_that_never_votes_for_one_work(
    make_bank: MakeBank, rule: Rule, access: Access, p: float
) -> None:
    bank = make_bank(clients=3, queries=40, classes=2)
    scores = bank.test_scores.copy()
    scores[0] = [1.0, 0.0]
    biased = replace(bank, test_scores=scores)
    for snr_db in (-30.0, 10.0, math.inf):
        estimate = evaluate(scheme_of(rule, access, p=p, snr_db=snr_db), biased, tolerance=0.01)
        assert 0.0 < estimate.macro_f1 < 1.0
        assert estimate.decided.sum() == pytest.approx(40.0)


@rules
@combinations
@pytest.mark.parametrize("p", [1.0, 0.5])
@pytest.mark.parametrize("snr_db", [10.0, math.inf])
def test_a_class_that_never_occurs_and_nobody_decides_has_f1_zero(
    make_bank: MakeBank, rule: Rule, access: Access, p: float, snr_db: float
) -> None:
    bank = make_bank(clients=3, queries=40, classes=3)
    scores = np.concatenate([bank.test_scores, np.zeros_like(bank.test_scores[..., :1])], axis=2)
    wider = ScoreBank(scores, bank.test_labels, scores, bank.test_labels)
    estimate = evaluate(scheme_of(rule, access, p=p, snr_db=snr_db), wider, tolerance=0.01)
    assert estimate.per_class_f1[3] == 0.0
    assert estimate.macro_f1 == pytest.approx(estimate.per_class_f1[:3].sum() / 4.0)
    assert np.isfinite(estimate.macro_f1_std)


@pytest.mark.parametrize("snr_db", [-30.0, -20.0])
def test_drowned_in_noise_every_class_is_decided_alike(make_bank: MakeBank, snr_db: float) -> None:
    """A vote's mean power over 4 classes is 1/4, so 3 votes lie 6 sqrt(snr) standard deviations above none."""
    bank = make_bank(clients=3, queries=80)
    rows = decisions(scheme_of(MajorityVote(), OverTheAir(), snr_db=snr_db), bank).probabilities
    most = 6.0 * 10.0 ** (snr_db / 20.0) / math.sqrt(2.0 * math.pi)  # no P moves faster than phi(0)
    assert 0.0 < np.abs(rows - 0.25).max() <= most


@pytest.mark.parametrize("tolerance", [0.0, -1e-3, math.nan])
def test_a_tolerance_that_is_not_positive_is_refused_in_one_line(make_bank: MakeBank, tolerance: float) -> None:
    with pytest.raises(ValueError, match="tolerance must be > 0, got") as refused:
        evaluate(scheme_of(BeliefSum(), OverTheAir(), p=0.5), make_bank(), tolerance=tolerance)
    assert "\n" not in str(refused.value)


def test_best_client_without_validation_scores_is_refused(make_bank: MakeBank) -> None:
    bank = replace(make_bank(), val_scores=None, val_labels=None)
    with pytest.raises(ValueError, match="validation"):
        evaluate(scheme_of(MajorityVote(), BestClient()), bank)


def test_costs_are_those_of_the_link(make_bank: MakeBank) -> None:
    bank = make_bank(clients=5, classes=4)
    scheme = scheme_of(MajorityVote(), Orthogonal(), p=0.5, epsilon=1.0)
    estimate, link = evaluate(scheme, bank, tolerance=0.05), scheme.link(bank)
    assert (estimate.sigma, estimate.accountant) == (link.sigma, "paper")
    assert estimate.channel_noise_variance == link.channel_noise_variance
    assert estimate.channel_uses == pytest.approx(4.0 * 5.0 * 0.5 / (1.0 - 0.5**5))


@pytest.mark.parametrize("access", plugins(Access).values(), ids=plugins(Access))
@pytest.mark.parametrize("p", [1e-9, 0.4, 1.0])
@pytest.mark.parametrize("lost", [0, 2])
def test_the_noise_of_the_sum_is_that_of_any_set_unless_it_depends_on_the_set(
    make_bank: MakeBank, access: type[Access], p: float, lost: int
) -> None:
    lost = lost if access.covers_lost else 0
    p = p if access.fixed_noise and (lost == 0 or access.always_on_air) else 1.0
    scheme = Scheme(access=access(), privacy=Privacy(epsilon=1.0, lost=lost), participation=p)
    link = scheme.link(make_bank(clients=5))
    present = link.participation.draw(20, np.random.default_rng(4))
    np.testing.assert_allclose(scheme.access.noise_variance(present, link), noise_std(scheme, link) ** 2, rtol=1e-13)


# --- one row at a time, and a link that was fixed before


@combinations
@rules
@pytest.mark.parametrize("p", [1.0, 0.6])
def test_answer_probabilities_are_the_mean_over_many_drawn_sets(
    rule: Rule, access: Access, p: float, make_bank: MakeBank
) -> None:
    bank = make_bank(queries=6)
    scheme = scheme_of(rule, access, p=p, epsilon=2.0)
    link = scheme.link(bank)
    rows = answer_probabilities(scheme, link, bank.test_scores[link.roster])
    assert is_exact(scheme, link)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0, atol=1e-6)
    draws = 4000
    drawn = decisions(scheme, bank, draws=draws, seed=1).probabilities
    tolerance = 4.0 * 0.5 / math.sqrt(draws) if is_drawn(scheme) else 1e-12
    np.testing.assert_allclose(rows, drawn, atol=tolerance)
    alone = answer_probabilities(scheme, link, bank.test_scores[link.roster, 2:3])
    np.testing.assert_allclose(alone, rows[2:3], atol=ERROR)


def test_evaluating_over_a_given_link_uses_its_power_and_not_the_banks_own(make_bank: MakeBank) -> None:
    confident, doubtful = make_bank(skill=8.0), make_bank(skill=0.5, seed=3)
    scheme = scheme_of(BeliefSum(), OverTheAir(), snr_db=0.0)
    link = scheme.link(confident)
    over = evaluate(scheme, doubtful, link=link)
    assert (
        over.channel_noise_variance == link.channel_noise_variance != evaluate(scheme, doubtful).channel_noise_variance
    )
    expected = DenseTally.of(answer_probabilities(scheme, link, doubtful.test_scores), doubtful.test_labels)
    assert over.accuracy == pytest.approx(summarise(expected).accuracy, abs=ERROR)
    assert evaluate(scheme, doubtful, link=scheme.link(doubtful)).accuracy == evaluate(scheme, doubtful).accuracy
