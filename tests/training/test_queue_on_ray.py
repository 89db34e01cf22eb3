"""The queue on a real Ray cluster of several nodes: the banks of one process, also when a node is killed on the way."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airchoir.training.plan import Plan, make_plan
from airchoir.training.queue import Event, run_queue

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own

BANKS = [f"banks/digits/seed-{seed}.safetensors" for seed in (0, 1)]


def plan() -> Plan:
    return make_plan("digits", clients=8, seeds=2, first_seed=0, changes={})


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


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The banks that one process makes."""
    out = tmp_path_factory.mktemp("local")
    run_queue(plan(), out)
    return {bank: (out / bank).read_bytes() for bank in BANKS}


def test_a_node_killed_on_the_way_changes_nothing_in_the_banks(
    cluster: Any, local: dict[str, bytes], tmp_path: Path
) -> None:
    node = cluster.add_node(num_cpus=2)
    events: list[Event] = []

    def listen(event: Event) -> None:
        events.append(event)
        if [event.what for event in events].count("finished") == 3 and event.what == "finished":
            cluster.remove_node(node, allow_graceful=False)

    outcome = run_queue(plan(), tmp_path, on="ray", report=listen)
    assert (outcome.fitted, outcome.kept, outcome.left) == (16, 0, 0)
    finished = Counter((event.seed, event.client) for event in events if event.what == "finished")
    assert finished == {(seed, client): 1 for seed in (0, 1) for client in range(8)}
    epochs = Counter((event.seed, event.client) for event in events if event.what == "epoch")
    assert epochs == dict.fromkeys(finished, 9)
    assert {bank: (tmp_path / bank).read_bytes() for bank in BANKS} == local


def test_an_interrupted_cluster_run_goes_on_in_one_process_and_back(
    cluster: Any, local: dict[str, bytes], tmp_path: Path
) -> None:
    def stop_after(count: int) -> Any:
        seen: Counter[str] = Counter()

        def listen(event: Event) -> None:
            seen[event.what] += 1
            if seen["finished"] == count:
                raise KeyboardInterrupt

        return listen

    fitted = []
    for on in ("ray", "local", "ray"):
        with pytest.raises(KeyboardInterrupt):
            run_queue(plan(), tmp_path, on=on, report=stop_after(3))
        fitted.append(len(list(tmp_path.glob("clients/**/client-*.safetensors"))))
    assert fitted == [3, 6, 9]
    assert run_queue(plan(), tmp_path, on="ray").kept == 9
    assert {bank: (tmp_path / bank).read_bytes() for bank in BANKS} == local


def test_what_is_finished_asks_nothing_of_the_cluster(cluster: Any, tmp_path: Path) -> None:
    run_queue(plan(), tmp_path)
    outcome = run_queue(plan(), tmp_path, on="ray")
    assert (outcome.fitted, outcome.kept) == (0, 16)
