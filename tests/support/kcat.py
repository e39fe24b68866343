"""kcat, the program, as a Kafka client of the tests. Debian's carries an older librdkafka than confluent-kafka does."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from tests.support.kafka_clients import EARLIEST, LATEST, TIMEOUT_S, KafkaClient, Read


class Kcat:
    """``program`` is the path of kcat. It cannot create topics, so ``creator`` does."""

    name = "kcat"

    def __init__(self, program: str, bootstrap: str, creator: KafkaClient) -> None:
        self._base = [program, "-b", bootstrap, "-X", "topic.metadata.refresh.fast.interval.ms=50"]
        self._creator = creator

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        """Its standard output. Fails the test if it fails or says anything on standard error."""
        argv = [*self._base, *arguments]
        done = subprocess.run(argv, input=given, capture_output=True, timeout=TIMEOUT_S, check=False)
        assert (done.returncode, done.stderr) == (0, b""), f"{argv}: {done.stderr.decode(errors='replace')}"
        return done.stdout

    def create(self, topic: str, partitions: int) -> None:
        self._creator.create(topic, partitions)

    def produce(self, topic: str, partition: int, values: Sequence[bytes], acks: str, codec: str) -> None:
        """One value a line, so they must have no line breaks."""
        asked = "enable.idempotence=true" if acks == "idempotent" else f"acks={acks}"
        lines = b"".join(value + b"\n" for value in values)
        self.run("-P", "-t", topic, "-p", str(partition), "-z", codec, "-X", asked, given=lines)

    def offset_of(self, topic: str, partitions: Sequence[int], when: str | int) -> dict[int, int]:
        stamp = {EARLIEST: -2, LATEST: -1}.get(when, when) if isinstance(when, str) else when
        asked = [word for partition in partitions for word in ("-t", f"{topic}:{partition}:{stamp}")]
        lines = self.run("-Q", *asked).decode().splitlines()
        found = [re.fullmatch(r".* \[(\d+)\] offset (-?\d+)", line) for line in lines]
        return {int(match[1]): int(match[2]) for match in found if match}

    def read(self, topic: str, counts: Mapping[int, int]) -> dict[int, list[Read]]:
        """To the end of all partitions of the topic: all of them must be asked for."""
        output = self.run(
            "-C", "-t", topic, "-o", "0", "-e", "-q", "-X", "fetch.wait.max.ms=10", "-f", r"%p %o %T %s\n"
        )
        found: dict[int, list[Read]] = {partition: [] for partition in counts}
        for line in output.splitlines():
            partition, offset, timestamp, value = line.split(b" ", 3)
            found[int(partition)].append((int(offset), int(timestamp), value))
        return found

    def group_read(self, group_id: str, topic: str) -> dict[int, list[int]]:
        """As a member of a group, to the end of every partition: partition -> the offsets that came."""
        settings = ("-X", "auto.offset.reset=earliest", "-X", "fetch.wait.max.ms=10")
        output = self.run("-G", group_id, "-e", "-q", *settings, "-f", r"%p %o\n", topic)
        found: dict[int, list[int]] = {}
        for line in output.splitlines():
            partition, offset = map(int, line.split())
            found.setdefault(partition, []).append(offset)
        return found

    def metadata(self, topic: str) -> Any:
        """What ``-L -J`` says of a topic."""
        return json.loads(self.run("-L", "-J", "-t", topic))
