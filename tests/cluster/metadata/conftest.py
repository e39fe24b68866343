"""A real ZooKeeper for the tests that want one, once per session of tests, ended with it."""

from __future__ import annotations

import itertools

import pytest

from cluster.process.java import find_java
from cluster.process.supervisor import Supervisor
from cluster.process.zookeeper import start_zookeeper
from tests.cluster.metadata.harness import MemoryHarness, ZooKeeperHarness
from tests.support.require import require

_roots = itertools.count()


@pytest.fixture(scope="package")
def zookeeper(tmp_path_factory):
    """(host, port) of a server with ticks of 200 ms on loopback."""
    require("java")
    directory = tmp_path_factory.mktemp("zookeeper")
    with Supervisor(str(directory)) as supervisor:
        handle = start_zookeeper(supervisor, str(directory / "server"), find_java(), tick_ms=200)
        yield handle.host, handle.port


@pytest.fixture(params=["memory", pytest.param("zookeeper", marks=pytest.mark.integration)])
def make_harness(request):
    """A function that makes the harness, to be called where a loop runs."""
    if request.param == "memory":
        return MemoryHarness
    address = request.getfixturevalue("zookeeper")
    return lambda: ZooKeeperHarness(address, f"/test{next(_roots)}")
