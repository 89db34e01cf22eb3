"""airchoir: private ensemble inference over the air.

n parties each hold a model; their answers, each with a little Gaussian noise, add up in the air, and the server hears only
the choir. The names below load on first use, so that importing airchoir costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airchoir.access.always_on import AlwaysOn
    from airchoir.access.best_client import BestClient
    from airchoir.access.orthogonal import Orthogonal
    from airchoir.access.over_the_air import OverTheAir
    from airchoir.audit import Audit, audit_privacy
    from airchoir.bank import ScoreBank
    from airchoir.channels.awgn import Awgn
    from airchoir.channels.rayleigh import Rayleigh
    from airchoir.estimator import AirVotingClassifier as AirVotingClassifier  # public, though not for a star
    from airchoir.exact import evaluate
    from airchoir.metrics import Estimate
    from airchoir.montecarlo import simulate
    from airchoir.participation import Participation
    from airchoir.privacy import NoPrivacy, Privacy
    from airchoir.privacy.ledger import BudgetExceeded, PrivacyLedger
    from airchoir.rules.belief import BeliefSum
    from airchoir.rules.centred import CentredBelief, CentredVote
    from airchoir.rules.vote import MajorityVote
    from airchoir.scheme import Scheme, infer

__version__ = "0.1.0"

_HOMES = {
    "AirVotingClassifier": "estimator",
    "AlwaysOn": "access.always_on",
    "Audit": "audit",
    "Awgn": "channels.awgn",
    "BeliefSum": "rules.belief",
    "BestClient": "access.best_client",
    "BudgetExceeded": "privacy.ledger",
    "CentredBelief": "rules.centred",
    "CentredVote": "rules.centred",
    "Estimate": "metrics",
    "MajorityVote": "rules.vote",
    "NoPrivacy": "privacy",
    "Orthogonal": "access.orthogonal",
    "OverTheAir": "access.over_the_air",
    "Participation": "participation",
    "Privacy": "privacy",
    "PrivacyLedger": "privacy.ledger",
    "Rayleigh": "channels.rayleigh",
    "Scheme": "scheme",
    "ScoreBank": "bank",
    "audit_privacy": "audit",
    "evaluate": "exact",
    "infer": "scheme",
    "simulate": "montecarlo",
}

__all__ = [  # without AirVotingClassifier, which needs scikit-learn: a star must work with what a plain install brings
    "AlwaysOn",
    "Audit",
    "Awgn",
    "BeliefSum",
    "BestClient",
    "BudgetExceeded",
    "CentredBelief",
    "CentredVote",
    "Estimate",
    "MajorityVote",
    "NoPrivacy",
    "Orthogonal",
    "OverTheAir",
    "Participation",
    "Privacy",
    "PrivacyLedger",
    "Rayleigh",
    "Scheme",
    "ScoreBank",
    "__version__",
    "audit_privacy",
    "evaluate",
    "infer",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'airchoir' has no attribute {name!r}")
    return getattr(import_module(f"airchoir.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "AirVotingClassifier"])
