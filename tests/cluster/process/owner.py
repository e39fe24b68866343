"""An owner of children as a program of its own, so that tests can kill it. Prints one JSON line of what it started."""

from __future__ import annotations

import json
import os
import sys
import time

from cluster.process.supervisor import Supervisor

TARGETS = "tests.cluster.process.targets"


def everything(directory: str) -> None:
    """One child of every kind, two of them stopped."""
    supervisor = Supervisor(directory)
    temporary = supervisor.temporary_directory()
    listener = supervisor.start_python("listener", f"{TARGETS}:listen", {}, os.path.join(directory, "listener.log"))
    stubborn = supervisor.start_python("stubborn", f"{TARGETS}:refuse_to_end", {}, os.devnull)
    parent = supervisor.start_python("parent", f"{TARGETS}:start_a_stray", {}, os.devnull)
    supervisor.start_program("program", ["sleep", "600"])
    paused = supervisor.start_program("paused", ["sleep", "600"])
    port = listener.wait_message(30)["port"]
    stubborn.wait_message(30)
    stray = parent.wait_message(30)["stray"]
    stubborn.suspend()
    paused.suspend()
    children = [record.pid for record in supervisor.records()]
    wrappers = [record.wrapper_pid for record in supervisor.records() if record.wrapper_pid is not None]
    tell({"pids": [*children, *wrappers, stray], "port": port, "temporary": temporary})
    time.sleep(600)


def starting(directory: str) -> None:
    """Start children one after the other."""
    supervisor = Supervisor(directory)
    tell({"marker": next(name for name in os.environ if name.startswith("GAPLESS_SUPERVISOR"))})
    for _turn in range(40):
        supervisor.temporary_directory()
        supervisor.start_python("one", f"{TARGETS}:announce", {}, os.devnull)
        supervisor.start_program("two", ["sleep", "600"])
    time.sleep(600)


def interrupted(directory: str) -> None:
    """Start a child while Ctrl-C comes in: the interrupt arrives after it, and the child lives."""
    with Supervisor(directory) as supervisor:
        try:
            tell({"event": "starting"})
            for _turn in range(40):
                supervisor.start_python("one", f"{TARGETS}:announce", {}, os.devnull)
            tell({"messages": ["no interrupt came"], "running": []})
        except KeyboardInterrupt:
            messages = [child.wait_message(30)["event"] for child in supervisor.children]
            tell({"messages": messages, "running": [child.is_running() for child in supervisor.children]})


def tell(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    {"everything": everything, "starting": starting, "interrupted": interrupted}[sys.argv[1]](sys.argv[2])
