"""The door to kafka-python lets no warning out, in a process where nothing else has imported it yet."""

from __future__ import annotations

import subprocess
import sys


def test_messages_can_be_imported_where_warnings_are_errors():
    """kafka-python reads its schemas with a call that Python 3.11 calls deprecated; that is nobody's concern."""
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import cluster.protocol.messages"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
