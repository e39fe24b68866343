"""Parses the file of ``--nodes``, which says how each broker is killed, paused and started. Pure.

Owns the form of the file. Does not run the commands (``chaos.conductor.nodes``).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import Any

from loadgen.documents import DocumentError, load_yaml


class NodesError(ValueError):
    """The file is malformed. The message names the field."""


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """What the file says about one broker; "" for a field that is not set.

    Commands are split into words as a shell would, but run without a shell.
    """

    pid_file: str = ""
    kill: str = ""
    pause: str = ""
    resume: str = ""
    start: str = ""
    #: exits with 0 while the broker runs
    alive: str = ""


FIELDS = tuple(each.name for each in fields(NodeSpec))
COMMANDS = tuple(name for name in FIELDS if name != "pid_file")


def parse(text: str) -> dict[int, NodeSpec]:
    """The brokers of the file, by id. Raises NodesError.

    The entries below ``commands`` apply to every broker that does not override them. ``{id}`` in a value is replaced by
    the broker's id.
    """
    try:
        whole = load_yaml(text)
    except DocumentError as error:
        raise NodesError(str(error)) from error
    if not isinstance(whole, dict) or not isinstance(whole.get("nodes"), dict) or not whole["nodes"]:
        raise NodesError("it needs 'nodes', which maps each broker's id to its pid_file or commands")
    if unknown := set(whole) - {"nodes", "commands"}:
        raise NodesError(f"it has no {min(map(str, unknown))!r}; it takes nodes and commands")
    shared = _fields("commands", whole.get("commands"))
    found: dict[int, NodeSpec] = {}
    for number, own in whole["nodes"].items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise NodesError(f"nodes: {number!r} is not a broker's id")
        said = {
            name: value.replace("{id}", str(number))
            for name, value in (shared | _fields(f"nodes.{number}", own)).items()
        }
        spec = NodeSpec(**said)
        _check_quotes(number, spec)
        if not spec.pid_file and not spec.alive:
            raise NodesError(f"nodes.{number}: without a pid_file it needs 'alive', which exits with 0 while it runs")
        missing = [name for name in ("kill", "pause", "resume") if not spec.pid_file and not getattr(spec, name)]
        if missing:
            raise NodesError(f"nodes.{number}: without a pid_file it needs {', '.join(map(repr, missing))}")
        if not spec.start:
            raise NodesError(f"nodes.{number}: it needs 'start', because a broker that was killed must come back")
        found[number] = spec
    return found


def _check_quotes(number: int, spec: NodeSpec) -> None:
    for name in COMMANDS:
        try:
            shlex.split(getattr(spec, name))
        except ValueError as error:
            raise NodesError(f"nodes.{number}.{name}: {error}") from error


def _fields(where: str, given: Any) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise NodesError(f"{where} must be a mapping with some of {', '.join(FIELDS)}")
    for name, value in given.items():
        if name not in FIELDS:
            raise NodesError(f"{where} has no {name!r}; it takes {', '.join(FIELDS)}")
        if not isinstance(value, str) or not value.strip():
            raise NodesError(f"{where}.{name} must be text, not {value!r}")
    return dict(given)
