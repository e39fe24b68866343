"""What a cluster of others leaves to a run, and a run to it: copies of segments, and no topic that it made."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from chaos.conductor import nodes
from chaos.conductor.breakable_cluster import BreakableCluster
from chaos.conductor.foreign_cluster import ForeignCluster, copy_replica
from chaos.conductor.returned import bring_back
from chaos.conductor.starting import StartFailure
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
from chaos.faults.breakable import ProcessLife
from chaos.faults.reaction import ClusterReaction
from cluster.client.errors import AdminError
from cluster.protocol.errors import ErrorCode
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.run_model import FinalPartition, TopicSpec


class FakeAdmin:
    """Notes which topics are deleted, or refuses."""

    def __init__(self, refuses=False):
        self.deleted, self.refuses = [], refuses

    async def delete_topics(self, names):
        if self.refuses:
            raise AdminError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")
        self.deleted += names

    async def describe(self, names):
        return {name: SimpleNamespace(topic_id="of-others") for name in names}

    async def close(self):
        pass


def cluster(directory, admin, *replica_dirs, nodes=None, note=None):
    asked = Asked(seed=3, target="kafka://h:1", faults="none", replica_dirs=replica_dirs, nodes=nodes)
    observer = SimpleNamespace(admin=lambda _timeout_ms: admin)
    return ForeignCluster(resolve(asked)[0], RunDirectory(directory), None, observer, None, note)


def test_segments_are_copied_and_nothing_that_changes(tmp_path):
    """Of a replica the segments and the topic's id are taken; a directory without a segment is an error."""
    source = tmp_path / "t-0"
    source.mkdir()
    with pytest.raises(FileNotFoundError, match="no segment"):
        copy_replica(source, tmp_path / "copy")
    kept = ("00000000000000000000.log", "partition.metadata")
    for name in (*kept, "00000000000000000000.index", "leader-epoch-checkpoint"):
        (source / name).write_text(name)
    copy_replica(source, tmp_path / "copy")
    assert {path.name for path in (tmp_path / "copy").iterdir()} == {*kept}


def test_what_is_missing_is_a_problem(tmp_path):
    """A replica directory without the topic makes the run incomplete, and the topic is deleted nevertheless."""
    admin = FakeAdmin()
    final = FinalPartition("gapless-3", 0, leader=1, log_end_offsets={1: 4, 2: 4})
    whole = cluster(tmp_path / "run", admin, f"1={tmp_path}/none")
    problems = asyncio.run(whole.collect([final], [TopicSpec("gapless-3", 1, 2)]))
    assert len(problems) == 1 and "gapless-3-0 cannot be read" in problems[0]
    assert admin.deleted == ["gapless-3"]


def test_a_leader_that_was_not_there_at_the_start_is_a_problem(tmp_path):
    """A broker that joined later has no address that the run knows: its log is missing, and all else is done."""
    admin = FakeAdmin()
    final = FinalPartition("gapless-3", 0, leader=9, log_end_offsets={9: 4}, status="ok")
    problems = asyncio.run(cluster(tmp_path, admin).collect([final], [TopicSpec("gapless-3", 1, 1)]))
    assert problems == ["the log of gapless-3-0 could not be fetched: broker 9 was not in the cluster at the start"]
    assert admin.deleted == ["gapless-3"]


def test_only_what_the_run_made_is_deleted(tmp_path):
    """A run that never made its topic deletes nothing; a topic that cannot be deleted is told."""
    admin = FakeAdmin()
    assert asyncio.run(cluster(tmp_path, admin).collect([], [])) == []
    assert admin.deleted == []
    [problem] = asyncio.run(cluster(tmp_path, FakeAdmin(refuses=True)).collect([], [TopicSpec("gapless-3", 1, 2)]))
    assert "topic gapless-3 could not be deleted" in problem


