"""AirVotingClassifier: VotingClassifier without noise, one keyed transmission per distinct row with it, and a full account."""

import copy
import math
import pickle
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

pytest.importorskip("sklearn", reason="the estimator needs airchoir[demo]")

from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_classification
from sklearn.ensemble import RandomForestClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import check_estimator

from airchoir import AirVotingClassifier, BudgetExceeded, Privacy, estimator
from airchoir.participation import Participation
from airchoir.privacy import NoPrivacy

SILENT = {"epsilon": math.inf, "snr_db": math.inf, "participation": 1.0}
ACCESSES = ("over-the-air", "orthogonal", "best-client", "always-on")
ITERATIONS = 2000


def choir(**options: Any) -> AirVotingClassifier:
    options = {"estimator": GaussianNB(), "n_clients": 5, "random_state": 0, **options}
    if "estimators" in options:
        del options["estimator"], options["n_clients"]
    return AirVotingClassifier(**options)


def overlapping(samples: int = 400, seed: int = 0, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        samples, n_features=6, n_informative=4, n_classes=classes, class_sep=0.6, random_state=seed
    )


@pytest.fixture(scope="module")
def noisy() -> tuple[AirVotingClassifier, np.ndarray]:
    """A choir with every kind of noise, and rows to ask it."""
    X, y = overlapping()
    return choir(epsilon=2.0, participation=0.6, voting="soft").fit(X[:200], y[:200]), X[200:]


# --- scikit-learn's own checks


@pytest.mark.parametrize("options", [{}, {"voting": "soft", "snr_db": math.inf}], ids=["hard", "soft"])
def test_scikit_learn_finds_nothing_to_complain_about(options: dict[str, Any]) -> None:
    model = AirVotingClassifier(estimator=LogisticRegression(), n_clients=3, **options)
    results = check_estimator(model, on_skip=None, on_fail=None)
    assert {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"} == {}
    assert len(results) > 50


# --- VotingClassifier, its nearest relative

DATA = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
    "blobs": overlapping,
}
CLIENTS = {
    "trees": DecisionTreeClassifier(max_depth=4),
    "neighbours": KNeighborsClassifier(4),
    "bayes": GaussianNB(var_smoothing=1e-3),
    "linear": make_pipeline(StandardScaler(), LogisticRegression(max_iter=ITERATIONS)),
}


def voting_of(models: list[Any], y: np.ndarray, voting: str) -> VotingClassifier:
    """scikit-learn's own on fitted models, which it cannot take: put together by hand."""
    twin = VotingClassifier([(str(i), model) for i, model in enumerate(models)], voting=voting)
    twin.estimators_, twin.le_ = models, LabelEncoder().fit(y)
    twin.classes_ = twin.le_.classes_
    return twin


@pytest.mark.slow
@pytest.mark.parametrize("access", ["over-the-air", "orthogonal", "always-on"])
@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("name", DATA)
def test_without_noise_it_predicts_what_voting_classifier_predicts(
    name: str, kind: str, voting: str, access: str
) -> None:
    X, y = DATA[name](return_X_y=True) if name != "blobs" else overlapping()
    train = np.arange(len(y)) % 3 > 0
    model = choir(estimator=CLIENTS[kind], n_clients=4, voting=voting, access=access, **SILENT).fit(X[train], y[train])
    twin = voting_of(model.estimators_, y, voting)
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))
    again = choir(estimators=model.estimators_, prefit=True, voting=voting, access=access, **SILENT).fit(
        X[train], y[train]
    )
    np.testing.assert_array_equal(again.predict(X), twin.predict(X))
    assert again.estimators_ == model.estimators_, "fitted models are taken as they are"


def test_ties_go_to_the_first_label_in_sorted_order() -> None:
    X, y = np.array([[0.0], [1.0]]), np.array(["b", "a"])
    models = [Constant("b"), Constant("a")]
    model = choir(estimators=models, prefit=True, **SILENT).fit(X, y)
    assert model.predict(X).tolist() == ["a", "a"]


