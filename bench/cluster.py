"""The cluster that benchmarks measure: real brokers without proxies, its topics, and whether all is in sync.

Owns the properties that benchmarks add, a broker by itself, the creation of topics, the look at their state, and what
their files leave in memory. Starting, killing and restarting brokers is the integration tests' ``LocalCluster``.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from tests.integration.local_cluster import LocalCluster

#: For a broker by itself.
ALONE = {"min.insync.replicas": "1", "default.replication.factor": "1"}


class PartitionStatus(NamedTuple):
    """What metadata says about one partition; -1 means that no broker leads it."""

    leader: int
    isr: frozenset[int]


@contextmanager
def one_broker(
    topics: Mapping[str, int],
    properties: Mapping[str, str] | None = None,
    bound: Callable[[LocalCluster], None] | None = None,
) -> Iterator[LocalCluster]:
    """A broker by itself, in a directory that is gone afterwards, with ``topics``: each name and its partitions.

    ``bound`` learns of it before a client does.
    """
    with (
        tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory,
        LocalCluster(directory, brokers=1, properties={**ALONE, **(properties or {})}) as cluster,
    ):
        if bound is not None:
            bound(cluster)
        create_topics(cluster.bootstrap, [NewTopic(name, count, 1) for name, count in topics.items()])
        yield cluster


def create_topics(bootstrap: str, topics: Sequence[NewTopic], timeout_s: float = 60.0) -> None:
    """Create topics and wait until the controller has answered. Raises ``KafkaException``."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "socket.timeout.ms": int(timeout_s * 1000)})
    answers = admin.create_topics(list(topics), request_timeout=timeout_s, operation_timeout=timeout_s)
    for answer in answers.values():
        answer.result(timeout_s)


def settle_disk(*directories: str) -> None:
    """Write everything to the disk, and drop the logs (``*.log``) below these directories from the page cache.

    So no turn pays for what former turns left to be written, and their memory is there to be used again: on a virtual
    machine memory that was never touched, or was given back to the host, has cost 12 us a page, ten times the copy.
    """
    os.sync()
    for path in (path for directory in directories for path in Path(directory).rglob("*.log")):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # the broker deleted it meanwhile
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def leaders_and_isrs(admin: AdminClient, topic: str, timeout_s: float = 5.0) -> dict[int, PartitionStatus]:
    """Partition -> its state, as some broker knows it. Raises ``KafkaException`` if none answers."""
    partitions = admin.list_topics(topic, timeout=timeout_s).topics[topic].partitions
    return {number: PartitionStatus(each.leader, frozenset(each.isrs)) for number, each in sorted(partitions.items())}


def wait_in_sync(admin: AdminClient, topic: str, replicas: int, timeout_s: float) -> dict[int, PartitionStatus]:
    """Wait until every partition has a leader and ``replicas`` in sync. Raises ``TimeoutError``."""
    deadline = time.monotonic() + timeout_s
    while True:
        asked = time.monotonic()
        try:
            state = leaders_and_isrs(admin, topic)
        except KafkaException:
            state = {}
        lacking = [number for number, each in state.items() if each.leader < 0 or len(each.isr) < replicas]
        if state and not lacking:
            return state
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {timeout_s} s {len(lacking)} of {len(state)} partitions are not in sync")
        # An ISR is asked for, it signals nothing. Metadata of many partitions are work, also for who is measured.
        time.sleep(max(0.05, 10 * (time.monotonic() - asked)))
