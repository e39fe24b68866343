"""How ``gapless run --target`` breaks the brokers of a cluster that is up: the file for its ``--nodes``, and pid files.

Owns where they are and what they say. The form of the file is ``chaos.conductor.nodes_file``'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cluster.process import invocation
from verifier.evidence.run_directory import write_text_atomic

NODES = "nodes.yaml"
PID_FILE = "broker.pid"


def nodes_yaml(state: Mapping[str, Any], data: Path) -> str:
    """The file for the cluster of this state (``up_state.state_of``) in this directory, both absolute. Pure."""
    shared = {
        "pid_file": str(data / "nodes" / "{id}" / PID_FILE),
        "start": invocation.absolute(["start", "{id}", "--data", str(data)]),
    }
    brokers = {int(each["id"]): None for each in state["brokers"]}
    return yaml.safe_dump({"commands": shared, "nodes": brokers}, sort_keys=False)


def write_nodes(state: Mapping[str, Any], data: Path) -> None:
    """Make the files true of the brokers that run now. Raises ``OSError``."""
    for each in state["brokers"]:
        home = data / "nodes" / str(each["id"])
        home.mkdir(parents=True, exist_ok=True)
        write_text_atomic(home / PID_FILE, f"{each['pid']}\n")
    write_text_atomic(data / NODES, nodes_yaml(state, data))
