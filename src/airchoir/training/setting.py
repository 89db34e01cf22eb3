"""A plan together with its data: what its fits need, what decides their outcome, and the bank that they make."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import airchoir
from airchoir import provenance
from airchoir.bank import ScoreBank, convert
from airchoir.jobs import Note
from airchoir.tasks import Data
from airchoir.training.fitter import fitter
from airchoir.training.plan import Plan, identity, portable
from airchoir.training.shards import Split, split


@dataclass(frozen=True, order=True)
class Client:
    """One fit: a client of one run."""

    seed: int
    index: int

    def __str__(self) -> str:
        return f"client {self.index} of seed {self.seed}"

    @property
    def own_seed(self) -> int:
        """What seeds its fit; it does not depend on how many clients there are.

        >>> Client(0, 0).own_seed, Client(0, 1).own_seed
        (3757552657, 673228719)
        """
        return int(np.random.SeedSequence(self.seed, spawn_key=(self.index,)).generate_state(1)[0])


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fitted client says, as a bank keeps it, and how it was fitted."""

    test_scores: NDArray[np.float16]
    val_scores: NDArray[np.float16]
    provenance: dict[str, str]


@dataclass(frozen=True, eq=False)
class Setting:
    """A plan, its data and who holds what of them. It travels to other machines whole."""

    plan: Plan
    data: Data
    parts: Split
    decisive: dict[str, Any]
    """Everything but the seed that decides the outcome."""

    @classmethod
    def of(cls, plan: Plan) -> "Setting":
        """Loads the data."""
        recipe = identity(plan.recipe)  # before the data, which take longer: a wrong name shows at once
        data = plan.task.load(plan.data)
        examples = len(data.train_labels)
        decisive = {
            "task": plan.task.name,
            "data": data.fingerprint,
            "recipe": recipe,
            "clients": plan.clients,
            "split_seed": plan.split_seed,
            "skew": plan.skew,
        }
        parts = split(examples, plan.clients, seed=plan.split_seed, labels=data.train_labels, skew=plan.skew)
        return cls(plan, data, parts, decisive)

    @property
    def clients(self) -> list[Client]:
        """All fits, in the order in which they are begun."""
        return [client for seed in self.plan.seeds for client in self.of_seed(seed)]

    def of_seed(self, seed: int) -> list[Client]:
        """The fits of one run."""
        return [Client(seed, index) for index in range(self.plan.clients)]

    def fingerprint(self, *seed_and_client: int) -> str:
        """Of the whole setting, of a run of it, or of one client of a run."""
        text = json.dumps([self.decisive, *seed_and_client], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def start(self) -> "Fitting":
        """What fits clients on this machine: expensive to make, so once for many clients."""
        if identity(self.plan.recipe) != self.decisive["recipe"]:
            raise ValueError("the weights on this machine are not those where the run was started; copy the same here")
        return Fitting(self)

    @cached_property
    def described(self) -> dict[str, str]:
        """What of a bank's metadata is known before any fit, but for the seed."""
        recipe = portable(self.plan.recipe)
        return {
            "task": self.plan.task.name,
            "split_seed": str(self.plan.split_seed),
            "skew": "none" if self.plan.skew is None else repr(self.plan.skew),
            "shard_sizes": json.dumps([len(shard) for shard in self.parts.shards]),
            "data_sha256": self.data.fingerprint,
            "recipe": json.dumps(recipe),
            **({"model": recipe["model"]} if "model" in recipe else {}),
        }

    def bank(self, seed: int, fits: list[Fit]) -> ScoreBank:
        """The bank of a run, from the fits of all its clients in their order."""
        tensors: dict[str, NDArray[Any]] = {
            "test_scores": np.stack([fit.test_scores for fit in fits]),
            "test_labels": self.data.test_labels,
            "val_scores": np.stack([fit.val_scores for fit in fits]),
            "val_labels": self.data.train_labels[self.parts.validation],
        }
        metadata = {
            **_joined([fit.provenance for fit in fits]),
            **self.described,
            "seed": str(seed),
            "fingerprint": self.fingerprint(seed),
        }
        return ScoreBank(**tensors, metadata={**metadata, "checksum": checksum(tensors, metadata)})


class Fitting:
    """A fitter at work on one client after another."""

    def __init__(self, setting: Setting) -> None:
        plan = setting.plan
        self._shards = setting.parts.shards
        self._fitter = fitter(plan.recipe, setting.data, setting.parts.validation, device=plan.device)
        made_by = {
            "airchoir": airchoir.__version__,
            "commit": provenance.commit(),
            "machine": provenance.machine(),
        }
        self._provenance = {**made_by, **self._fitter.provenance()}

    def __call__(self, client: Client, note: Note) -> Fit:
        test, val = self._fitter.fit(self._shards[client.index], seed=client.own_seed, report=note)
        return Fit(_for_a_bank(test, client), _for_a_bank(val, client), self._provenance)


def checksum(tensors: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> str:
    """The SHA-256 of every value and every word in a file, but for its format and the checksum itself."""
    words = {name: value for name, value in metadata.items() if name not in ("format", "checksum")}
    digest = hashlib.sha256(json.dumps(words, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype.name} {tensor.shape} ".encode())
        digest.update(np.ascontiguousarray(tensor, dtype=tensor.dtype.newbyteorder("<")).data)
    return digest.hexdigest()


def _for_a_bank(scores: NDArray[np.float32], client: Client) -> NDArray[np.float16]:
    if not np.isfinite(scores).all():
        raise ValueError(f"{client} diverged: its scores are not finite; lower the recipe's learning rate")
    converted: NDArray[np.float16] = convert(scores[np.newaxis], "float16", logits=False)[0]
    return converted


def _joined(origins: list[dict[str, str]]) -> dict[str, str]:
    """What all clients have in common; where they differ, everything that occurs, in the order of the clients."""
    versions = [json.loads(origin["versions"]) for origin in origins]
    return {**_common(origins), "versions": json.dumps(_common(versions))}


def _common(words: list[dict[str, str]]) -> dict[str, str]:
    found = {name: dict.fromkeys(each.get(name, "") for each in words) for name in words[0]}
    return {name: " and ".join(filter(None, values)) for name, values in found.items()}
