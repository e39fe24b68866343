"""Which files belong to nothing that a run declared."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from verifier.evidence.run_directory import RunDirectory
from verifier.strangers import strangers

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
    found = list(strangers(RunDirectory(tmp_path), SimpleNamespace(evidence=declared)))
    assert found == ([str(segment.relative_to(tmp_path))] if is_stranger else [])
