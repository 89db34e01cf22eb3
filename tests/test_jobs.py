"""Jobs: done one after the other here, or anywhere on a cluster of which a node may go down, with the same results."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airchoir.jobs import Note, check_place, run


def squares() -> Callable[[int, Note], int]:
    return lambda job, note: job * job


# --- here


def test_every_job_is_done_in_order_with_its_result() -> None:
    assert list(run(range(4), squares)) == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert list(run([], squares)) == []


def test_the_work_is_made_once_and_only_if_there_is_some() -> None:
    made: list[str] = []

    def start() -> Callable[[int, Note], int]:
        made.append("made")
        return squares()

    assert list(run([], start)) == []
    assert made == []
    list(run(range(3), start))
    assert made == ["made"]


def test_a_job_is_taken_only_when_the_one_before_is_done() -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for job in range(3):
            taken.append(job)
            yield job

    for job, _ in run(jobs(), squares):
        assert taken == list(range(job + 1))


def test_what_a_job_says_arrives_at_once_between_its_begin_and_its_end() -> None:
    heard: list[Any] = []

    def start() -> Callable[[int, Note], str]:
        def work(job: int, note: Note) -> str:
            note("half")
            assert heard[-1] == (job, "half")
            return "done"

        return work

    for job, result in run([7, 8], start, began=heard.append, note=lambda job, said: heard.append((job, said))):
        heard.append((job, result))
    assert heard == [7, (7, "half"), (7, "done"), 8, (8, "half"), (8, "done")]


def test_an_error_ends_it_as_it_is() -> None:
    def start() -> Callable[[int, Note], int]:
        return lambda job, note: 1 // job

    done = run([1, 0, 1], start)
    assert next(done) == (1, 1)
    with pytest.raises(ZeroDivisionError):
        next(done)


@pytest.mark.parametrize("place", ["moon", "", "Ray", "ray:", "rays://x", "http://x"])
def test_a_place_that_is_none_is_refused_with_those_there_are(place: str) -> None:
    with pytest.raises(ValueError, match=r"\Aunknown place .*Known: local, ray, ray://HOST:PORT\Z"):
        check_place(place)


@pytest.mark.parametrize("place", ["ray", "ray://head:10001"])
def test_a_cluster_without_ray_is_refused_with_the_way_to_get_it(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"needs Ray, which is not installed; run: pip install 'airchoir\[cluster\]'"):
        run([], squares, on=place)


# --- on a cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A Ray cluster on this machine: a head with one processor, another node with two, a third with a GPU's name."""
    ray = pytest.importorskip("ray", reason="needs airchoir[cluster]; run make test-all")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    made.add_node(num_cpus=2)
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    try:
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


ON_RAY = pytest.mark.filterwarnings("ignore")  # Ray's own


@ON_RAY
def test_a_cluster_gives_the_results_and_the_notes_of_one_process(cluster: Any) -> None:
    def start() -> Callable[[int, Note], int]:
        def work(job: int, note: Note) -> int:
            note(f"{job} half")
            return job * job

        return work

    def everything(on: str) -> tuple[list[Any], list[Any], list[Any]]:
        began: list[Any] = []
        notes: list[Any] = []
        done = list(run(range(9), start, on=on, began=began.append, note=lambda job, said: notes.append((job, said))))
        return sorted(began), sorted(notes), sorted(done)

    assert everything("ray") == everything("local")
    assert list(run([], start, on="ray")) == []


@ON_RAY
def test_a_job_that_is_lost_with_its_node_is_done_again_elsewhere(cluster: Any, tmp_path: Path) -> None:
    node = cluster.add_node(num_cpus=2)
    lost = node.node_id
    go = tmp_path / "go"

    def start() -> Callable[[int, Note], str]:
        def work(job: int, note: Note) -> str:
            import time

            import ray

            here = str(ray.get_runtime_context().get_node_id())
            while not go.exists() or here == lost:  # there no job ever ends
                time.sleep(0.01)
            return here

        return work

    began: list[int] = []

    def begin(job: int) -> None:
        began.append(job)
        if len(began) == 5:  # every processor of the cluster has a job, and none is done
            cluster.remove_node(node, allow_graceful=False)
            go.touch()

    done = list(run(range(12), start, on="ray", began=begin))
    assert sorted(job for job, _ in done) == list(range(12))
    assert lost not in {where for _, where in done}
    assert len(began) == 14
    assert set(began) == set(range(12))


@ON_RAY
def test_an_error_on_a_cluster_is_the_error_itself(cluster: Any) -> None:
    def start() -> Callable[[int, Note], int]:
        def work(job: int, note: Note) -> int:
            if job == 3:
                raise ValueError("job 3 is no good; leave it out")
            return job

        return work

    with pytest.raises(ValueError, match=r"\Ajob 3 is no good; leave it out\Z"):
        list(run(range(9), start, on="ray"))

    def unable() -> Callable[[int, Note], int]:
        raise ValueError("no model here; copy one")

    with pytest.raises(ValueError, match=r"\Ano model here; copy one\Z"):
        list(run(range(9), unable, on="ray"))


@ON_RAY
def test_a_job_that_takes_its_process_down_again_and_again_is_named(cluster: Any) -> None:
    def start() -> Callable[[int, Note], int]:
        def work(job: int, note: Note) -> int:
            import os

            os._exit(1)

        return work

    with pytest.raises(ValueError, match=r"\A7 was lost 6 times \(.*\); look into ") as caught:
        list(run([7], start, on="ray"))
    assert "\n" not in str(caught.value)


@ON_RAY
def test_jobs_share_a_gpu_by_fractions_where_there_is_one(cluster: Any) -> None:
    def start() -> Callable[[int, Note], dict[str, float]]:
        def work(job: int, note: Note) -> dict[str, float]:
            import ray

            return dict(ray.get_runtime_context().get_assigned_resources())

        return work

    taken = [resources for _, resources in run(range(4), start, on="ray", gpus=0.25)]
    assert {resources.get("GPU") for resources in taken} == {None}
    node = cluster.add_node(num_cpus=4, num_gpus=1)
    try:
        taken = [resources for _, resources in run(range(8), start, on="ray", gpus=0.25)]
    finally:
        cluster.remove_node(node, allow_graceful=False)
    assert {resources["GPU"] for resources in taken} == {0.25}


@ON_RAY
def test_a_job_too_large_for_every_node_is_refused(cluster: Any) -> None:
    with pytest.raises(ValueError, match="no node of the Ray cluster has 99 CPU for a job; add a node"):
        list(run(range(2), squares, on="ray", cpus=99.0))


@ON_RAY
def test_whoever_stops_listening_gives_the_cluster_back(cluster: Any) -> None:
    import ray

    done = run(range(100), squares, on="ray")
    next(done)
    done.close()  # type: ignore[attr-defined]
    assert len(list(run(range(5), squares, on="ray"))) == 5
    assert ray.is_initialized()
