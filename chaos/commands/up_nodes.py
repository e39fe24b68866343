"""How ``gapless run --target`` breaks the brokers of a cluster that is up: the file for its ``--nodes``, and pid files.

Owns where they are and what they say. The form of the file is ``chaos.conductor.nodes_file``'s.
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
    """The file for the cluster of these brokers in this directory, an absolute path. Pure."""
    shared = {
        "pid_file": str(data / "nodes" / "{id}" / PID_FILE),
        "start": invocation.absolute(["start", "{id}", "--data", str(data)]),
    }
    # a text in JSON is one in YAML
    commands = "".join(f"  {name}: {json.dumps(value)}\n" for name, value in shared.items())
    nodes = "".join(f"  {broker}:\n" for broker in brokers)
    return f"commands:\n{commands}nodes:\n{nodes}"


def write_nodes(pids: Mapping[int, int], data: Path) -> None:
    """Make the files true of the brokers that run now, by their ids. Raises ``OSError``."""
    for broker, pid in pids.items():
        home = data / "nodes" / str(broker)
        home.mkdir(parents=True, exist_ok=True)
        write_text_atomic(home / PID_FILE, f"{pid}\n")
    write_text_atomic(data / NODES, nodes_yaml(pids, data))
