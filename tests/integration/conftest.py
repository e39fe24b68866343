"""One cluster for the tests that ask it as plain clients do: started once, ended for sure, each test its own topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.client import Admin
from tests.support.native_clients import new_topic
from tests.support.require import require
from tests.support.up_cluster import UpCluster, up_cluster


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpCluster]:
    """Three brokers of ``gapless up``, which nobody kills: whoever breaks brokers starts a cluster of its own."""
    require("java")
    with up_cluster(tmp_path_factory.mktemp("shared")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(shared_cluster: UpCluster) -> Iterator[Admin]:
    """Of the shared cluster."""
    with Admin({"bootstrap.servers": shared_cluster.bootstrap}) as made:
        yield made


@pytest.fixture
def topic(admin: Admin) -> str:
    """A new one in the shared cluster: one partition of three replicas."""
    return new_topic(admin)
