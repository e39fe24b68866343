"""One broker and very many frames: what is sent, what is watched meanwhile, and what must hold in the end.

Owns the course of an assault and its result. A first broker serves good requests, a second one bad ones; each has a
producer beside it, and is tidied up now and then: a topic that anybody may make is no leak. Does not own the frames
(``mutations``), the connections (``firing``), nor how it is told (``run``).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cluster.protocol.apis import ApiKey
from tests.hostile import bystander
from tests.hostile.absence import Plain, Watch, watching_apart
from tests.hostile.bystander import Bystander
from tests.hostile.firing import Counts, fire_seeds
from tests.hostile.grammar import PARTITIONS, TOPICS
from tests.hostile.mutations import Hostile, good, hostile
from tests.hostile.target import Target, target

MB = 1_000_000
#: What bad requests may leave behind, more than good ones do.
MOST_LEFT_BYTES = 20 * MB
MOST_P99_MS = 500
#: Frames between two times of tidying up, which is also when progress is told.
PORTION = 10_000
#: Topics that are deleted go from the disk and the memory now.
SETTINGS = {"log_segment_delete_delay_ms": "0", "producer_id_expiration_ms": "60000"}
#: Connections and files that may be open still, for a moment.
SPARE_DESCRIPTORS = 16
#: Of the longest absences, how many are explained.
ABSENCES_TOLD = 3
#: And how many of the frames that were open then are named, of hundreds.
FRAMES_TOLD = 8
TURNS_TOLD = 20
#: By the level of the line: what a client says of itself may be anything, and stands further on.
_LONG_TURN = re.compile(r"^.* a turn of the event loop took .*", re.MULTILINE)
_CRITICAL = re.compile(r"^\S+ \S+ CRITICAL .*", re.MULTILINE)


@dataclass
class Course:
    """What one broker has been through."""

    counts: Counts
    watch: Watch
    producer: Bystander
    took_s: float = 0.0
    processor_s: float = 0.0
    memory_bytes: list[int] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    #: What the broker has logged of its long turns.
    turn_lines: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"Course({self.line()})"

    def line(self) -> str:
        """The figures so far."""
        rate = self.counts.frames / self.took_s if self.took_s else 0.0
        # Known when all is over.
        watch = self.watch
        away = (
            f"away {watch.longest_s * 1000:.0f} ms (longest turn {watch.turn_s * 1000:.0f} ms); "
            if watch.answers
            else ""
        )
        return (
            f"{self.counts.frames} frames ({self.counts.answered.total()} answered) on {self.counts.outcome.sent} "
            f"connections, {rate:.0f}/s, broker {self.processor_s:.1f} s of processor; "
            f"{away}memory {self.memory_bytes[-1] / MB:.1f} MB (at first {self.memory_bytes[0] / MB:.1f}), descriptors "
            f"{self.descriptors[-1]}; beside it {len(self.producer.acknowledged)} acknowledged, p99 "
            f"{self.producer.p99_ms():.0f} ms"
        )

    def longest_absences(self) -> list[str]:
        """How long the longest were, with the frames of the connections that took long then; and what the broker logged
        about long turns."""
        longest = sorted(self.watch.absences, key=lambda each: -each[1])[:ABSENCES_TOLD]
        told = [
            f"away {took_s * 1000:.0f} ms while {largest(self.counts.during(begun, begun + took_s))}"
            for begun, took_s in longest
        ]
        return told + self.turn_lines[-TURNS_TOLD:]


def largest(frames: list[Hostile]) -> str:
    """Frames in words: how many there are, and those of them that are most likely to have taken long."""
    if not frames:
        return "no frame was open"
    told = sorted(frames, key=lambda frame: -len(frame.wire))[:FRAMES_TOLD]
    return f"{len(frames)} frames were open, of which the largest:" + "".join(f"\n    {frame}" for frame in told)


def assail(
    directory: Path,
    seeds: range,
    frame_of: Callable[[int], Hostile] = hostile,
    told: Callable[[Course], None] = lambda course: None,
) -> Course:
    """Send the frame of each seed to a broker of its own in ``directory``. What went wrong is in the result."""
    directory.mkdir(parents=True, exist_ok=True)
    with target(directory, **SETTINGS) as broker:
        _make_topics(broker)
        with watching_apart(broker) as watch, bystander.beside(broker.port) as producer:
            course = Course(Counts(), watch, producer)
            _note(course, broker)
            for first in range(seeds.start, seeds.stop, PORTION):
                portion = range(first, min(seeds.stop, first + PORTION))
                _fire(broker, portion, course, frame_of)
                tidy(broker)
                _note(course, broker)
                told(course)
                if course.wrong:
                    break
        course.wrong += _judge(broker, course)
        course.turn_lines = _LONG_TURN.findall(broker.log())
        course.memory_bytes.append(broker.memory_at_rest_bytes())
    return course


def compare(course: Course, peaceful: Course) -> list[str]:
    """What the bad requests left behind, more than as many good ones did."""
    more_bytes = course.memory_bytes[-1] - peaceful.memory_bytes[-1]
    if more_bytes > MOST_LEFT_BYTES:
        return [f"{more_bytes / MB:.1f} MB more than after as many good requests"]
    return []


def both(
    directory: Path, seeds: range, good_seeds: range, told: Callable[[Course], None] = lambda course: None
) -> tuple[Course, Course]:
    """The assault, and good requests to another broker; what is wrong is in the first."""
    peaceful = assail(directory / "good", good_seeds, good, told)
    course = assail(directory / "hostile", seeds, hostile, told)
    course.wrong += [f"of the good requests: {each}" for each in peaceful.wrong]
    course.wrong += compare(course, peaceful)
    return course, peaceful


def _fire(broker: Target, seeds: range, course: Course, frame_of: Callable[[int], Hostile]) -> None:
    begun_s, before_s = time.monotonic(), _processor_s(broker)
    before = course.counts.frames
    try:
        fire_seeds({"CLIENTS": broker.port, "PEERS": broker.peer_port}, seeds, course.counts, frame_of)
    except AssertionError as error:
        course.wrong.append(str(error))
    else:
        if course.counts.frames - before != len(seeds):
            course.wrong.append(f"of {len(seeds)} frames {course.counts.frames - before} are accounted for")
    course.took_s += time.monotonic() - begun_s
    course.processor_s += _processor_s(broker) - before_s


def _processor_s(broker: Target) -> float:
    times = broker.process.cpu_times()
    return float(times.user + times.system)


def _note(course: Course, broker: Target) -> None:
    course.memory_bytes.append(broker.memory_bytes())
    course.descriptors.append(broker.process.num_fds())


def _judge(broker: Target, course: Course) -> list[str]:
    """With everybody gone."""
    wrong = []
    if not broker.child.is_running():
        return ["the broker has died"]
    log = broker.log()
    if "Traceback" in log:
        at = log.index("Traceback")
        wrong.append(f"{log.count('Traceback')} tracebacks in the log, the first: {log[at : at + 4000]}")
    if critical := _CRITICAL.search(log):
        wrong.append(f"the log has critical lines, the first: {critical.group()}")
    # The attackers' connections are closed by now, the producer's and the watcher's too.
    deadline = time.monotonic() + 10
    while broker.process.num_fds() > course.descriptors[0] + SPARE_DESCRIPTORS and time.monotonic() < deadline:
        time.sleep(0.05)
    if broker.process.num_fds() > course.descriptors[0] + SPARE_DESCRIPTORS:
        wrong.append(f"{broker.process.num_fds()} descriptors are open, where {course.descriptors[0]} were")
    wrong += course.producer.missing()
    if not course.producer.acknowledged:
        wrong.append("nothing was acknowledged beside it")
    return wrong


# The well-behaved administrator


def _make_topics(broker: Target) -> None:
    with Plain(broker.port) as plain:
        for name in (bystander.TOPIC, *TOPICS):
            code = plain.create_topic(name, PARTITIONS)
            assert code == 0, (name, code)


def tidy(broker: Target) -> None:
    """Delete every topic but the bystander's, and make the attackers' again."""
    with Plain(broker.port) as plain:
        found = plain.send(ApiKey.METADATA, 8, topics=None, allow_auto_topic_creation=False)
        names = [topic.name for topic in found.topics if topic.name != bystander.TOPIC]
        for begin in range(0, len(names), 100):
            some = names[begin : begin + 100]
            plain.send(ApiKey.DELETE_TOPICS, 5, topic_names=some, topics=[], timeout_ms=60_000)
        for name in TOPICS:
            deadline = time.monotonic() + 60
            while plain.create_topic(name, PARTITIONS) and time.monotonic() < deadline:
                # a request that nobody waits for any more may have made it meanwhile
                plain.send(ApiKey.DELETE_TOPICS, 5, topic_names=[name], topics=[], timeout_ms=60_000)
                time.sleep(0.05)