class Constant(ClassifierMixin, BaseEstimator):
    """Always answers the same; knows `predict` alone."""

    def __init__(self, label: Any = 0) -> None:
        self.label = label

    def fit(self, X: Any, y: Any) -> "Constant":
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.label)


# --- shards


class Recorder(GaussianNB):
    def fit(self, X: Any, y: Any) -> "Recorder":
        self.rows_, self.labels_ = np.asarray(X)[:, 0], np.asarray(y)
        return super().fit(X, y)


@pytest.mark.parametrize("access", ACCESSES)
def test_clients_hold_disjoint_shards_stratified_by_class(access: str) -> None:
    _, y = overlapping()
    X = np.column_stack([np.arange(len(y)), np.random.default_rng(0).normal(size=len(y))])
    model = choir(estimator=Recorder(), n_clients=7, access=access).fit(X, y)
    held = [client.rows_.astype(int) for client in model.estimators_]
    together = np.concatenate(held)
    assert len(set(together)) == len(together), "disjoint"
    assert len(together) == (len(y) - 40 if access == "best-client" else len(y)), (
        "a tenth is held out to choose the best"
    )
    counts = np.array([np.bincount(client.labels_, minlength=3) for client in model.estimators_])
    assert (np.ptp(counts, axis=0) <= 1).all()
    assert np.ptp(counts.sum(axis=1)) <= 1
    for client in model.estimators_:
        np.testing.assert_array_equal(client.labels_, y[client.rows_.astype(int)])


def test_named_estimators_are_fitted_one_per_client() -> None:
    X, y = load_iris(return_X_y=True)
    pairs = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier()), ("plain", KNeighborsClassifier(3))]
    model = choir(estimators=pairs, voting="soft").fit(X, y)
    assert list(model.named_estimators_) == ["bayes", "tree", "plain"]
    assert [type(each) for each in model.estimators_] == [GaussianNB, DecisionTreeClassifier, KNeighborsClassifier]
    assert not hasattr(pairs[0][1], "classes_"), "what was given stays unfitted"
    assert model.set_params(tree__max_depth=1).get_params()["tree__max_depth"] == 1
    assert choir(estimator=GaussianNB(var_smoothing=0.5)).get_params()["estimator__var_smoothing"] == 0.5
    plain = choir(estimators=[make_pipeline(StandardScaler(), GaussianNB())] * 2)
    assert set(plain.get_params()) == set(plain.get_params(deep=False))
    assert len(plain.set_params(voting="soft").fit(X, y).estimators_) == 2


def test_clients_open_random_states_differ_and_repeat() -> None:
    X, y = overlapping()
    forest = make_pipeline(RandomForestClassifier(3))
    one, other = (choir(estimator=forest).fit(X, y) for _ in range(2))
    states = [each[0].random_state for each in one.estimators_]
    assert len(set(states)) == len(states)
    assert states == [each[0].random_state for each in other.estimators_]
    fixed = choir(estimator=RandomForestClassifier(3, random_state=7)).fit(X, y)
    assert {each.random_state for each in fixed.estimators_} == {7}


def test_clients_fitted_at_once_are_the_same() -> None:
    X, y = overlapping()
    np.testing.assert_array_equal(choir().fit(X, y).predict(X), choir(n_jobs=2).fit(X, y).predict(X))


# --- labels and classes


@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_a_client_may_never_have_seen_a_class(voting: str) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    parts = [(y != missing) & (np.arange(len(y)) % 2 == 0) for missing in range(3)]
    models = [GaussianNB().fit(X[part], names[part]) for part in parts]
    model = choir(estimators=models, prefit=True, voting=voting, **SILENT).fit(X[:10], names[:10])
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.score(X, names) > 0.8
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    received = model.transform(X)
    said = sum(
        (model_.predict_proba(X) if voting == "soft" else model_.predict(X)[:, None] == model_.classes_)
        @ (model_.classes_[:, None] == model.classes_)
        for model_ in models
    )
    np.testing.assert_allclose(received / received.sum(axis=1, keepdims=True), said / 3.0, atol=1e-12)


