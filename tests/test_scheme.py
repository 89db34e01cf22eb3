"""Scheme and infer: sigma, noise and cost of every access by hand, and one query in a straight line."""

import math
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import airchoir as ac
from airchoir.access import Access
from airchoir.channels import Channel
from airchoir.rules import Rule

MakeBank = Callable[..., ac.ScoreBank]
LABELS = np.array([0, 1])
# Mean squares over queries and classes: (1 + 0 + 1/4 + 1/4)/4, (1/16 + 9/16 + 1/16 + 9/16)/4, (1 + 0 + 0 + 1)/4.
BELIEFS = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.25, 0.75], [0.75, 0.25]], [[1.0, 0.0], [0.0, 1.0]]], dtype="float32")
BELIEF_POWER = (1.5 / 4, 1.25 / 4, 2.0 / 4)
VOTE_POWER = (0.5, 0.5, 0.5)  # one of two classes gets 1
RULES = [
    pytest.param(ac.BeliefSum(), BELIEF_POWER, id="belief"),
    pytest.param(ac.MajorityVote(), VOTE_POWER, id="vote"),
]
# Client 1 is never wrong on validation, so it is the best.
VAL = np.array([[[0.0, 1.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]], dtype="float32")
BANK = ac.ScoreBank(BELIEFS, LABELS, VAL, LABELS)
SIGMA = 3.6411148742158  # Theorem 1, epsilon 1, delta 1e-3, sensitivity sqrt 2, by 40-digit arithmetic


def cost(channel: Channel, probability: float) -> float:
    """E1(t) / exp(-t) at t = -log p, or 1 without fading."""
    if isinstance(channel, ac.Awgn):
        return 1.0
    return float(mpmath.e1(-mpmath.log(probability)) / probability)


CHANNELS = [
    pytest.param(ac.Awgn(snr_db=10.0), 1.0, id="awgn, everyone"),
    pytest.param(ac.Awgn(snr_db=-3.0), 0.4, id="awgn, some"),
    pytest.param(ac.Rayleigh(snr_db=7.0), 0.4, id="rayleigh"),
]


@pytest.mark.parametrize(("rule", "power"), RULES)
@pytest.mark.parametrize(("channel", "probability"), CHANNELS)
@pytest.mark.parametrize("private", [False, True])
class TestNoiseByHand:
    """v = power / snr, power_i = (mean of x_i^2 + E[s^2]) times what inverting the gain costs."""

    def scheme(self, rule: Rule, access: Access, channel: Channel, probability: float, private: bool) -> ac.Scheme:
        privacy = ac.Privacy(epsilon=1.0, delta=1e-3) if private else ac.NoPrivacy()
        return ac.Scheme(rule, access, channel, privacy, participation=probability)

    def test_over_the_air_the_hungriest_of_all_clients_sets_v(
        self, rule: Rule, power: tuple[float, ...], channel: Channel, probability: float, private: bool
    ) -> None:
        link = self.scheme(rule, ac.OverTheAir(), channel, probability, private).link(BANK)
        if private and probability == 1.0:
            assert link.sigma == pytest.approx(SIGMA, rel=1e-12)
        shared = link.sigma**2 * (1.0 - (1.0 - probability) ** 3) / (3 * probability)
        v = (max(power) + shared) * cost(channel, probability) / 10 ** (channel.snr_db / 10)
        assert link.channel_noise_variance == pytest.approx(v, rel=1e-12)
        np.testing.assert_allclose(link.slot_noise_variance, [v], rtol=1e-12)
        assert link.channel_uses == 2

    def test_orthogonal_every_client_sets_its_own_v_and_those_present_add_up(
        self, rule: Rule, power: tuple[float, ...], channel: Channel, probability: float, private: bool
    ) -> None:
        link = self.scheme(rule, ac.Orthogonal(), channel, probability, private).link(BANK)
        sigma = SIGMA if private else 0.0
        assert link.sigma == pytest.approx(sigma, rel=1e-12)
        snr = 10 ** (channel.snr_db / 10)
        v = [(own + sigma**2) * cost(channel, probability) / snr for own in power]
        inclusion = probability / (1.0 - (1.0 - probability) ** 3)
        np.testing.assert_allclose(link.slot_noise_variance[link.slots], v, rtol=1e-12)
        assert link.channel_noise_variance == pytest.approx(inclusion * sum(v), rel=1e-12)
        assert link.channel_uses == pytest.approx(2 * 3 * inclusion, rel=1e-14)

    def test_the_best_client_sets_v_alone_with_the_full_sigma(
        self, rule: Rule, power: tuple[float, ...], channel: Channel, probability: float, private: bool
    ) -> None:
        link = self.scheme(rule, ac.BestClient(), channel, probability, private).link(BANK)
        sigma = SIGMA if private else 0.0
        assert link.roster.tolist() == [1]
        assert link.sigma == pytest.approx(sigma, rel=1e-12)
        v = (power[1] + sigma**2) * cost(channel, probability) / 10 ** (channel.snr_db / 10)
        assert link.channel_noise_variance == pytest.approx(v, rel=1e-12)
        assert link.channel_uses == 2


@pytest.mark.parametrize(
    ("probability", "over_the_air"),
    [(1.0, 5.9745981819573), (0.5, 3.9989322364912), (0.1, 2.1181804281327)],  # Theorems 1 and 2, 40-digit arithmetic
)
def test_only_over_the_air_is_the_noise_amplified_by_sampling(
    make_bank: MakeBank, probability: float, over_the_air: float
) -> None:
    bank = make_bank(clients=20, queries=10)
    privacy = ac.Privacy(epsilon=1.0, delta=1e-6)

    def sigma(access: Access) -> float:
        return ac.Scheme(access=access, privacy=privacy, participation=probability).link(bank).sigma

    assert sigma(ac.OverTheAir()) == pytest.approx(over_the_air, rel=1e-12)
    assert sigma(ac.Orthogonal()) == pytest.approx(5.9745981819573, rel=1e-12)
    assert sigma(ac.BestClient()) == pytest.approx(5.9745981819573, rel=1e-12)


def test_clients_that_may_be_lost_void_the_amplification_but_never_inflate_sigma(make_bank: MakeBank) -> None:
    privacy = ac.Privacy(epsilon=1.0, delta=1e-6, lost=2)
    for probability in (1.0, 0.5):
        link = ac.Scheme(privacy=privacy, participation=probability).link(make_bank(clients=20, queries=10))
        assert link.sigma == pytest.approx(5.9745981819573, rel=1e-12)
        assert link.lost == 2


def test_lost_clients_cost_power_because_the_others_add_more_noise() -> None:
    privacy = ac.Privacy(epsilon=1.0, delta=1e-3, lost=2)
    link = ac.Scheme(ac.MajorityVote(), ac.OverTheAir(), ac.Awgn(snr_db=0.0), privacy).link(BANK)
    assert link.channel_noise_variance == pytest.approx(0.5 + SIGMA**2 / (3 - 2), rel=1e-12)


@pytest.mark.parametrize("snr_db", [-30.0, 0.0, 10.0, math.inf])
def test_the_noise_falls_by_ten_for_every_ten_decibels(snr_db: float) -> None:
    reference = ac.Scheme(channel=ac.Awgn(snr_db=0.0)).link(BANK).channel_noise_variance
    noise = ac.Scheme(channel=ac.Awgn(snr_db=snr_db)).link(BANK).channel_noise_variance
    assert noise == pytest.approx(reference * 10 ** (-snr_db / 10), rel=1e-13)
    assert (noise == 0.0) == (snr_db == math.inf)


@pytest.mark.parametrize("rule", [ac.BeliefSum(), ac.MajorityVote()])
def test_power_is_a_mean_over_the_whole_test_set_whatever_the_blocks(
    make_bank: MakeBank, monkeypatch: pytest.MonkeyPatch, rule: Rule
) -> None:
    whole = ac.Scheme(rule).link(make_bank(queries=50))
    monkeypatch.setattr("airchoir.bank._BLOCK_BYTES", 8 * 5 * 4 * 7)  # seven queries of five clients, four classes
    bank = make_bank(queries=50)
    assert len(list(bank.blocks())) == 8
    np.testing.assert_allclose(ac.Scheme(rule).link(bank).amplitudes, whole.amplitudes, rtol=1e-13)


def test_two_rules_on_one_bank_do_not_share_their_power() -> None:
    bank = ac.ScoreBank(BELIEFS, LABELS)
    belief, vote = (ac.Scheme(rule).link(bank).amplitudes[0] for rule in (ac.BeliefSum(), ac.MajorityVote()))
    alone = ac.Scheme(ac.MajorityVote()).link(ac.ScoreBank(BELIEFS[:2], LABELS)).amplitudes[0]
    other = ac.Scheme(ac.BeliefSum()).link(ac.ScoreBank(BELIEFS[:2], LABELS)).amplitudes[0]
    assert vote == alone
    assert belief != other


# --- infer


@pytest.mark.parametrize("access", [ac.OverTheAir(), ac.Orthogonal(), ac.AlwaysOn(), ac.BestClient()])
def test_a_bank_that_has_seen_other_schemes_gives_the_same_link(make_bank: MakeBank, access: Access) -> None:
    """What a bank remembers of a link depends on all of the scheme but the receiver's noise."""
    channels: list[Channel] = [ac.Awgn(10.0), ac.Awgn(-3.0), ac.Awgn(math.inf)]
    if not access.always_on_air:
        channels += [ac.Rayleigh(10.0), ac.Rayleigh(4.0), ac.Rayleigh(10.0, threshold=0.3)]
    known = make_bank(seed=7)
    for channel in channels:
        for rule in (ac.MajorityVote(), ac.BeliefSum()):
            for privacy in (ac.NoPrivacy(), ac.Privacy(epsilon=1.0), ac.Privacy(epsilon=1.0, delta=1e-5)):
                for participation in (0.5, 0.7):
                    scheme = ac.Scheme(rule, access, channel, privacy, participation)
                    seen, fresh = vars(scheme.link(known)), vars(scheme.link(make_bank(seed=7)))
                    assert seen.keys() == fresh.keys()
                    for name, value in fresh.items():
                        np.testing.assert_array_equal(seen[name], value, err_msg=name)


def test_infer_answers_every_query_with_a_label(make_bank: MakeBank) -> None:
    bank = make_bank(queries=33, classes=3)
    labels = ac.infer(ac.Scheme(), bank, rng=np.random.default_rng(0))
    assert labels.shape == (33,)
    assert labels.dtype == np.int64
    assert set(labels) <= {0, 1, 2}


@pytest.mark.parametrize("access", [ac.OverTheAir(), ac.Orthogonal(), ac.BestClient()])
@pytest.mark.parametrize("channel", [ac.Awgn(), ac.Rayleigh()])
def test_infer_depends_on_the_generator_alone(make_bank: MakeBank, access: Access, channel: Channel) -> None:
    bank = make_bank(queries=200)
    scheme = ac.Scheme(ac.BeliefSum(), access, channel, ac.Privacy(epsilon=1.0, delta=0.1), participation=0.5)
    first, again, other = (ac.infer(scheme, bank, rng=np.random.default_rng(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_one_generator_gives_fresh_noise_and_fresh_sets_every_time(make_bank: MakeBank) -> None:
    bank, rng = make_bank(queries=200), np.random.default_rng(1)
    scheme = ac.Scheme(channel=ac.Awgn(snr_db=math.inf), participation=0.3)
    assert (ac.infer(scheme, bank, rng=rng) != ac.infer(scheme, bank, rng=rng)).any()


NOISELESS = [pytest.param(ac.Awgn(snr_db=math.inf), 1.0, id="awgn")]
# Nobody is ever left out at this p, so that inverted gains must not break a tie either.
NOISELESS.append(pytest.param(ac.Rayleigh(snr_db=math.inf), 1.0 - 1e-12, id="rayleigh"))


@pytest.mark.parametrize(("channel", "probability"), NOISELESS)
@pytest.mark.parametrize("access", [ac.OverTheAir(), ac.Orthogonal()])
@pytest.mark.parametrize("rule", [ac.BeliefSum(), ac.MajorityVote()])
def test_without_noise_the_answer_is_the_argmax_of_the_sum(
    make_bank: MakeBank, rule: Rule, access: Access, channel: Channel, probability: float
) -> None:
    bank = make_bank(clients=7, queries=200, skill=0.0)
    scheme = ac.Scheme(rule, access, channel, participation=probability)
    sums = np.zeros((200, 4))
    for client in range(7):
        sums += rule.encode(bank.test_scores[[client]])[0]
    expected = [int(np.flatnonzero(row >= row.max() - 1e-9)[0]) for row in sums]
    np.testing.assert_array_equal(ac.infer(scheme, bank, rng=np.random.default_rng(0)), expected)


@pytest.mark.parametrize(("channel", "probability"), NOISELESS)
@pytest.mark.parametrize("access", [ac.OverTheAir(), ac.Orthogonal()])
@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    rows=st.lists(st.lists(st.integers(0, 1000), min_size=4, max_size=4).filter(any), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_a_perfect_tie_goes_to_the_first_class_whatever_rounding_does(
    rows: list[list[int]], order: object, access: Access, channel: Channel, probability: float
) -> None:
    """Every client has three others who say the same of the next classes: in the sum all classes are equal."""
    weights = [np.roll(row, shift) for row in rows for shift in range(4)]
    order.shuffle(weights)  # type: ignore[attr-defined]
    scores = np.array([[row / row.sum()] for row in weights], dtype="float32")
    bank = ac.ScoreBank(scores, np.array([0]))
    scheme = ac.Scheme(ac.BeliefSum(), access, channel, participation=probability)
    assert ac.infer(scheme, bank, rng=np.random.default_rng(0)).tolist() == [0]


@pytest.mark.parametrize("access", [ac.OverTheAir(), ac.Orthogonal(), ac.BestClient()])
@pytest.mark.parametrize("rule", [ac.BeliefSum(), ac.MajorityVote()])
def test_one_client_and_two_classes_work(rule: Rule, access: Access) -> None:
    scores = np.array([[[0.25, 0.75], [0.75, 0.25], [0.5, 0.5]]], dtype="float16")
    labels = np.array([1, 1, 1])
    bank = ac.ScoreBank(scores, labels, scores, labels)
    scheme = ac.Scheme(rule, access, ac.Awgn(snr_db=math.inf))
    np.testing.assert_array_equal(ac.infer(scheme, bank, rng=np.random.default_rng(0)), [1, 0, 0])


def test_noise_drowns_the_answer_at_a_low_snr_and_leaves_it_at_a_high_one(make_bank: MakeBank) -> None:
    bank = make_bank(clients=5, queries=2000)
    clean = ac.infer(ac.Scheme(channel=ac.Awgn(snr_db=math.inf)), bank, rng=np.random.default_rng(0))
    drowned = ac.infer(ac.Scheme(channel=ac.Awgn(snr_db=-100.0)), bank, rng=np.random.default_rng(0))
    agreement = (clean == drowned).mean()
    assert abs(agreement - 0.25) < 4.0 * math.sqrt(0.25 * 0.75 / 2000)


# --- what a scheme refuses


@pytest.mark.parametrize("participation", [0.0, -0.1, 1.0000001, math.nan, math.inf])
def test_a_participation_outside_zero_to_one_is_refused(participation: float) -> None:
    with pytest.raises(ValueError, match=r"\Aparticipation must be in \(0, 1\], got \S+; [^\n]+\Z"):
        ac.Scheme(participation=participation)


def test_the_defaults_are_the_papers() -> None:
    scheme = ac.Scheme()
    assert scheme == ac.Scheme(ac.MajorityVote(), ac.OverTheAir(), ac.Awgn(10.0), ac.NoPrivacy(), 1.0)
    assert scheme.privacy.delta == 1e-6


def test_the_example_of_the_documentation_runs_as_written(tmp_path: Path, make_bank: MakeBank) -> None:
    path = tmp_path / "seed-0.safetensors"
    make_bank(clients=20, queries=300, classes=10).save(path)

    bank = ac.ScoreBank.load(path)
    scheme = ac.Scheme(
        rule=ac.MajorityVote(),
        access=ac.OverTheAir(),
        channel=ac.Awgn(snr_db=10.0),
        privacy=ac.Privacy(epsilon=1.0, delta=1e-6),
        participation=0.8,
    )
    exact = ac.evaluate(scheme, bank)
    repeated = ac.simulate(scheme, bank, repeats=200, seed=0)
    labels = ac.infer(scheme, bank, rng=np.random.default_rng(0))

    assert type(exact) is type(repeated) is ac.Estimate
    assert exact.macro_f1_se == exact.accuracy_se == 0.0
    assert exact.sigma == repeated.sigma == pytest.approx(5.2063885805671, rel=1e-12)  # Theorem 2, 40-digit arithmetic
    assert exact.channel_uses == repeated.channel_uses == 10
    assert abs(repeated.accuracy - exact.accuracy) < 4.0 * repeated.accuracy_se
    assert abs((labels == bank.test_labels).mean() - exact.accuracy) < 4.0 * exact.accuracy_std
