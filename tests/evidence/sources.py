"""Valid runs to tamper with: small stories, with everything beside them that a real run leaves. Owns what they are.

``plain`` had two faults that bit. ``elected`` and ``repeated`` hold anomalies that an event in the evidence excuses,
``deleted`` lacks records that a client had deleted: who damages that event or that request must not make them invalid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.support.settings import settings
from tests.support.stories import SECOND, Story, clean
from tests.verifier.planted import planted_story
from verifier.evidence import seal
from verifier.evidence.run_directory import RunDirectory, append_json_line

LOG = "2023-11-14 22:13:20,000 INFO broker started\n2023-11-14 22:13:21,000 INFO t-0: leader epoch 1\n"


def plain() -> Story:
    """Two partitions in several segments, two faults, two final readers."""
    story = clean(partitions=2, streams=4, batches=6, final_readers=2)
    story.split_at, story.index_interval = 5, 1
    story.faults_requested = ["kill-leader", "cut-link"]
    story.faults = [*_fault(0, "kill-leader", {"pid": 101, "steps": [{"pid": 101}]}), *_fault(1, "cut-link", {})]
    story.settings = replace(settings(), rate=0.0)
    return _led(story)


def elected() -> Story:
    """acks=1, and an election cut records off."""
    return planted_story("cut off by an election")


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
    for number in range(3):
        sample = {"time_ns": number * SECOND, "rss_bytes": {"broker-1": 50_000_000 + number}, "disk_free_bytes": 10**10}
        append_json_line(directory.resources_jsonl, sample)
    live = story.evidence().of_role("producers", "readers")
    for process in live:
        last = directory.series_jsonl(process.name).read_text(encoding="utf-8").splitlines()[-1]
        directory.status_json(process.name).write_text(last, encoding="utf-8")
    seal.take(directory)
    return directory


def _fault(number: int, fault: str, probe: dict[str, Any]) -> list[dict[str, Any]]:
    whole = {"number": number, "fault": fault, "target": f"broker {number + 1}", "effective": True, "healed": True}
    start_ns = (12 + 10 * number) * SECOND
    return [
        {**whole, "phase": "inject", "start_ns": start_ns, "end_ns": start_ns + 1, "probe": probe},
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
