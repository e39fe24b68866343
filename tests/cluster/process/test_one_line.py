"""What the system refuses, in words."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from cluster.process.one_line import reason


def _refusal(path: Path) -> OSError:
    with pytest.raises(OSError, match=re.escape(str(path))) as refused:
        path.read_bytes()
    return refused.value


def test_a_reason_is_words_without_the_systems_number(tmp_path: Path) -> None:
    """What a person did is said as such; anything else in the system's own words."""
    (tmp_path / "file").touch()
    assert reason(_refusal(tmp_path / "absent")) == "there is no such file or directory"
    assert reason(_refusal(tmp_path)) == "it is a directory, not a file"
    assert reason(_refusal(tmp_path / "file" / "x")) == "a part of its path is a file"
    # asyncio's and those of a name that is not known
    assert reason(ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)")) == "connection refused"
    assert reason(socket.gaierror(-2, "Name or service not known")) == "name or service not known"
    assert reason(OSError("Multiple exceptions: [Errno 111] Connect call failed")) == (
        "multiple exceptions: Connect call failed"
    )
    assert reason(OSError()) == ""
