"""kio in a child process, asked many questions at a time. Owns the child; what it answers is judged by the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any


class Kio:
    """One child for all tests of a session: starting it costs more than a thousand messages."""

    def __init__(self) -> None:
        argv = [sys.executable, "-m", "tests.conformance.kio_child"]
        self._child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __repr__(self) -> str:
        return f"<Kio {self._child.pid}>"

    def ask(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The answers of ``kio_child`` to these jobs, in their order."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.write(json.dumps(jobs) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, "kio died of a message"
        return json.loads(line)

    def assert_same(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """kio reads each message to its end and writes the very same bytes; its answers, for what it read."""
        answers = self.ask(jobs)
        for job, answer in zip(jobs, answers, strict=True):
            assert "error" not in answer, (answer["error"], job)
            sent = job["batch"] if "batch" in job else job["hex"]
            assert (answer["hex"], answer["rest"]) == (sent, 0), job
        return answers

    def close(self) -> None:
        self._child.communicate(timeout=10)


def job(api_key: int, version: int, side: str, body: bytes) -> dict[str, Any]:
    """One message to be read and written again."""
    return {"api": int(api_key), "version": version, "side": side, "hex": bytes(body).hex()}


#: What kafka-python renamed: one schema has it for the cluster and one for each topic.
_RENAMED = {
    "cluster_authorized_operations": "authorized_operations",
    "topic_authorized_operations": "authorized_operations",
}


def by_common_names(value: Any) -> Any:
    """A tree of fields under names that both have: kio leaves the unit of a duration off, and reads no time as None."""
    if isinstance(value, list):
        return [by_common_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {_RENAMED.get(key, key.removesuffix("_ms")): by_common_names(item) for key, item in value.items()}
    if named.get("log_append_time", 0) is None:
        named["log_append_time"] = -1
    return named
