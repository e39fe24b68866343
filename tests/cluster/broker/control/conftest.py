"""The ZooKeeper of the metadata tests, for planes that run on a real one."""

from __future__ import annotations

from tests.cluster.metadata.conftest import zookeeper

__all__ = ["zookeeper"]
