"""A sweep on a real Ray cluster: the rows of one process."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airchoir import ScoreBank, provenance
from airchoir.experiments.sweep import sweep
from airchoir.experiments.sweep.grid import read_grid

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

GRID = """
rule = ["vote", "belief"]
epsilon = ["inf", 1.0]
participation = [0.5, 1.0]
snr_db = { from = 0, to = 20, step = 5 }
tolerance = 0.05
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster on this machine: a head and one node, with one processor each."""
    ray = pytest.importorskip("ray", reason="needs airchoir[cluster]; run make test-all")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def test_a_cluster_makes_the_rows_of_one_process_also_when_it_is_interrupted(
    cluster: Any, synthetic: Callable[..., ScoreBank], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "commit", lambda: "0123456789ab")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    banks = []
    for seed in (0, 1):
        banks.append((tmp_path / f"bank-{seed}.safetensors", synthetic(seed=seed)))
        banks[-1][1].save(banks[-1][0])
    grid = read_grid(path)
    local = sweep(grid, banks, tmp_path / "local")

    def interrupt(done: int, total: int) -> None:
        if done > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sweep(grid, banks, tmp_path / "ray", on="ray", progress=interrupt)
    for bank_path, _ in banks:
        bank_path.unlink()  # another machine would not have it
    swept = sweep(grid, banks, tmp_path / "ray", on="ray")
    assert (swept.new + swept.kept, swept.kept > 10) == (80, True)
    assert swept.path.read_bytes() == local.path.read_bytes()