def test_fewer_samples_of_a_class_than_clients() -> None:
    X, y = load_iris(return_X_y=True)
    few = np.concatenate([np.arange(102)])
    model = choir(voting="soft", **SILENT).fit(X[few], y[few])
    assert sorted(len(each.classes_) for each in model.estimators_) == [2, 2, 2, 3, 3]
    assert model.predict(X).shape == (150,)


def test_hard_voting_needs_predict_alone_and_soft_voting_says_what_it_lacks() -> None:
    X, y = load_iris(return_X_y=True)
    assert choir(estimator=RidgeClassifier(), **SILENT).fit(X, y).score(X, y) > 0.7
    with pytest.raises(AttributeError, match="client 0, RidgeClassifier, has no predict_proba; use voting='hard'"):
        choir(estimator=RidgeClassifier(), voting="soft").fit(X, y)


# --- inputs of every kind


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_frames_in_frames_out(library: str, voting: str) -> None:
    frames = pytest.importorskip(library, reason=f"frames need {library}; run make test")
    X, y = load_iris(return_X_y=True)
    frame = frames.DataFrame({f"f{j}": X[:, j] for j in range(4)})
    model = choir(estimator=StandardScalerSeen(), voting=voting, epsilon=5.0).fit(frame, frames.Series(y))
    assert model.feature_names_in_.tolist() == ["f0", "f1", "f2", "f3"]
    assert all(each.saw_ is type(frame) for each in model.estimators_)
    answers = model.predict(frame)
    np.testing.assert_array_equal(model.predict(frame[:20]), answers[:20])
    assert model.privacy_spent_.queries == len(np.unique(X, axis=0))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["f1", "f0", "f2", "f3"]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        received = model.set_output(transform="pandas").transform(frame) if library == "pandas" else None
    if received is not None:
        assert list(received.columns) == ["airvotingclassifier_0", "airvotingclassifier_1", "airvotingclassifier_2"]


class StandardScalerSeen(GaussianNB):
    """Remembers the type of container that it was fitted on."""

    def fit(self, X: Any, y: Any) -> "StandardScalerSeen":
        self.saw_ = type(X)
        return super().fit(X, y)


def test_texts() -> None:
    words = {"sport": ["ball", "goal", "team"], "food": ["bread", "soup", "salt"]}
    rng = np.random.default_rng(0)
    labels = rng.choice(["food", "sport"], 60)
    texts = [" ".join(rng.choice(words[label], 4)) for label in labels]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    model = choir(estimator=pipeline, n_clients=3).fit(texts, labels)
    assert model.score(texts, labels) > 0.95
    assert model.privacy_spent_.queries == len(set(texts))
    assert model.predict([texts[0]])[0] == model.predict(texts)[0]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_sparse_rows(kind: Any) -> None:
    X, y = load_digits(return_X_y=True)
    linear = LogisticRegression(max_iter=ITERATIONS)
    model = choir(estimator=linear, epsilon=3.0).fit(kind(X[:300]), y[:300])
    np.testing.assert_array_equal(model.predict(kind(X[300:350])), model.predict(sparse.csr_array(X[300:350])))


