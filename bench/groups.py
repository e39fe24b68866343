"""What groups cost: how fast many members share a topic, and how fast many groups are loaded by another coordinator.

    python -m bench groups [--members N] [--rounds N] [--groups N] [--kills N]

Three real brokers without proxies, profile ``chaos``. First, 100 members of one group subscribe to a topic of as many
partitions at the same time, in four processes, our own clients and librdkafka's in turns: from the first poll until
every member has its partition and knows it, less ``group.initial.rebalance.delay.ms``. Then the coordinator of 1,000
groups that have committed in 10 partitions each, all in one partition of ``__consumer_offsets``, is killed: from the
election of its successor until that has answered what a group has committed. All groups are compared. Owns the bars:
5 s and 3 s.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench.cluster import create_topics, wait_in_sync
from bench.measure import ROOT, Result, cpu_s, note, rotated
from cluster.broker.internal_topics import OFFSETS_TOPIC
from cluster.client import Admin
from cluster.config.profiles import CHAOS
from tests.integration.local_cluster import LocalCluster

CLIENTS = ("native", "confluent")
PROCESSES = 4
REPLICAS = 3
DELAY_S = int(CHAOS.broker["group.initial.rebalance.delay.ms"]) / 1000
JOIN_BAR_S = 5.0
LOAD_BAR_MS = 3000.0
#: How long a step may take at all: many times the bars.
LIMIT_S = 120.0
#: Of each group in the second part, and how often each is committed.
PARTITIONS, COMMITS = 10, 5


class MemberProcess:
    """Members in a process, and what they were assigned last. End it after use."""

    def __init__(self, client: str, count: int, bootstrap: str, group_id: str, topic: str) -> None:
        self.count = count
        self.begun_s: list[float] = []
        #: Member -> its partitions, and when it knew them.
        self.assigned: dict[int, tuple[tuple[int, ...], float]] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.members", client, str(count), bootstrap, group_id, topic],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<MemberProcess {self._process.pid}: {len(self.assigned)} of {self.count} assigned>"

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self) -> None:
        if not self._ready.wait(LIMIT_S):
            raise TimeoutError(f"{self} was not ready within {LIMIT_S:g} s")

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def leave(self) -> None:
        """Have all members leave; returns when they have."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(LIMIT_S)
        finally:
            self._process.kill()
        self._thread.join()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told: dict[str, Any] = json.loads(line)
            if "partitions" in told:
                self.assigned[told["member"]] = (tuple(told["partitions"]), told["known_s"])
            elif "begun_s" in told:
                self.begun_s.append(told["begun_s"])
            else:
                self._ready.set()


@contextmanager
def members_of(client: str, count: int, bootstrap: str, group_id: str, topic: str) -> Iterator[list[MemberProcess]]:
    """``count`` members, shared out among the processes, which are ready to begin."""
    shares = [len(range(number, count, PROCESSES)) for number in range(PROCESSES)]
    processes = [MemberProcess(client, share, bootstrap, group_id, topic) for share in shares]
    try:
        for process in processes:
            process.wait_ready()
        yield processes
    finally:
        for process in processes:
            process.leave()


def shared_out_s(processes: Sequence[MemberProcess], partitions: int) -> float | None:
    """When the last member knew its partition; None as long as they do not have one each, and all of them together."""
    every = [each for process in processes for each in list(process.assigned.values())]
    held = [partition for each, _ in every for partition in each]
    if len(every) < partitions or any(len(each) != 1 for each, _ in every) or len(set(held)) < partitions:
        return None
    return max(known_s for _, known_s in every)


def join(cluster: LocalCluster, result: Result, count: int, rounds: int) -> None:
    """The first part. Raises ``TimeoutError``."""
    topic = "members"
    create_topics(cluster.bootstrap, [NewTopic(topic, count, REPLICAS)], LIMIT_S)
    for round_number in range(-1, rounds):
        # the first one waits for the internal topic, and does not count
        for client in rotated(CLIENTS, round_number):
            with members_of(client, count, cluster.bootstrap, f"{client}-{round_number}", topic) as processes:
                before_s, clients_before_s = _brokers_cpu_s(cluster), sum(cpu_s(each.pid) for each in processes)
                for process in processes:
                    process.begin()
                deadline = time.monotonic() + LIMIT_S
                while (ended_s := shared_out_s(processes, count)) is None:
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"after {LIMIT_S:g} s not all members have their partition: {processes}")
                    time.sleep(0.02)  # coarser than waking for every line
                begun_s = min(each for process in processes for each in process.begun_s)
                took_s = ended_s - begun_s - DELAY_S
                cpu = _brokers_cpu_s(cluster) - before_s
                clients_cpu = sum(cpu_s(each.pid) for each in processes) - clients_before_s
            note(f"{client}: {count} members assigned {took_s:.2f} s after the delay")
            if round_number >= 0:
                result.add(f"{count} members assigned, {client}", "s", took_s)
                result.add(f"{count} members assigned, {client}, CPU of all brokers", "s", cpu)
                result.add(f"{count} members assigned, {client}, CPU of all clients", "s", clients_cpu)
    result.ratios("assigned, native to confluent", *(f"{count} members assigned, {client}" for client in CLIENTS))
    for client in CLIENTS:
        most = max(result[f"{count} members assigned, {client}"].values)
        result.bar(f"seconds beyond the delay, {count} {client} members, the slowest round", most, at_most=JOIN_BAR_S)


