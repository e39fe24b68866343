"""A broker, or a cluster, of this tree or of another one, for benchmarks that compare before and after in one sitting.

Owns how a tree is found (a directory, or a commit that is unpacked for the time) and how its broker is started: in a
process whose modules are that tree's, by the same call for each, so that the trees are the only difference. The
interpreter and its libraries are those of the benchmark. Does not own what is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench.measure import ROOT

#: What the trees are called in the results.
NOW, BEFORE = "now", "before"

#: Runs in the other tree: nothing newer than ``one_broker`` may be asked of it.
_SERVE = """
import json, sys
from bench.cluster import one_broker
topics, properties = json.loads(sys.argv[1])
with one_broker(topics, properties) as cluster:
    print(json.dumps([cluster.children[1].pid, cluster.ports[1]["CLIENTS"], cluster.directory]), flush=True)
    sys.stdin.read()
"""

#: Likewise with ``LocalCluster``.
_SERVE_THREE = """
import json, sys, tempfile
from tests.integration.local_cluster import LocalCluster
with tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory, LocalCluster(directory) as cluster:
    pids = [child.pid for child in cluster.children.values()]
    print(json.dumps([pids, cluster.bootstrap, directory]), flush=True)
    sys.stdin.read()
"""


class LoneBroker(NamedTuple):
    """A broker by itself: its process, the port for clients, and the directory that holds its data."""

    pid: int
    port: int
    directory: str

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


class Cluster(NamedTuple):
    """Three brokers without proxies: their processes, where clients find them, and the directory of their data."""

    pids: list[int]
    bootstrap: str
    directory: str


@contextmanager
def unpacked(tree: str) -> Iterator[Path]:
    """The directory of ``tree``: itself, or where the files of a commit are as long as this is open.

    Ends the benchmark if it is neither.
    """
    if os.path.isdir(tree):
        yield Path(tree).resolve()
        return
    with tempfile.TemporaryDirectory(prefix="gapless-tree-") as directory:
        packed = subprocess.run(["git", "archive", tree], cwd=ROOT, capture_output=True, check=False)
        if packed.returncode:
            raise SystemExit(f"{tree} is neither a directory nor a commit: {packed.stderr.decode().strip()}")
        subprocess.run(["tar", "-x", "-C", directory], input=packed.stdout, check=True)
        yield Path(directory)


@contextmanager
def broker_of(
    tree: Path, topics: Mapping[str, int], properties: Mapping[str, str] | None = None
) -> Iterator[LoneBroker]:
    """A broker of ``tree`` with ``topics``: each name and its partitions."""
    with _served(tree, _SERVE, json.dumps([dict(topics), dict(properties or {})])) as said:
        yield LoneBroker(*said)


@contextmanager
def _served(tree: Path, program: str, *arguments: str) -> Iterator[list[Any]]:
    """What ``program``, which runs with the modules of ``tree``, says about what it serves for as long as this is
    open."""
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    argv = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(
        argv, cwd=tree, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"what was to be measured of {tree} did not start")
        try:
            yield json.loads(line)
        finally:
            process.stdin.close()


@contextmanager
def brokers(
    before: str | None, topics: Mapping[str, int], properties: Mapping[str, str] | None = None
) -> Iterator[dict[str, LoneBroker]]:
    """A broker of this tree, and one of the tree ``before`` if there is one, by name; ``properties`` are for ours."""
    with ExitStack() as stack:
        found = {NOW: stack.enter_context(broker_of(ROOT, topics, properties))}
        if before is not None:
            found[BEFORE] = stack.enter_context(broker_of(stack.enter_context(unpacked(before)), topics))
        yield found


@contextmanager
def clusters(before: str | None) -> Iterator[dict[str, Cluster]]:
    """A cluster of this tree, and one of the tree ``before`` if there is one, by name."""
    with ExitStack() as stack:
        found = {NOW: stack.enter_context(_cluster_of(ROOT))}
        if before is not None:
            found[BEFORE] = stack.enter_context(_cluster_of(stack.enter_context(unpacked(before))))
        yield found


@contextmanager
def _cluster_of(tree: Path) -> Iterator[Cluster]:
    with _served(tree, _SERVE_THREE) as said:
        yield Cluster(*said)
