"""Which partitions of the topics that no run creates itself are there, and whether they can be read.

These are the coordinators' topics, and the one that a group writes to. Checks compare their bytes with what clients
were told, and accuse no one by bytes that cannot be read; so the verdict must know what is missing. Looks at the copy
that is judged (``verifier.transactions.evidence``), and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from verifier.coordinators.topics import OFFSETS_TOPIC, STATE_TOPIC
from verifier.evidence.output import OUTPUT_TOPIC
from verifier.evidence.run_directory import RunDirectory
from verifier.segments import walk
from verifier.transactions.evidence import copies_of, most_advanced
from verifier.transactions.state_records import TopicPartition

TOPICS = (STATE_TOPIC, OFFSETS_TOPIC, OUTPUT_TOPIC)


def coordinator_logs(directory: RunDirectory) -> dict[TopicPartition, bool]:
    """The partitions of which any broker has a directory, and whether the log in it can be read to its end. Raises
    ``OSError``.
    """
    copies = copies_of(directory)
    found = {}
    for place in sorted({*_places(directory)}):
        homes = copies.get(place)
        found[place] = homes is None or _is_readable(homes[most_advanced(homes)])
    return found


def _places(directory: RunDirectory) -> Iterator[TopicPartition]:
    for broker in directory.broker_ids():
        for topic in TOPICS:
            for home in directory.node(broker).glob(f"data/{topic}-*"):
                number = home.name.removeprefix(f"{topic}-")
                if number.isascii() and number.isdecimal() and home.is_dir():
                    yield topic, int(number)


def _is_readable(home: Path) -> bool:
    for path in sorted(home.glob("*.log")):
        data = walk.open_segment(path)
        found = walk.walk(data)
        fields = walk.headers(data, found.positions)
        if found.tail or not walk.check_crcs(data, found.positions, found.sizes, fields["crc"]).all():
            return False
    return True
