"""Valid runs to tamper with: small stories, with everything beside them that a real run leaves. Owns what they are.

``plain`` had two faults that bit. ``elected`` and ``repeated`` hold anomalies that an event in the evidence excuses,
``deleted`` lacks records that a client had deleted: damage to that event or that request must not make them invalid.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import crc32c

from tests.evidence.records import PRODUCERS
from tests.support.settings import settings
from tests.support.stories import MADE_MS, SECOND, Batch, Story, clean
from tests.verifier.planted import planted_story
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory, append_json_line

LOG = "2023-11-14 22:13:20,000 INFO broker started\n2023-11-14 22:13:21,000 INFO t-0: leader epoch 1\n"


def plain() -> Story:
    """Two partitions in several segments, two faults, two final readers."""
    story = clean(partitions=2, streams=4, batches=6, final_readers=2)
    story.split_at, story.index_interval = 5, 1
    for number in story.partitions:
        story.everywhere(number, _at_different_times)
    story.faults_requested = ["kill-leader", "cut-link"]
    story.faults = [*_fault(0, "kill-leader", {"pid": 101, "steps": [{"pid": 101}]}), *_fault(1, "cut-link", {})]
    story.settings = replace(settings(), rate=0.0)
    return _led(story)


def _at_different_times(batches: list[Batch]) -> None:
    """A second from one to the next, or a time index has a single entry."""
    batches[:] = [replace(each, timestamp_ms=MADE_MS + 1000 * at) for at, each in enumerate(batches)]


def elected() -> Story:
    """acks=1, and an election cut records off."""
    story = planted_story("cut off by an election")
    story.partitions[0].leader_epoch = story.leaders[-1]["leader_epoch"]
    story.partitions[0].leader = story.leaders[-1]["leader"]
    return story


def repeated() -> Story:
    """No idempotence, and a retry stored records twice."""
    return _led(planted_story("repeated by a retry"))


def deleted() -> Story:
    """A client had records deleted; one follower had not yet carried it out."""
    return _led(planted_story("deleted by request"))


STORIES: dict[str, Callable[[], Story]] = {each.__name__: each for each in (plain, elected, repeated, deleted)}


def write(name: str, path: Path) -> RunDirectory:
    """Write this run, sealed as the conductor would."""
    story = STORIES[name]()
    directory = story.write(path)
    directory.schedule_yaml.write_text("name: story\nfaults: []\n", encoding="utf-8")
    (path / "proxy.log").write_text(LOG, encoding="utf-8")
    for broker in story.brokers:
        (directory.node(broker) / "broker.log").write_text(LOG, encoding="utf-8")
        loaded = {"event": "logs-loaded", "clean": True, "logs": 2, "bytes": 900, "elapsed_ms": 3.0}
        append_json_line(directory.control_jsonl(broker), loaded | {"unflushed_bytes": 0, "time_ns": SECOND})
        for epoch in (31, 32):
            registered = {"event": "registered", "broker_epoch": epoch, "monotonic_ns": epoch * SECOND // 10}
            append_json_line(directory.control_jsonl(broker), registered)
        _of_broker(directory, broker)
    for number in range(3):
        sample = {"time_ns": number * SECOND, "rss_bytes": {"broker-1": 50_000_000 + number}, "disk_free_bytes": 10**10}
        append_json_line(directory.resources_jsonl, sample)
    live = story.evidence().of_role("producers", "readers")
    for process in live:
        last = json.loads(directory.series_jsonl(process.name).read_text(encoding="utf-8").splitlines()[-1])
        earlier = {name: 0 if name.startswith("total_") else value for name, value in last.items()}
        series = [earlier | {"time_ns": last["time_ns"] - SECOND}, last]
        directory.series_jsonl(process.name).write_text("".join(f"{json.dumps(each)}\n" for each in series))
        directory.status_json(process.name).write_text(json.dumps(last, indent=2) + "\n", encoding="utf-8")
        (directory.loadgen_dir / f"{process.name}.log").write_text(LOG, encoding="utf-8")
        (directory.loadgen_dir / f"{process.name}_stats.csv").write_text("Type,Name\n,send\n", encoding="utf-8")
        (directory.loadgen_dir / f"{process.name}.html").write_text("<html>\n</html>\n", encoding="utf-8")
        (directory.loadgen_dir / f"{process.name}.json").write_text('[{"name": "send"}]\n', encoding="utf-8")
    zookeeper = path / "nodes" / "zookeeper"
    (zookeeper / "data" / "version-2").mkdir(parents=True)
    (zookeeper / "zookeeper.log").write_text(LOG, encoding="utf-8")
    (zookeeper / "data" / "version-2" / "log.1").write_bytes(b"ZKLG" + bytes(60))
    (path / "run.log").write_text(LOG, encoding="utf-8")
    seal.take(directory)
    return directory


def _of_broker(directory: RunDirectory, broker: int) -> None:
    """What a broker leaves beside what Kafka's leaves, or what the verifier makes nothing of."""
    data = directory.node(broker) / "data"
    (directory.node(broker) / "process.log").write_text("", encoding="utf-8")
    (data / ".lock").write_text("", encoding="utf-8")
    (data / ".gapless_clean_state").write_text('1 c77f89a1\n{"t-0": []}\n', encoding="utf-8")
    (data / "meta.properties").write_text(f"version=0\nbroker.id={broker}\ncluster.id=x\n", encoding="utf-8")
    (data / "cleaner-offset-checkpoint").write_text("0\n0\n", encoding="utf-8")
    for snapshot in sorted(data.glob("*/*.snapshot")):
        snapshot.with_suffix(".producers").write_bytes(_with_batches(snapshot))


def _with_batches(snapshot: Path) -> bytes:
    """The broker's own ``.producers`` beside this snapshot: each producer with its newest batch."""
    body = struct.pack(">ii", 3, len(PRODUCERS.split(snapshot).rows))
    for row in PRODUCERS.split(snapshot).rows:
        producer, epoch, sequence, offset, delta, timestamp, *_ = struct.unpack(">qhiqiqiq", row)
        batch = (sequence - delta, sequence, offset - delta, offset, timestamp)
        body += struct.pack(">10q", producer, epoch, 1, timestamp, 1, *batch)
    return struct.pack(">hI", 1, crc32c.crc32c(body)) + body


def _fault(number: int, fault: str, probe: dict[str, Any]) -> list[dict[str, Any]]:
    whole = {"number": number, "fault": fault, "target": f"broker {number + 1}", "effective": True, "healed": True}
    start_ns, seen = (12 + 10 * number) * SECOND, {"broker": number + 1, **probe}
    return [
        {**whole, "phase": "inject", "start_ns": start_ns, "end_ns": start_ns + 1, "probe": seen},
        {**whole, "phase": "heal", "start_ns": start_ns + SECOND, "end_ns": start_ns + 2 * SECOND, "probe": {}},
    ]


def _led(story: Story) -> Story:
    """The conductor saw one leader of each partition."""
    story.leaders = [
        {"time_ns": SECOND, "before_ns": None, "partition": number, "leader": place.leader, "leader_epoch": 1,
         "isr": [1, 2, 3]}
        for number, place in story.partitions.items()
    ]  # fmt: skip
    return story