def _brokers_cpu_s(cluster: LocalCluster) -> float:
    return sum(cpu_s(child.pid) for child in cluster.children.values())


def commit_all(bootstrap: str, groups: Sequence[str], topic: str) -> dict[str, dict[tuple[str, int], int]]:
    """What each group has committed afterwards, in the end."""
    expected: dict[str, dict[tuple[str, int], int]] = {}
    with Admin({"bootstrap.servers": bootstrap}) as admin:
        for number in range(COMMITS):
            for at, group_id in enumerate(groups):
                expected[group_id] = {(topic, partition): number * 1000 + at for partition in range(PARTITIONS)}
                admin.alter_group_offsets(group_id, expected[group_id])
    return expected


def load(cluster: LocalCluster, result: Result, count: int, kills: int) -> None:
    """The second part. Raises ``TimeoutError``; ends the benchmark if a group has lost anything."""
    topic, groups = "committed", [f"group-{number}" for number in range(count)]
    create_topics(cluster.bootstrap, [NewTopic(topic, PARTITIONS, REPLICAS)], LIMIT_S)
    begun_s = time.monotonic()
    expected = commit_all(cluster.bootstrap, groups, topic)
    note(f"{count} groups committed {COMMITS} times in {time.monotonic() - begun_s:.1f} s")
    looking = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 2})
    for turn in range(kills):
        victim = wait_in_sync(looking, OFFSETS_TOPIC, REPLICAS, LIMIT_S)[0].leader
        with Admin({"bootstrap.servers": cluster.bootstrap}) as admin:
            killed_ns = time.monotonic_ns()
            cluster.kill(victim)
            told = {groups[0]: admin.list_group_offsets(groups[0])}
            served_ms = (time.monotonic_ns() - killed_ns) / 1e6
            told |= {group_id: admin.list_group_offsets(group_id) for group_id in groups[1:]}
            all_ms = (time.monotonic_ns() - killed_ns) / 1e6
        found = {group_id: {place: each.offset for place, each in some.items()} for group_id, some in told.items()}
        if found != expected:
            raise SystemExit(f"{sum(found[each] != expected[each] for each in groups)} groups lost what they committed")
        elected_ms = _elected_ms(cluster, killed_ns)
        result.add("kill to the election", "ms", elected_ms)
        result.add(f"election to the first of {count} groups served", "ms", served_ms - elected_ms)
        result.add(f"the first to all of {count} groups, one by one", "ms", all_ms - served_ms)
        result.add("loading, as the broker tells", "ms", _loaded_ms(cluster, victim, count))
        note(f"kill {turn + 1}: broker {victim}, elected after {elected_ms:.0f} ms, served after {served_ms:.0f} ms")
        cluster.restart(victim)
    most = max(result[f"election to the first of {count} groups served"].values)
    result.bar(f"ms from the election until {count} groups are loaded, the slowest kill", most, at_most=LOAD_BAR_MS)


def _loaded_ms(cluster: LocalCluster, victim: int, count: int) -> float:
    """What a broker that is alive last told of the loading."""
    line = re.compile(rf"(\S+ \S+) .*\b(\d+) groups of {OFFSETS_TOPIC}-0, (\d+) ms")
    logs = [Path(cluster.node(each), "broker.log") for each in cluster.broker_ids if each != victim]
    told = [found.groups() for log in logs for found in map(line.search, log.read_text().splitlines()) if found]
    return float(max((time_text, ms) for time_text, groups, ms in told if int(groups) >= count)[1])


def _elected_ms(cluster: LocalCluster, killed_ns: int) -> float:
    """When a controller noted the new leader of the groups' partition, in ms after the kill."""
    events = [
        json.loads(line)
        for each in cluster.broker_ids
        for line in Path(cluster.node(each), "control.jsonl").read_text().splitlines()[-2000:]
    ]
    times = [
        (event["monotonic_ns"] - killed_ns) / 1e6
        for event in events
        if event["event"] == "partition-changed" and event["topic"] == OFFSETS_TOPIC and event["leader"] >= 0
    ]
    return float(min(each for each in times if each > 0))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3, help="of joins (3)")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=3, help="of the coordinator (3); 0 leaves that part out")
    options = parser.parse_args()
    settings = {"members": options.members, "groups": options.groups, "partitions of a group": PARTITIONS}
    result = Result("groups", {**settings, "commits of a group": COMMITS, "delay s": DELAY_S})
    properties = {"offsets.topic.num.partitions": "1"}
    with tempfile.TemporaryDirectory(prefix="gapless-bench-") as directory:
        with LocalCluster(directory, properties=properties) as cluster:
            join(cluster, result, options.members, options.rounds)
            if options.kills:
                load(cluster, result, options.groups, options.kills)
    return result.finish()


if __name__ == "__main__":
    sys.exit(main())
