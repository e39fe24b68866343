"""Writes the ``--nodes`` file and the pid files with which a ``gapless run --target`` breaks brokers of ``gapless up``.

Owns their paths and contents. Does not own the form of the file (``chaos.conductor.nodes_file``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster.process import invocation
from verifier.evidence.run_directory import write_text_atomic

NODES = "nodes.yaml"
PID_FILE = "broker.pid"


def nodes_yaml(brokers: Iterable[int], data: Path) -> str:
    """The text of the ``--nodes`` file for these brokers. ``data`` must be an absolute path. Pure."""
    shared = {
        "pid_file": str(data / "nodes" / "{id}" / PID_FILE),
        "start": invocation.absolute(["start", "{id}", "--data", str(data)]),
    }
    # a JSON string is also a YAML string
    commands = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in shared.items())
    nodes = "".join(f"  {broker}:\n" for broker in brokers)
    return f"commands:\n{commands}nodes:\n{nodes}"


def write_nodes(pids: Mapping[int, int], data: Path) -> None:
    """Write the files for the brokers that run now. ``pids`` maps broker ids to process ids. Raises ``OSError``."""
    for broker, pid in pids.items():
        home = data / "nodes" / str(broker)
        home.mkdir(parents=True, exist_ok=True)
        write_text_atomic(home / PID_FILE, f"{pid}\n")
    write_text_atomic(data / NODES, nodes_yaml(pids, data))
