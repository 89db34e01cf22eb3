"""Energy: what is counted is what the literal clients transmit, and every number in every sentence is true."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from airchoir import (
    Awgn,
    BeliefSum,
    BestClient,
    CentredVote,
    MajorityVote,
    Orthogonal,
    OverTheAir,
    Privacy,
    Rayleigh,
    Scheme,
    ScoreBank,
)
from airchoir.access.always_on import AlwaysOn
from airchoir.experiments.choirs import Choir
from airchoir.experiments.energy import Energy, energy_per_query, mean_energy_db, noise_share

MakeBank = Callable[..., ScoreBank]
Numbers, Mean = Callable[[str], list[float]], Callable[..., float]
SMALL = Energy(snrs_db=(-10.0, 0.0, 20.0), epsilon=2.0, delta=1e-3, close=0.02)
PAPER = {
    "Best Client Model": (MajorityVote(), BestClient()),
    "Orthogonal Majority Voting": (MajorityVote(), Orthogonal()),
    "Orthogonal Belief Summation": (BeliefSum(), Orthogonal()),
    "Majority Voting with OAC": (MajorityVote(), OverTheAir()),
    "Belief Summation with OAC": (BeliefSum(), OverTheAir()),
}


def transmitted(scheme: Scheme, bank: ScoreBank, repeats: int = 400) -> tuple[float, float]:
    """Energy per query over the receiver's noise, from literal transmissions, and its standard error."""
    rng, link = np.random.default_rng(5), scheme.link(bank)
    runs = []
    for _ in range(repeats):
        symbols = scheme.rule.encode(bank.test_scores[link.roster])
        present = link.participation.draw(bank.queries, rng)
        private = scheme.access.perturb(symbols, present, link, rng)
        on_air = scheme.access.on_air(present)
        gain = np.ones(on_air.shape)
        if isinstance(scheme.channel, Rayleigh):
            gain = -math.log(scheme.participation) + rng.standard_exponential(on_air.shape)
        power = (private * link.amplitudes[link.slots][:, None, None]) ** 2 / gain[:, :, None] * on_air[:, :, None]
        runs.append(power.sum() / bank.queries / link.receiver_noise_variance)
    return float(np.mean(runs)), float(np.std(runs) / math.sqrt(repeats))


