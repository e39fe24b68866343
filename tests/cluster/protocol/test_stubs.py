"""What mypy is told of messages is what the schemas say."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cluster.protocol.stubs import stub
from tests.architecture.sources import ROOT


def test_the_stub_is_made_from_the_schemas() -> None:
    """message_classes.pyi is what ``python -m cluster.protocol.stubs`` writes; run that after a change."""
    assert (ROOT / "cluster" / "protocol" / "message_classes.pyi").read_text(encoding="utf-8") == stub()


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("MetadataRequest", "topics: Sequence[MetadataRequestTopic] | None"),  # null in versions 1 and newer
        ("SyncGroupRequest", "protocol_name: str | None"),
        ("DeleteTopicsRequest", "timeout_ms: int"),
        ("AlterPartitionRequest", "topics: Sequence[TopicData]"),
        ("DescribeClusterResponse", "authorized_operations: set[int] | None"),
        # Null in versions that no one is served.
        ("DescribeLogDirsResponse", "error_code: int"),
    ],
)
def test_a_field_has_the_type_that_it_may_have(name: str, field: str) -> None:
    """None is among it where a version that is served has null, or where the field is None when it is absent."""
    body = stub().partition(f"\nclass {name}(")[2].partition("\n\nclass ")[0]
    assert f"\n    {field} = ...\n" in body + "\n"


def test_a_request_names_its_answer() -> None:
    """Whoever asks knows the type of what comes back."""
    assert "\nclass HeartbeatRequest(Request[HeartbeatResponse]):\n" in stub()


def test_the_stub_is_formatted() -> None:
    """ruff has nothing to change in what is generated."""
    command = [sys.executable, "-m", "ruff", "format", "--check", "--stdin-filename", "message_classes.pyi", "-"]
    done = subprocess.run(command, input=stub(), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
