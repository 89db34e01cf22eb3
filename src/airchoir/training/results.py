"""What training leaves on the disk: a file per finished client, a bank per finished run. No half file is believed."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from airchoir.files import FORMAT, write_tensors
from airchoir.training.setting import Client, Fit, Setting, checksum

CLIENT_FORMAT = "airchoir client 1"


@dataclass(frozen=True, eq=False)
class Results:
    """The files of one setting below a folder.

    `clients/TASK/FINGERPRINT/seed-S/client-I.safetensors` and `banks/TASK/seed-S.safetensors`. Both carry a fingerprint of all
    that decided them and a checksum of everything in them, and appear whole or not at all.
    """

    out: Path
    setting: Setting

    def client_path(self, client: Client) -> Path:
        folder = self.out / "clients" / self.setting.plan.task.name / self.setting.fingerprint()[:16]
        return folder / f"seed-{client.seed}" / f"client-{client.index}.safetensors"

    def bank_path(self, seed: int) -> Path:
        return self.out / "banks" / self.setting.plan.task.name / f"seed-{seed}.safetensors"

    def save_client(self, client: Client, fit: Fit) -> Path:
        """Write what a client says."""
        tensors = {"test_scores": fit.test_scores, "val_scores": fit.val_scores}
        metadata = {
            "fingerprint": self.setting.fingerprint(client.seed, client.index),
            "provenance": json.dumps(fit.provenance),
        }
        path = self.client_path(client)
        write_tensors(path, tensors, {**metadata, "format": CLIENT_FORMAT, "checksum": checksum(tensors, metadata)})
        return path

    def load_client(self, client: Client) -> Fit | None:
        """A finished client; None where there is none, or a file that is damaged or of other settings."""
        wanted = {"format": CLIENT_FORMAT, "fingerprint": self.setting.fingerprint(client.seed, client.index)}
        found = _genuine(self.client_path(client), wanted)
        if found is None:
            return None
        tensors, metadata = found
        return Fit(tensors["test_scores"], tensors["val_scores"], json.loads(metadata["provenance"]))

    def save_bank(self, seed: int) -> Path:
        """Assemble a run's bank from the files of its clients."""
        fits = []
        for client in self.setting.of_seed(seed):
            fit = self.load_client(client)
            if fit is None:
                raise ValueError(
                    f"{self.client_path(client)} was damaged by now; run the same command again to mend it"
                )
            fits.append(fit)
        self.check_bank(seed)
        self.setting.bank(seed, fits).save(self.bank_path(seed))
        return self.bank_path(seed)

    def has_bank(self, seed: int) -> bool:
        """Whether the run's bank is there and whole."""
        wanted = {"format": FORMAT, "fingerprint": self.setting.fingerprint(seed)}
        return _genuine(self.bank_path(seed), wanted) is not None

    def check_bank(self, seed: int) -> None:
        """Refuse to write over a bank that something else made; a damaged file is none."""
        path, wanted = self.bank_path(seed), {**self.setting.described, "seed": str(seed)}
        metadata = _metadata(path)
        if metadata is None or metadata.get("fingerprint") == self.setting.fingerprint(seed):
            return
        differing = [name for name, value in wanted.items() if metadata.get(name) != value] or ["weights"]
        raise ValueError(
            f"{path} is a bank of other settings ({', '.join(differing)} differ); it stays: give another --out or move it away"
        )


def _genuine(path: Path, wanted: dict[str, str]) -> tuple[dict[str, NDArray[Any]], dict[str, str]] | None:
    """The tensors and metadata of a file that says what is wanted, and whose checksum says that it is as it was written."""
    from safetensors import safe_open

    metadata = _metadata(path)
    if metadata is None or any(metadata.get(name) != value for name, value in wanted.items()):
        return None
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return (tensors, metadata) if metadata.get("checksum") == checksum(tensors, metadata) else None


def _metadata(path: Path) -> dict[str, str] | None:
    """What a safetensors file says about itself; None where it is missing or not whole."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, FileNotFoundError):
        return None
