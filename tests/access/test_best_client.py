"""Best client: the one that does best on validation answers alone."""

from collections.abc import Callable

import numpy as np
import pytest

from airchoir import (
    Awgn,
    BeliefSum,
    BestClient,
    MajorityVote,
    OverTheAir,
    Privacy,
    Rayleigh,
    Scheme,
    ScoreBank,
    evaluate,
    infer,
)
from airchoir.access.best_client import best_client

MakeBank = Callable[..., ScoreBank]


def says(*classes: int, of: int = 3) -> np.ndarray:
    """The scores of a client that is sure of these classes."""
    return np.eye(of, dtype="float32")[list(classes)]


def roster(*clients: np.ndarray, labels: list[int]) -> list[int]:
    scores, truth = np.stack(clients), np.array(labels)
    return BestClient().roster(ScoreBank(scores, truth, scores, truth)).tolist()


def test_the_client_that_errs_least_is_chosen() -> None:
    labels = [0, 1, 2, 0]
    assert roster(says(1, 1, 2, 0), says(0, 1, 2, 0), says(0, 0, 0, 0), labels=labels) == [1]


def test_macro_f1_decides_and_not_accuracy() -> None:
    labels = [0, 0, 0, 0, 0, 0, 1, 2]
    lazy = says(0, 0, 0, 0, 0, 0, 0, 0)  # accuracy 6/8; F1 = 12/14, 0, 0
    keen = says(0, 0, 0, 1, 1, 2, 1, 2)  # accuracy 5/8; F1 = 6/9, 2/4, 2/3
    assert roster(lazy, keen, labels=labels) == [1]


def test_equally_good_clients_are_decided_by_the_lowest_index() -> None:
    labels = [0, 1, 2]
    assert roster(says(0, 0, 0), says(0, 1, 1), says(0, 1, 1), says(0, 0, 1), labels=labels) == [1]
    assert roster(says(0, 1, 2), says(0, 1, 2), labels=labels) == [0]


def test_validation_decides_and_not_the_test_set() -> None:
    labels = np.array([0, 1, 2])
    good, bad = says(0, 1, 2), says(1, 2, 0)
    bank = ScoreBank(np.stack([good, bad]), labels, np.stack([bad, good]), labels)
    assert BestClient().roster(bank).tolist() == [1]
    labels_out = infer(Scheme(access=BestClient(), channel=Awgn(snr_db=np.inf)), bank, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(labels_out, [1, 2, 0])  # its test answers, wrong as they are


def test_the_choice_agrees_with_scikit_learns_macro_f1(make_bank: MakeBank) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    bank = make_bank(clients=9, queries=40, classes=4, skill=1.0)
    f1 = [
        metrics.f1_score(bank.val_labels, scores.argmax(axis=1), labels=range(4), average="macro", zero_division=0)
        for scores in bank.val_scores
    ]
    assert best_client(bank.val_scores, bank.val_labels) == int(np.argmax(f1))


def test_a_bank_without_validation_scores_has_no_best_client(make_bank: MakeBank) -> None:
    made = make_bank()
    bank = ScoreBank(made.test_scores, made.test_labels)
    for ask in (lambda s: s.link(bank), lambda s: evaluate(s, bank)):
        with pytest.raises(ValueError, match=r"\A[^\n]*no validation scores[^\n]*; use another access\Z"):
            ask(Scheme(access=BestClient()))


@pytest.mark.parametrize("rule", [BeliefSum(), MajorityVote()])
@pytest.mark.parametrize(("channel", "probability"), [(Awgn(), 1.0), (Awgn(), 0.3), (Rayleigh(), 0.3)])
@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_it_is_exactly_over_the_air_with_that_client_alone(
    make_bank: MakeBank, rule: object, channel: object, probability: float, epsilon: float
) -> None:
    bank = make_bank(clients=5, queries=300)
    best = int(BestClient().roster(bank)[0])
    alone = ScoreBank(bank.test_scores[[best]], bank.test_labels)
    privacy = Privacy(epsilon=epsilon, delta=0.1)
    answers, links = [], []
    for access, own in ((BestClient(), bank), (OverTheAir(), alone)):
        scheme = Scheme(rule, access, channel, privacy, participation=probability)  # type: ignore[arg-type]
        links.append(scheme.link(own))
        answers.append(infer(scheme, own, rng=np.random.default_rng(4)))
    assert links[0].sigma == links[1].sigma
    assert links[0].amplitudes == pytest.approx(links[1].amplitudes, rel=1e-13)
    assert links[0].channel_uses == links[1].channel_uses == 4
    np.testing.assert_array_equal(*answers)


def test_it_answers_every_query_however_rarely_it_would_take_part() -> None:
    present = BestClient().participation(20, 0.01).draw(500, np.random.default_rng(0))
    assert present.shape == (1, 500)
    assert present.all()


def test_its_sum_carries_sigma_squared_plus_v_and_it_adds_the_full_sigma(make_bank: MakeBank) -> None:
    link = Scheme(access=BestClient(), privacy=Privacy(epsilon=1.0), participation=0.3).link(make_bank())
    present = np.ones((1, 1), dtype=bool)
    v = link.receiver_noise_variance / link.amplitudes[0] ** 2
    assert BestClient().client_noise_std(link, present)[0] == link.sigma
    assert BestClient().noise_variance(present, link)[0] == pytest.approx(link.sigma**2 + v, rel=1e-14)
    assert BestClient().hidden(link.participation).certain
