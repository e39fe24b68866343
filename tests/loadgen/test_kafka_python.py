"""kafka-python behind the final phase's tools: the same tasks, a second client. In children: it leaks sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadgen.settings import LoadSettings
from tests.loadgen.conftest import CHECKOUT, TOPIC, MockCluster
from verifier.evidence.history import history_file, read_history
from verifier.evidence.sequenced_value import SENTINEL_STREAM

pytestmark = pytest.mark.integration

PROGRAM = """
import sys
from loadgen.clients import kafka_python
for config in (kafka_python._CONSUMER, kafka_python._PRODUCER):
    config.update(api_version={api_version}, bootstrap_timeout_ms=1000)
import {module} as tool
sys.exit(tool.main())
"""


def run_tool(
    module: str,
    directory: Path,
    bootstrap: str,
    deadline_s: float,
    *more: str,
    api_version: tuple[int, int] | None = None,
) -> tuple[int, dict[str, Any], list[dict[str, Any]]]:
    """Exit status, printed object and history of one tool with ``--client kafka-python``."""
    settings = directory / "settings.json"
    given: dict[str, Any] = {"request.timeout.ms": 2000, "fetch.max.wait.ms": 50}
    LoadSettings(run_id=5, topic=TOPIC, producer_config=given, consumer_config=given).write(settings)
    history = directory / f"{module}.arrow"
    argv = ["--settings", settings, "--bootstrap", bootstrap, "--history", history, "--deadline-s", str(deadline_s)]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            PROGRAM.format(module=module, api_version=api_version),
            *map(str, argv),
            "--client",
            "kafka-python",
            *more,
        ],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=40,
    )
    table = read_history(history)
    assert history_file(table).closed, done.stderr
    return done.returncode, json.loads(done.stdout), table.to_pylist()


def test_sentinels_and_final_read(cluster: MockCluster, tmp_path: Path) -> None:
    """A sentinel in every partition, then read back at its very offset."""
    # the mock answers an ApiVersions request that is too new in a way that kafka-python does not expect
    version = (2, 3)
    status, offsets, rows = run_tool("loadgen.sentinel", tmp_path, cluster.bootstrap, 20, api_version=version)
    assert (status, offsets) == (0, {"0": 0, "1": 0, "2": 0, "3": 0})
    assert [row["type"] for row in rows if row["f"] == "sentinel"] == ["ok"] * 4
    through = json.dumps(offsets)
    status, result, rows = run_tool(
        "loadgen.final_read", tmp_path, cluster.bootstrap, 20, "--through", through, api_version=version
    )
    assert status == 0 and result["complete"] and result["records"] == 4 and result["errors"] == 0
    assert {row["stream"] - SENTINEL_STREAM for row in rows if row["f"] == "poll"} == {0, 1, 2, 3}
    # kafka-python tells where a partition ends, and nothing of what is stable
    assert {(row["high_watermark"], row["last_stable_offset"]) for row in rows if row["f"] == "poll"} == {(1, -1)}


def test_without_a_broker_the_deadline_holds(tmp_path: Path) -> None:
    """No broker answers: all is unknown or unread, status 1, and the history says why."""
    status, offsets, rows = run_tool("loadgen.sentinel", tmp_path, "127.0.0.1:1", 0.5)
    assert (status, set(offsets.values())) == (1, {None})
    assert all(row["error"] for row in rows if row["f"] == "sentinel")
    status, result, rows = run_tool("loadgen.final_read", tmp_path, "127.0.0.1:1", 0.5, "--through", '{"0": 0}')
    assert status == 1 and not result["complete"]
    assert {row["f"] for row in rows} == {"assign", "idle", "note"}
