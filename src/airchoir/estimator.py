"""AirVotingClassifier: a choir of classifiers as a scikit-learn estimator, the private relative of VotingClassifier."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airchoir._types import Indices, Labels, Probabilities, Received, Scores
from airchoir.access import Access
from airchoir.access.best_client import BestClient
from airchoir.bank import ScoreBank, convert
from airchoir.channels.awgn import Awgn
from airchoir.exact import answer_probabilities, evaluate, is_exact, with_costs
from airchoir.frameworks import all_classes, beliefs, class_positions, votes
from airchoir.metrics import DenseTally, Estimate, summarise
from airchoir.privacy import Privacy
from airchoir.questions import AnswerLedger, PrivacySpent, Secret, container, generator
from airchoir.registry import build, suggestion
from airchoir.rules import Rule
from airchoir.rules.belief import BeliefSum
from airchoir.rules.vote import MajorityVote
from airchoir.scheme import Scheme, hear
from airchoir.training.shards import stratified

try:
    from sklearn.base import ClassifierMixin, TransformerMixin, clone
    from sklearn.exceptions import NotFittedError
    from sklearn.utils import Bunch, _safe_indexing, assert_all_finite, get_tags
    from sklearn.utils.metaestimators import _BaseComposition
    from sklearn.utils.multiclass import check_classification_targets, type_of_target
    from sklearn.utils.parallel import Parallel, delayed
    from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data
except ImportError:
    raise ImportError(
        "AirVotingClassifier needs scikit-learn >= 1.6, which is not installed; run: pip install 'airchoir[demo]'"
    ) from None

VOTING: dict[str, type[Rule]] = {"hard": MajorityVote, "soft": BeliefSum}
_REFERENCE_SAMPLES = 10_000
_HELD_OUT = 10
"""One part in this many is held out for choosing the best client."""


class AirVotingClassifier(TransformerMixin, ClassifierMixin, _BaseComposition):  # type: ignore[misc]
    """A choir of classifiers that answer together, over the air, with a privacy promise for every one of their models.

    `fit` deals the samples out to the clients, disjoint and stratified by class, and fits one model per client. `predict`
    is one noisy transmission per sample, literally: every client encodes what its model says and adds its share of the
    noise, the channel adds all up, and the server decides from that one sum. `transform` returns what the server heard in
    the same transmissions. `predict_proba` is the exact probability of every decision, and `evaluate` the exact expected
    metrics. Where noise decides, a `predict` cannot be the argmax of `predict_proba`: it is one draw from it.

    **What is promised.** Neighbouring are two choirs that differ in one client's whole model. The server sees what
    `transform` returns, and neither who took part nor how many did; clients trust one another. Every distinct row
    costs (epsilon, delta), and costs add up: `privacy_spent_` says to what. A row asked again gets the same answer, noise,
    participants and all, for its randomness is keyed by a secret drawn at `fit` and by the row's own bytes
    (`airchoir.questions` says which): repeating a question costs nothing and tells nothing more. Different rows share no
    noise. This needs clients whose answer depends on the row alone. With a finite epsilon they send float32, so that the
    last bits of a float64, which depend on how rows are batched, tell nothing either.

    `predict_proba` and `evaluate` read the noiseless sum: they are simulation, not something a server may see. With
    a finite epsilon the first call warns, and the ledger marks it.

    The noise is pseudo-random and floating-point: good for research, not for deployment. Whoever has the fitted object, or
    its pickle, has the models and the secret. A pickled or copied choir answers the same rows alike, but each copy counts
    its own: keep one. A `clone` has neither secret nor ledger until it is fitted. `fit` starts both afresh; with
    `prefit=True` the models stay the same, so that what the old ledger counted stays spent.

    Parameters
    ----------
    estimators : list of (name, estimator) or of estimators, default=None
        One per client. Each is cloned and fitted on its client's shard; with `prefit=True` they are fitted already.
    estimator : classifier, default=None
        Instead of `estimators`: every client fits a clone of it. Give one of the two. Whatever random_state it leaves
        None is set per client.
    n_clients : int, default=20
        How many clients there are, with `estimator`.
    voting : {"hard", "soft"}, default="hard"
        "hard" sums votes and needs `predict` alone; "soft" sums class probabilities and needs `predict_proba`.
    epsilon : float, default=inf
        What one answer may cost a client; inf is no promise, and no noise.
    delta : float, default=1e-6
    snr_db : float, default=10.0
        A transmitter's average power over the receiver's noise; inf is a channel without noise. The power is averaged over
        the samples given to `fit` (soft voting: at most 10,000), never over the queries, on which it must not depend.
    participation : float, default=1.0
        The chance that a client takes part in a query.
    access : str, default="over-the-air"
        "over-the-air", "orthogonal", "always-on" or "best-client"; see `airchoir list`. For "best-client" every tenth
        sample is held out of the shards to choose it (prefit: all samples given to `fit` are for choosing).
    accountant : str, default="paper"
        "paper", "tight" or "counted".
    prefit : bool, default=False
        Take `estimators` as they are, fitted, and keep them when the choir is cloned. `fit` then learns from X and y only
        the power, the classes and the best client.
    max_queries : int, default=None
        How many distinct rows may be answered; BudgetExceeded before more are transmitted.
    random_state : int, RandomState or None, default=None
        None draws the secret from the operating system. An integer is for experiments: who knows it can take the noise away.
    n_jobs : int, default=None
        How many clients are fitted at once.

    There is no `sample_weight` in `fit`, nor metadata routing: once samples are dealt out a weight of 2 is not a sample
    given twice. Weights belong into a client's own fit: give such models with `prefit=True`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> choir = AirVotingClassifier(estimator=LogisticRegression(max_iter=1000), n_clients=5, random_state=0).fit(X, y)
    >>> choir.predict(X[:3])
    array([0, 0, 0])
    >>> choir.predict(X[:2]), choir.privacy_spent_.queries
    (array([0, 0]), 3)
    """

    def __init__(
        self,
        estimators: Sequence[Any] | None = None,
        *,
        estimator: Any = None,
        n_clients: int = 20,
        voting: str = "hard",
        epsilon: float = math.inf,
        delta: float = 1e-6,
        snr_db: float = 10.0,
        participation: float = 1.0,
        access: str = "over-the-air",
        accountant: str = "paper",
        prefit: bool = False,
        max_queries: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.estimator = estimator
        self.n_clients = n_clients
        self.voting = voting
        self.epsilon = epsilon
        self.delta = delta
        self.snr_db = snr_db
        self.participation = participation
        self.access = access
        self.accountant = accountant
        self.prefit = prefit
        self.max_queries = max_queries
        self.random_state = random_state
        self.n_jobs = n_jobs

    # --- scikit-learn's own business

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; deep with those of `estimator` and of named `estimators`."""
        found: dict[str, Any] = (
            self._get_params("estimators", deep=deep) if self._is_named() else super().get_params(deep=deep)
        )
        return found

    def set_params(self, **params: Any) -> "AirVotingClassifier":
        """Set parameters, also `estimator__name` and, with named `estimators`, `name` and `name__parameter`."""
        if self._is_named() or "estimators" in params:
            self._set_params("estimators", **params)
        else:
            super().set_params(**params)
        return self

    def _is_named(self) -> bool:
        return isinstance(self.estimators, list) and all(isinstance(each, tuple) for each in self.estimators)

    def __sklearn_clone__(self) -> "AirVotingClassifier":
        kept = {"estimators", "estimator"} if self.prefit else set()
        params = self.get_params(deep=False)
        copy = type(self)(**{key: p if key in kept else clone(p, safe=False) for key, p in params.items()})
        for setting in ("_metadata_request", "_sklearn_output_config"):
            if setting in vars(self):
                setattr(copy, setting, vars(self)[setting])
        return copy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        models = [each[1] if isinstance(each, tuple) else each for each in self.estimators or [self.estimator]]
        for trait in ("sparse", "allow_nan", "string", "categorical"):
            known = (getattr(get_tags(model).input_tags, trait) for model in models if hasattr(model, "fit"))
            setattr(tags.input_tags, trait, all(known))
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "ledger_")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """The names of what `transform` returns: a number per class, in every slot."""
        check_is_fitted(self)
        prefix, slots = type(self).__name__.lower(), len(self.link_.amplitudes)
        names = [f"{prefix}{slot if slots > 1 else ''}_{label}" for slot in range(slots) for label in self.classes_]
        return np.asarray(names, dtype=object)

    # --- fitting

    def fit(self, X: Any, y: Any) -> "AirVotingClassifier":
        """Deal the samples out, fit the clients, and fix everything that is fixed before any query."""
        scheme = self._scheme()
        names, models = self._clients()
        X, y = self._validated(X, y)
        secret = Secret.draw(self.random_state)
        rng = secret.rng("fit")
        held_out = np.arange(len(y))
        if not self.prefit:
            held_out, shards = self._dealt(scheme, y, len(models), rng)
            clones = [_cloned(model, rng) for model in models]
            models = Parallel(n_jobs=self.n_jobs)(
                delayed(_fitted)(model, _safe_indexing(X, shard), y[shard], f"client {client} ({name})")
                for client, (name, model, shard) in enumerate(zip(names, clones, shards, strict=True))
            )
        self.classes_ = all_classes(models, y)
        self.estimators_ = list(models)
        self.named_estimators_ = Bunch(**dict(zip(names, models, strict=True)))
        self._float = np.dtype("float64" if self.epsilon == math.inf else "float32")
        bank = self._reference(scheme, X, y, held_out, rng)
        self.scheme_, self.link_ = scheme, scheme.link(bank)
        self.ledger_ = AnswerLedger(scheme.mechanism(bank), delta=scheme.privacy.delta, max_queries=self.max_queries)
        self._secret = secret
        return self

    def _scheme(self) -> Scheme:
        if self.voting not in VOTING:
            raise ValueError(f"unknown voting {self.voting!r}; {suggestion(str(self.voting), sorted(VOTING))}")
        return Scheme(
            rule=VOTING[self.voting](),
            access=build(Access, self.access),
            channel=Awgn(snr_db=self.snr_db),
            privacy=Privacy(self.epsilon, self.delta, self.accountant),
            participation=self.participation,
        )

    def _clients(self) -> tuple[list[str], list[Any]]:
        """Names and models, one per client, as they were given."""
        if (self.estimators is None) == (self.estimator is None):
            raise ValueError("give either estimators=[...], one per client, or estimator=, which every client fits")
        if self.estimator is not None:
            if self.prefit:
                raise ValueError("prefit=True takes fitted models, one per client; give estimators=[...]")
            if not (isinstance(self.n_clients, int | np.integer) and self.n_clients >= 1):
                raise ValueError(
                    f"n_clients must be a whole number >= 1, got {self.n_clients!r}; a choir needs a voice"
                )
            return [f"client{i}" for i in range(self.n_clients)], [self.estimator] * self.n_clients
        given = list(self.estimators or [])
        if not given:
            raise ValueError("estimators is empty; a choir needs a voice")
        if not all(isinstance(each, tuple) for each in given):
            return [f"client{i}" for i in range(len(given))], given
        names, models = zip(*given, strict=True)
        self._validate_names(names)
        return list(names), list(models)

    def _validated(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """X in a container that rows can be taken from, y as labels of as many classes as deciding needs."""
        X = container(X)
        validate_data(self, X, y, skip_check_array=True)
        assert_all_finite(np.asarray(y), input_name="y")
        check_classification_targets(y)
        if type_of_target(y, input_name="y") not in ("binary", "multiclass"):
            raise ValueError(
                f"y must be one label per sample, got {type_of_target(y)}; a choir decides one thing at a time"
            )
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        return X, y

    def _dealt(
        self, scheme: Scheme, y: NDArray[Any], clients: int, rng: np.random.Generator
    ) -> tuple[Indices, list[Indices]]:
        """The samples that fix power and best client, and every client's shard; the former held out where one is chosen."""
        _, codes = np.unique(y, return_inverse=True)
        everything = np.arange(len(y))
        if scheme.access.name != BestClient.name:
            return everything, stratified(codes, clients, rng=rng)
        held_out = stratified(codes, min(_HELD_OUT, len(y)), rng=rng)[0]
        dealt = np.setdiff1d(everything, held_out)
        return held_out, [dealt[shard] for shard in stratified(codes[dealt], clients, rng=rng)]

    def _reference(self, scheme: Scheme, X: Any, y: Any, held_out: Indices, rng: np.random.Generator) -> ScoreBank:
        """What the clients say about samples of `fit`: it fixes the power, and the best client where one is chosen."""
        if len(self.classes_) < 2:
            raise ValueError(f"y holds 1 class, {self.classes_[0]!r}; deciding needs samples of at least 2 classes")
        best = scheme.access.name == BestClient.name
        if not best:  # one-hot symbols all have the same power
            most = 1 if scheme.rule.one_hot else _REFERENCE_SAMPLES
            held_out = np.sort(rng.permutation(len(y))[:most])
        scores = convert(self._scores(_safe_indexing(X, held_out), scheme.rule), "float32", logits=False)
        labels = class_positions(y[held_out], self.classes_, "y").astype(np.int64)
        return ScoreBank(scores, labels, *((scores, labels) if best else ()))

    # --- asking

    def predict(self, X: Any) -> NDArray[Any]:
        """The server's decision for every row, from one noisy transmission each."""
        received = self._transmit(X)
        decided = self.scheme_.rule.decide(self.scheme_.access.collect(received, self.link_))
        labels: NDArray[Any] = self.classes_[decided]
        return labels

    def transform(self, X: Any) -> NDArray[np.float64]:
        """What the server heard of every row, slot after slot, in the very transmissions that `predict` decides from."""
        received = self._transmit(X)
        return np.moveaxis(received, 0, 1).reshape(received.shape[1], -1)

    def predict_proba(self, X: Any) -> Probabilities:
        """The probability of every decision of a fresh transmission, noise and participation integrated out. Simulation!

        Exact to 1e-6; with participation < 1, more than 12 clients, and soft voting or orthogonal access it is the mean
        over 1024 participant sets, with a standard error of at most 0.016.
        """
        scores = self._noiseless(X)
        return answer_probabilities(self.scheme_, self.link_, scores).astype(np.float64)

    def evaluate(self, X: Any, y: Any) -> Estimate:
        """Expected accuracy and F1 on X and y, their spread over fresh noise, and what the scheme costs. Simulation!"""
        check_is_fitted(self)
        check_consistent_length(X, y)
        labels: Labels = class_positions(column_or_1d(y), self.classes_, "y").astype(np.int64)
        scores = self._noiseless(X)
        if is_exact(self.scheme_, self.link_):
            probabilities = answer_probabilities(self.scheme_, self.link_, scores)
            return with_costs(summarise(DenseTally.of(probabilities, labels)), self.scheme_, self.link_)
        bank = ScoreBank(convert(scores, "float32", logits=False), labels)
        return evaluate(self.scheme_, bank, link=self.link_)

    @property
    def privacy_spent_(self) -> PrivacySpent:
        """Distinct rows answered so far, and their composed epsilon at delta."""
        if not hasattr(self, "ledger_"):
            raise NotFittedError("this AirVotingClassifier is not fitted yet; call fit first")
        return self.ledger_.spent()

    def _transmit(self, X: Any) -> Received:
        """One transmission per row, each with the generator that its own bytes key; charged before the first."""
        X = self._asked(X)
        scores = self._heard(X)
        questions = self._secret.questions(X)
        self.ledger_.charge(questions)
        received = np.empty((len(self.link_.amplitudes), len(questions), len(self.classes_)))
        for row, question in enumerate(questions):
            received[:, row] = hear(self.scheme_, self.link_, scores[:, row : row + 1], generator(question))[:, 0]
        return received

    def _noiseless(self, X: Any) -> Scores:
        """The clients' answers for simulation, which nobody may see where a promise was given."""
        scores = self._heard(self._asked(X))
        if self.scheme_.privacy.epsilon < math.inf and self.ledger_.mark_read_without_noise():
            warnings.warn(
                "predict_proba and evaluate read the noiseless sum: simulation, not something a server may see; the "
                "ledger has marked it",
                stacklevel=3,
            )
        return scores

    def _asked(self, X: Any) -> Any:
        check_is_fitted(self)
        X = container(X)
        if hasattr(self, "n_features_in_") and isinstance(X, np.ndarray) and X.ndim == 1:
            raise ValueError(f"X must be 2D, got {X.shape}. Reshape your data: X.reshape(1, -1) for one sample")
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _heard(self, X: Any) -> Scores:
        return self._scores(X, self.scheme_.rule)[self.link_.roster]

    def _scores(self, X: Any, rule: Rule) -> Scores:
        """What every client says of every row, over all classes: its probabilities, or its vote as a one-hot row."""
        say = votes if rule.one_hot else beliefs
        rows = [say(model, X, self.classes_, f"client {i}") for i, model in enumerate(self.estimators_)]
        return np.stack(rows).astype(self._float)


def _cloned(model: Any, rng: np.random.Generator) -> Any:
    """A clone with its own random state wherever that was left open."""
    copy = clone(model)
    states = [name for name in sorted(copy.get_params()) if name.split("__")[-1] == "random_state"]
    params = copy.get_params()
    return copy.set_params(**{name: int(rng.integers(2**31)) for name in states if params[name] is None})


def _fitted(model: Any, X: Any, y: NDArray[Any], client: str) -> Any:
    try:
        return model.fit(X, y)
    except Exception as error:
        error.add_note(f"{client} could not fit its shard: {len(y)} samples of {len(np.unique(y))} class(es)")
        raise