def test_works_in_a_pipeline_in_a_grid_and_in_cross_validation() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), choir(estimator=LogisticRegression(), epsilon=8.0, n_clients=10))
    assert cross_val_score(pipeline, X, y, cv=3).min() > 0.8
    grid = {"airvotingclassifier__estimator__C": [0.1, 1.0], "airvotingclassifier__voting": ["hard", "soft"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.9


def test_prefit_models_survive_cloning() -> None:
    X, y = overlapping()
    models = choir().fit(X, y).estimators_
    for fitted in (models, [(f"site{i}", model) for i, model in enumerate(models)]):
        kept = clone(choir(estimators=fitted, prefit=True))
        assert kept.estimators is fitted
        assert cross_val_score(choir(estimators=fitted, prefit=True, **SILENT), X, y).min() > 0.4
    assert clone(choir(estimators=models)).estimators is not models


# --- one keyed transmission per distinct row


@settings(deadline=None, derandomize=True, max_examples=25)
@given(data=st.data())
def test_a_row_gets_its_answer_in_any_order_batch_and_number(
    noisy: tuple[AirVotingClassifier, np.ndarray], data: st.DataObject
) -> None:
    model, X = noisy
    labels, received = model.predict(X), model.transform(X)
    order = np.array(data.draw(st.lists(st.integers(0, len(X) - 1), min_size=1, max_size=60)))
    cut = data.draw(st.integers(0, len(order)))
    parts = [part for part in (order[:cut], order[cut:]) if len(part)]
    np.testing.assert_array_equal(np.concatenate([model.predict(X[part]) for part in parts]), labels[order])
    np.testing.assert_array_equal(np.concatenate([model.transform(X[part]) for part in parts]), received[order])
    assert model.privacy_spent_.queries == len(X)


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("voting", ["hard", "soft"])
def test_predict_decides_from_what_transform_returns(access: str, voting: str) -> None:
    X, y = overlapping()
    model = choir(epsilon=2.0, participation=0.5, access=access, voting=voting).fit(X, y)
    slots = model.transform(X).reshape(len(X), -1, 3)
    assert slots.shape[1] == (5 if access == "orthogonal" else 1)
    sums = (slots / model.link_.amplitudes[None, :, None]).sum(axis=1)
    np.testing.assert_array_equal(model.predict(X), np.argmax(sums, axis=1))
    assert len(model.get_feature_names_out()) == len(set(model.get_feature_names_out())) == slots[0].size


def test_rows_that_every_client_answers_alike_share_no_noise() -> None:
    """The same symbols in all rows: whatever two rows have in common would be noise."""
    X, y = np.arange(3000.0)[:, None], np.repeat([0, 1], 1500)
    model = choir(estimators=[Constant(0)] * 4, prefit=True, epsilon=1.0, participation=0.5).fit(X, y)
    received = model.transform(X)
    assert len(np.unique(received)) == received.size
    centred = received - received.mean(axis=0)
    for lag in (1, 2, 7):
        products = centred[lag:] * centred[:-lag]
        error = products.std(axis=0) / math.sqrt(len(products))
        assert (np.abs(products.mean(axis=0)) < 4.0 * error).all()


def test_the_secret_decides_and_the_operating_system_draws_it() -> None:
    X, y = overlapping()
    models = choir().fit(X, y).estimators_

    def received(state: Any) -> np.ndarray:
        return choir(estimators=models, prefit=True, epsilon=1.0, random_state=state).fit(X, y).transform(X)

    np.testing.assert_array_equal(received(3), received(3))
    assert not np.isin(received(3), received(4)).any()
    assert not np.isin(received(None), received(None)).any()


@pytest.mark.slow
@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize(("voting", "participation"), [("hard", 1.0), ("hard", 0.4), ("soft", 0.4)])
def test_predictions_over_many_secrets_have_the_exact_probabilities(
    access: str, voting: str, participation: float
) -> None:
    X, y = overlapping()
    options = {"epsilon": 3.0, "participation": participation, "access": access, "voting": voting, "snr_db": 0.0}
    model = choir(**options).fit(X, y)
    few, runs = X[:4], 1500
    counts = np.zeros((len(few), 3))
    for state in range(runs):
        model._secret = estimator.Secret.draw(state)
        counts[np.arange(len(few)), model.predict(few)] += 1.0
    with pytest.warns(UserWarning, match="simulation"):
        exact = model.predict_proba(few)
    error = np.sqrt(exact * (1.0 - exact) / runs)
    assert (np.abs(counts / runs - exact) < 4.0 * error + 1e-6).all()


# --- the exact side


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("voting", ["hard", "soft"])
@pytest.mark.parametrize("participation", [1.0, 0.5])
@pytest.mark.filterwarnings("ignore:predict_proba and evaluate:UserWarning")
def test_evaluate_is_the_expectation_of_score(access: str, voting: str, participation: float) -> None:
    X, y = overlapping()
    names = np.array(["x", "y", "z"])[y]
    model = choir(epsilon=4.0, access=access, voting=voting, participation=participation).fit(X[:200], names[:200])
    estimate, rows = model.evaluate(X[200:], names[200:]), model.predict_proba(X[200:])
    right = rows[np.arange(200), y[200:]]
    assert estimate.accuracy == pytest.approx(right.mean(), abs=1e-12)
    assert estimate.accuracy_std == pytest.approx(math.sqrt((right * (1.0 - right)).sum()) / 200.0)
    assert estimate.macro_f1_se == 0.0
    assert abs(model.score(X[200:], names[200:]) - estimate.accuracy) < 4.0 * estimate.accuracy_std
    assert estimate.sigma == model.link_.sigma


@pytest.mark.filterwarnings("ignore:predict_proba and evaluate:UserWarning")
def test_a_large_choir_draws_sets_and_says_how_uncertain_that_is() -> None:
    X, y = overlapping()
    model = choir(n_clients=15, voting="soft", epsilon=4.0, participation=0.5).fit(X, y)
    estimate, rows = model.evaluate(X, y), model.predict_proba(X)
    assert 0.0 < estimate.macro_f1_se <= 5e-4
    np.testing.assert_allclose(model.predict_proba(X[7:9]), rows[7:9], atol=1e-6)  # the engine's own error
    assert abs(rows[np.arange(len(y)), y].mean() - estimate.accuracy) < 4.0 * (estimate.accuracy_se + 0.016)


def test_where_nothing_is_random_score_is_evaluate_to_the_last_tie() -> None:
    X, y = overlapping()
    for kind in CLIENTS.values():
        model = choir(estimator=kind, n_clients=4, voting="soft", **SILENT).fit(X[::2], y[::2])
        assert model.score(X, y) == model.evaluate(X, y).accuracy
        np.testing.assert_array_equal(np.argmax(model.predict_proba(X), axis=1), model.predict(X))


def test_the_first_look_without_noise_warns_and_the_ledger_marks_it() -> None:
    X, y = overlapping()
    model = choir(epsilon=1.0).fit(X, y)
    model.predict(X[:3])
    assert not model.privacy_spent_.read_without_noise
    with pytest.warns(UserWarning, match="noiseless sum: simulation, not something a server may see") as caught:
        model.predict_proba(X)
    assert caught[0].filename == __file__
    assert model.privacy_spent_.read_without_noise
    model.evaluate(X, y)  # and no second time
    assert model.privacy_spent_.queries == 3, "what is simulated is not asked"
    other = choir(epsilon=1.0).fit(X, y)
    with pytest.warns(UserWarning, match="simulation"):
        other.evaluate(X, y)
    open_choir = choir().fit(X, y)
    open_choir.predict_proba(X)
    assert not open_choir.privacy_spent_.read_without_noise


# --- the account


@pytest.mark.parametrize("access", ACCESSES)
@pytest.mark.parametrize("accountant", ["paper", "tight", "counted"])
def test_what_is_spent_is_the_composition_of_distinct_rows(access: str, accountant: str) -> None:
    X, y = overlapping()
    model = choir(epsilon=1.0, delta=1e-5, participation=0.5, access=access, accountant=accountant).fit(X, y)
    assert (model.privacy_spent_.queries, model.privacy_spent_.epsilon) == (0, 0.0)
    model.predict(np.concatenate([X[:1]] * 5))
    assert model.privacy_spent_.queries == 1
    assert model.privacy_spent_.epsilon == pytest.approx(1.0, rel=1e-6)
    model.transform(X[:9])
    spent = model.privacy_spent_
    assert (spent.queries, spent.delta) == (9, 1e-5)
    law = {"over-the-air": Participation(5, 0.5), "always-on": Participation(5, 0.5, at_least=0)}
    hidden = law.get(access, Participation(1, 1.0))
    sigma = Privacy(1.0, 1e-5, accountant).sigma(model.ledger_.mechanism.geometry, hidden)
    assert model.link_.sigma == sigma
    assert model.ledger_.mechanism.hidden == hidden
    assert spent.epsilon > 1.0


def test_no_promise_costs_everything_with_the_first_row() -> None:
    X, y = overlapping()
    model = choir().fit(X, y)
    model.predict(X[:1])
    assert model.privacy_spent_.epsilon == math.inf == NoPrivacy().epsilon


def test_a_row_too_many_is_refused_before_anything_is_transmitted(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = overlapping()
    model = choir(epsilon=1.0, max_queries=10).fit(X, y)
    first = model.predict(X[:10])
    transmitted: list[int] = []
    monkeypatch.setattr(estimator, "hear", lambda *given: transmitted.append(1))
    for ask in (model.predict, model.transform):
        with pytest.raises(BudgetExceeded, match="3 more distinct rows would exceed max_queries=10, 10 are answered"):
            ask(X[5:13])
    assert not transmitted
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict(X[:10]), first)
    assert model.privacy_spent_.queries == 10


def test_what_a_client_refuses_is_not_charged() -> None:
    X, y = overlapping()
    model = choir(epsilon=1.0).fit(X, y)
    for bad in (np.full((2, 6), np.nan), X[:, :5], X[0]):
        with pytest.raises(ValueError, match=r"NaN|5 features|Reshape your data"):
            model.predict(bad)
    assert model.privacy_spent_.queries == 0


def test_copies_answer_alike_and_count_on_their_own_while_clones_start_afresh() -> None:
    X, y = overlapping()
    model = choir(epsilon=1.0, random_state=None).fit(X, y)
    received = model.transform(X[:10])
    for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(twin.transform(X[:20])[:10], received)
        assert (twin.privacy_spent_.queries, model.privacy_spent_.queries) == (20, 10)
    fresh = clone(model)
    with pytest.raises(NotFittedError):
        fresh.privacy_spent_  # noqa: B018
    assert not np.isin(fresh.fit(X, y).transform(X[:10]), received).any()
    assert fresh.privacy_spent_.queries == 10


# --- power


def test_the_air_is_fixed_at_fit_whatever_is_asked() -> None:
    X, y = overlapping()
    model = choir(voting="soft", epsilon=1.0, snr_db=3.0).fit(X[:200], y[:200])
    powers = [(each.predict_proba(X[:200]) ** 2).mean() for each in model.estimators_]
    noise = model.link_.sigma**2 / 5.0
    expected = (max(powers) + noise) / 10.0**0.3
    assert model.link_.channel_noise_variance == pytest.approx(expected, rel=1e-6)
    before = model.link_
    model.predict(X)
    assert model.link_ is before


def test_votes_have_one_power_whatever_the_samples() -> None:
    X, y = overlapping()
    model = choir(snr_db=7.0).fit(X, y)
    assert model.link_.channel_noise_variance == pytest.approx(1.0 / 3.0 / 10.0**0.7)


def test_the_best_client_is_chosen_on_held_out_samples() -> None:
    X, y = overlapping()
    models = [Constant(0), GaussianNB().fit(X, y), Constant(1)]
    model = choir(estimators=models, prefit=True, access="best-client", **SILENT).fit(X, y)
    assert model.link_.roster.tolist() == [1]
    np.testing.assert_array_equal(model.predict(X), models[1].predict(X))


# --- errors

WRONG = [
    ({"estimator": None}, "give either estimators="),
    ({"estimators": [GaussianNB()], "both": True}, "give either estimators="),
    ({"estimators": []}, "estimators is empty"),
    ({"prefit": True}, r"prefit=True takes fitted models, one per client; give estimators=\[...\]"),
    ({"estimators": [("a", GaussianNB()), ("a", GaussianNB())]}, "not unique"),
    ({"n_clients": 0}, "n_clients must be a whole number >= 1, got 0"),
    ({"n_clients": 500}, "n_clients must be from 1 to n_samples=400, got 500"),
    ({"voting": "loud"}, "unknown voting 'loud'"),
    ({"voting": "softly"}, "did you mean 'soft'"),
    ({"access": "over-the-ear"}, "did you mean 'over-the-air'"),
    ({"accountant": "papers"}, "did you mean 'paper'"),
    ({"epsilon": -1.0}, "epsilon must be >= 0"),
    ({"delta": 1.0}, "delta must be in"),
    ({"snr_db": math.nan}, "snr_db must be >= -100"),
    ({"participation": 0.0}, "participation must be in"),
    ({"max_queries": -1}, "max_queries must be None or"),
    ({"random_state": "x"}, "random_state must be"),
]


@pytest.mark.parametrize(("options", "complaint"), WRONG, ids=[complaint for _, complaint in WRONG])
def test_a_wrong_parameter_is_refused_at_fit(options: dict[str, Any], complaint: str) -> None:
    X, y = overlapping()
    model = choir(**{key: value for key, value in options.items() if key != "both"})
    if "both" in options:
        model.set_params(estimator=GaussianNB())
    with pytest.raises(ValueError, match=complaint):
        model.fit(X, y)


def test_an_unknown_label_and_a_strange_answer_are_named() -> None:
    X, y = overlapping()
    model = choir().fit(X, y)
    with pytest.raises(ValueError, match="y holds 3, which is none of the 3 classes"):
        model.evaluate(X, y + 1)
    with pytest.raises(ValueError, match="client 1 holds 9, which is none of the 3 classes"):
        choir(estimators=[Constant(0), Constant(9)], prefit=True).fit(X, y)
    with pytest.raises(ValueError, match="labels of another type"):
        choir(estimators=[GaussianNB().fit(X, y.astype(str))], prefit=True).fit(X, y)
    with pytest.raises(ValueError, match="y holds 1 class"):
        choir(estimators=[Constant(0)], prefit=True).fit(X, np.zeros(len(y), dtype=int))


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([[0.5, 0.4, 0.0]], r"client 0 answers row 0 with \[0.5 0.4 0. \], no probabilities"),
        ([[1.5, -0.5, 0.0]], "client 0 answers row 0 with .*, no probabilities"),
        ([[np.nan, 0.5, 0.5]], "client 0 answers row 0 with .*, not finite"),
        ([[1.0, 0.0]], "client 0 returns 2 columns but knows 3 classes"),
    ],
)
def test_probabilities_that_are_none_name_the_client_and_the_row(rows: Any, complaint: str) -> None:
    X, y = overlapping()
    bad = GaussianNB().fit(X, y)
    bad.predict_proba = lambda asked: np.repeat(rows, len(asked), axis=0)
    with pytest.raises(ValueError, match=complaint):
        choir(estimators=[bad], prefit=True, voting="soft").fit(X, y)


def test_who_could_not_fit_is_noted() -> None:
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="class") as caught:
        choir(estimator=LogisticRegression(), n_clients=60).fit(X[:60], y[:60])
    assert caught.value.__notes__ == ["client 0 (client0) could not fit its shard: 1 samples of 1 class(es)"]


def test_without_scikit_learn_one_line_says_what_to_install() -> None:
    program = "import sys; sys.modules['sklearn'] = None\nfrom airchoir import AirVotingClassifier"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.strip().splitlines()[-1] == (
        "ImportError: AirVotingClassifier needs scikit-learn >= 1.6, which is not installed; run: pip install 'airchoir[demo]'"
    )