@pytest.mark.parametrize(("topic_id", "deleted"), [("of-others", ["gapless-3"]), ("of-the-run", [])])
def test_a_topic_that_others_created_again_is_not_deleted(tmp_path, topic_id, deleted):
    """It is another topic with the name of the run's own, and belongs to them."""
    admin = FakeAdmin()
    problems = asyncio.run(cluster(tmp_path, admin).collect([], [TopicSpec("gapless-3", 1, 2, topic_id)]))
    assert admin.deleted == deleted
    assert [each[:33] for each in problems] == ["topic gapless-3 is not deleted: o"] * (not deleted)


def of_commands(tmp_path, alive):
    """A cluster whose two brokers are asked by this command, and what is said meanwhile."""
    said = {"kill": "true", "pause": "true", "resume": "true", "start": "true", "alive": alive}
    (tmp_path / "n.yaml").write_text(f"commands: {json.dumps(said)}\nnodes: {{1: , 2: }}")
    noted = []
    whole = cluster(tmp_path, FakeAdmin(), nodes=str(tmp_path / "n.yaml"), note=noted.append)
    whole.broker_ids = (1, 2)
    return whole, noted


def test_a_broker_is_asked_off_the_event_loop_and_a_doubt_is_said_once(tmp_path, monkeypatch):
    """While a command of others takes its time, the conductor does what else it has to do."""
    monkeypatch.setattr(nodes, "ALIVE_S", 0.5)
    whole, noted = of_commands(tmp_path, "sleep 20")

    async def asked_twice():
        ticks, over = 0, asyncio.Event()

        async def tick():
            nonlocal ticks
            while not over.is_set():
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        lives = [await whole.life(1), await whole.life(1), await whole.life(2)]
        over.set()
        await ticking
        return lives, ticks

    lives, ticks = asyncio.run(asked_twice())
    assert lives == [ProcessLife.UNKNOWN] * 3 and ticks > 20
    assert noted == [
        f"broker {each}: 'sleep 20' took longer than 0.5 s: it is not known whether this broker runs" for each in (1, 2)
    ]


@pytest.mark.parametrize(("alive", "problems"), [("true", 0), ("sh -c 'exit 255'", 0), ("false", 1)])
def test_only_a_broker_that_is_known_to_have_ended_is_reported_and_started(tmp_path, monkeypatch, alive, problems):
    """After the last fault, a command that tells nothing neither makes a broker's end up nor ends the run."""
    monkeypatch.setattr(nodes, "START_S", 0.1)
    whole, _ = of_commands(tmp_path, alive)
    told = []
    with pytest.raises(StartFailure, match="broker 1 does not run") if problems else nullcontext():
        asyncio.run(bring_back(whole, told.append))
    assert len(told) == problems


@pytest.mark.parametrize("is_own", [True, False])
def test_what_others_have_coordinated_is_not_hit(tmp_path, is_own):
    """In a cluster of others, faults on coordinators choose among the ids of the run's own load."""
    known = {"gapless-3-producers-0": 1, "payments": 2}

    class Survey:
        async def in_use(self, kind):
            return known

    observer = SimpleNamespace(coordinators=Survey)
    deployment = SimpleNamespace(is_own=is_own, links=None, broker_ids=(1, 2), link_names=())
    whole = BreakableCluster(deployment, observer, RunDirectory(tmp_path), "t", 1, 6_000)
    found = asyncio.run(whole.coordinated("transaction"))
    assert found.keys() == ({*known} if is_own else {"gapless-3-producers-0"})


def test_how_a_cluster_of_others_reacted_is_told_by_its_leader_epochs(tmp_path):
    """It has no journals in the run's directory."""
    view = SimpleNamespace(partitions={0: SimpleNamespace(leader_epoch=4), 1: SimpleNamespace(leader_epoch=2)})

    async def seen():
        return view

    deployment = SimpleNamespace(is_own=False, links=None, broker_ids=(1, 2), link_names=())
    whole = BreakableCluster(deployment, SimpleNamespace(view=seen), RunDirectory(tmp_path), "t", 2, 6_000)
    assert asyncio.run(whole.reaction()) == ClusterReaction(6, None)