@pytest.mark.parametrize("rule", [MajorityVote(), BeliefSum(), CentredVote()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("access", [OverTheAir(), Orthogonal(), BestClient(), AlwaysOn()], ids=lambda a: a.name)
@pytest.mark.parametrize("participation", [1.0, 0.4])
@pytest.mark.parametrize("epsilon", [2.0, math.inf])
def test_energy_is_what_the_literal_clients_transmit(
    make_bank: MakeBank, rule: BeliefSum, access: OverTheAir, participation: float, epsilon: float
) -> None:
    bank = make_bank(clients=5, queries=60, classes=3)
    scheme = Scheme(rule, access, Awgn(3.0), Privacy(epsilon, 1e-2), participation)
    found, error = transmitted(scheme, bank)
    assert abs(energy_per_query(scheme, bank) - found) <= 4 * error + 1e-9 * found


def test_under_fading_the_energy_includes_inverting_the_gains(make_bank: MakeBank) -> None:
    bank = make_bank(clients=5, queries=100, classes=3)
    scheme = Scheme(channel=Rayleigh(3.0), participation=0.5)
    found, error = transmitted(scheme, bank)
    assert abs(energy_per_query(scheme, bank) - found) <= 4 * error
    votes = energy_per_query(Scheme(channel=Awgn(3.0), participation=0.5), bank)
    assert energy_per_query(scheme, bank) == pytest.approx(votes, rel=1e-12)  # the budget is kept either way


def test_votes_of_everyone_spend_the_whole_budget(make_bank: MakeBank) -> None:
    bank = make_bank(clients=5, classes=3)
    for access, clients in ((OverTheAir(), 5), (Orthogonal(), 5), (BestClient(), 1)):
        scheme = Scheme(access=access, channel=Awgn(10.0), privacy=Privacy(1.0))
        assert energy_per_query(scheme, bank) == pytest.approx(3 * clients * 10.0, rel=1e-12)


def test_without_privacy_no_energy_is_noise_and_with_it_the_known_share(make_bank: MakeBank) -> None:
    bank = make_bank(clients=4, classes=3)
    choir = Choir("task", (), (bank, make_bank(clients=4, classes=3, seed=1)))
    assert noise_share(Scheme(), choir) == 0.0
    scheme = Scheme(privacy=Privacy(1.0))
    noise = scheme.link(bank).sigma ** 2 / 4
    assert noise_share(scheme, choir) == pytest.approx(noise / (noise + 1 / 3), rel=1e-12)


def scheme(method: str, epsilon: float, snr_db: float) -> Scheme:
    return Scheme(*PAPER[method], Awgn(snr_db), Privacy(epsilon, 1e-3))


def energy_db(choir: Choir, method: str, epsilon: float, snr_db: float) -> float:
    energies = [energy_per_query(scheme(method, epsilon, snr_db), bank) for bank in choir.banks]
    return 10 * math.log10(sum(energies) / len(energies))


def test_every_curve_is_energy_against_what_evaluate_says(two_tasks: list[Choir], mean: Mean) -> None:
    findings = SMALL.run(two_tasks)
    panels = iter(findings.figures[0].panels)
    for epsilon in (math.inf, 2.0):
        for choir in two_tasks:
            panel = next(panels)
            assert [curve.label for curve in panel.curves] == list(PAPER)
            for curve in panel.curves:
                wanted = [energy_db(choir, curve.label, epsilon, snr_db) for snr_db in SMALL.snrs_db]
                assert curve.x == pytest.approx(wanted, abs=1e-9)
                f1 = [mean(scheme(curve.label, epsilon, snr_db), choir) for snr_db in SMALL.snrs_db]
                assert curve.y == pytest.approx([100 * value for value in f1], rel=1e-12)
    choirs = {choir.task: choir for choir in two_tasks}
    for row in findings.rows:
        wanted = energy_db(choirs[row["task"]], row["method"], float(row["epsilon"]), row["snr_db"])
        assert row["energy_db"] == pytest.approx(wanted, abs=1e-9)


def test_every_number_in_every_sentence(two_tasks: list[Choir], mean: Mean, numbers: Numbers) -> None:
    unharmed, most, noise = SMALL.run(two_tasks).summary
    pair = ("Majority Voting with OAC", "Orthogonal Majority Voting")
    wanted = [2.0]
    for choir in two_tasks:
        for method in pair:
            f1 = [mean(scheme(method, math.inf, snr_db), choir) for snr_db in SMALL.snrs_db]
            first = next(i for i in range(3) if all(value >= max(f1) - 0.02 for value in f1[i:]))
            wanted.append(round(energy_db(choir, method, math.inf, SMALL.snrs_db[first]), 1))
    assert numbers(unharmed) == pytest.approx(wanted, abs=1e-9)

    wanted = [2.0]
    for choir in two_tasks:
        tops = [max(mean(scheme(method, 2.0, snr_db), choir) for snr_db in SMALL.snrs_db) for method in pair]
        wanted += [round(100 * top, 1) for top in tops]
    assert numbers(most) == wanted

    wanted = [2.0]
    for choir in two_tasks:
        sigma = scheme(pair[0], 2.0, 0.0).link(choir.banks[0]).sigma
        for power in (sigma**2 / choir.clients, sigma**2):
            wanted.append(round(100 * power / (power + 1 / choir.classes), 1))
    assert numbers(noise) == wanted


def test_a_best_that_is_never_steady_takes_more_than_this(two_tasks: list[Choir]) -> None:
    findings = Energy(snrs_db=(0.0,), close=-1.0).run(two_tasks[:1])
    assert findings.summary[0].count("more than this") == 2


def test_mean_energy_is_over_the_banks(make_bank: MakeBank) -> None:
    banks = tuple(make_bank(clients=3, seed=seed) for seed in range(3))
    belief = Scheme(BeliefSum(), privacy=Privacy(5.0))
    energies = [energy_per_query(belief, bank) for bank in banks]
    assert len(set(energies)) == 3
    assert mean_energy_db(belief, Choir("t", (), banks)) == pytest.approx(10 * math.log10(np.mean(energies)), abs=1e-12)
