"""Which files belong to nothing that a run declared."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from verifier.closing.strangers import strangers
from verifier.evidence.run_directory import RunDirectory

LOG = "00000000000000000000.log"


@pytest.mark.parametrize(
    ("name", "is_stranger"),
    [
        ("data/t-0", False),
        ("data/t-1", True),
        ("data/__consumer_offsets-0", False),
        ("data/__consumer_offsets-49", False),
        ("data/__transaction_state-49", False),
        ("data/__consumer_offsets-x", True),
        ("data/__transaction_state-x", True),
        ("data/my__consumer_offsets-0", True),
        ("data/__consumer_offsets-0-1", True),
    ],
)
def test_partitions(tmp_path: Path, name: str, is_stranger: bool) -> None:
    """A broker has those that were declared, and the brokers' own topics of offsets and transactions."""
    segment = tmp_path / "nodes" / "1" / name / LOG
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"")
    declared = SimpleNamespace(processes=[SimpleNamespace(name="p", child="c")], brokers=[1], replicas={"t-0": [1]})
    run = SimpleNamespace(evidence=declared, settings=SimpleNamespace(target=None))
    found = list(strangers(RunDirectory(tmp_path), run))
    assert found == ([str(segment.relative_to(tmp_path))] if is_stranger else [])


@pytest.mark.parametrize("target", [None, "kafka://h:1"])
def test_a_cluster_of_others_leaves_logs_alone(tmp_path: Path, target: str | None) -> None:
    """A run that claims one, so that less is asked, has no journal of a broker, and no ZooKeeper."""
    names = ("1/data/t-0/" + LOG, "1/control.jsonl", "1/broker.log", "zookeeper/zookeeper.log")
    for name in names:
        path = tmp_path / "nodes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    declared = SimpleNamespace(processes=[SimpleNamespace(name="p", child="c")], brokers=[1], replicas={"t-0": [1]})
    run = SimpleNamespace(evidence=declared, settings=SimpleNamespace(target=target))
    found = list(strangers(RunDirectory(tmp_path), run))
    assert found == ([] if target is None else sorted(f"nodes/{name}" for name in names[1:]))
