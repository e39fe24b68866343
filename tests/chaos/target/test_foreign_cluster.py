"""What a cluster of others leaves to a run, and a run to it: copies of segments, and no topic that it made."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from chaos.conductor.foreign_cluster import ForeignCluster, copy_replica
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import resolve
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

    async def close(self):
        pass


def cluster(directory, admin, *replica_dirs):
    asked = Asked(seed=3, target="kafka://h:1", faults="none", replica_dirs=replica_dirs)
    observer = SimpleNamespace(admin=lambda _timeout_ms: admin)
    return ForeignCluster(resolve(asked)[0], RunDirectory(directory), None, observer, None)


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


def test_only_what_the_run_made_is_deleted(tmp_path):
    """A run that never made its topic deletes nothing; a topic that cannot be deleted is told."""
    admin = FakeAdmin()
    assert asyncio.run(cluster(tmp_path, admin).collect([], [])) == []
    assert admin.deleted == []
    [problem] = asyncio.run(cluster(tmp_path, FakeAdmin(refuses=True)).collect([], [TopicSpec("gapless-3", 1, 2)]))
    assert "topic gapless-3 could not be deleted" in problem
