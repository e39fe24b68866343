"""``python -m loadgen.final_read``: a new reader that reads up to given offsets. Owns this task and its command.

Reads every partition of ``--through '{"0": 17}'`` from offset 0 until a record at that offset or beyond was delivered,
and records all of it (phase ``final``). Gives up at the deadline, or when nothing has come for half a minute: an
acknowledged sentinel that the log has lost never comes. Prints how far it came; exit status 0 if every partition was
reached, 1 otherwise, 254 for bad arguments.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cluster.seams.clock import Clock, SystemClock
from cluster.seams.units import ns_of_seconds
from loadgen.clients.base import RecordReader
from loadgen.reading import PartitionReader
from loadgen.recorder import Recorder
from loadgen.settings import FINAL_CLIENTS, SettingsError
from loadgen.tool import (
    BAD_ARGUMENTS,
    DONE,
    INCOMPLETE,
    parser,
    put_result,
    reader_factory,
    reads_committed,
    resolve,
    start_logging,
)

POLL_RECORDS = 2000
POLL_TIMEOUT_S = 0.1
#: Long enough for a client to reconnect to every broker, since the cluster is healed and in sync by then.
STALL_S = 30.0


@dataclass(slots=True)
class PartitionRead:
    """How far one partition was read. ``through`` is the offset to reach."""

    through: int
    records: int = 0
    first_offset: int = -1
    last_offset: int = -1

    @property
    def reached(self) -> bool:
        return self.last_offset >= self.through


def read_through(
    topic: str, through: Mapping[int, int], run_id: int, reader: RecordReader, recorder: Recorder, clock: Clock,
    deadline_s: float, begins: Mapping[int, int] | None = None, *, is_committed: bool = False,
    stall_s: float | None = None,
) -> dict[int, PartitionRead]:  # fmt: skip
    """Read until all of ``through`` is reached, the deadline has passed or ``stall_s`` (``STALL_S``) without a record.

    Each partition is read from ``begins`` on, or from offset 0. Records beyond an offset that come along are recorded
    as well.
    """
    seen = {partition: PartitionRead(offset) for partition, offset in through.items()}
    stall_ns = ns_of_seconds(STALL_S if stall_s is None else stall_s)
    deadline_ns = clock.monotonic_ns() + ns_of_seconds(deadline_s)
    give_up_ns = min(deadline_ns, clock.monotonic_ns() + stall_ns)
    partitions = PartitionReader(
        topic=topic,
        offsets={number: (begins or {}).get(number, 0) for number in through},
        run_id=run_id,
        reader=reader,
        recorder=recorder,
        clock=clock,
        phase="final",
        is_committed=is_committed,
    )
    partitions.start()
    while not all(each.reached for each in seen.values()) and clock.monotonic_ns() < give_up_ns:
        records = partitions.poll(POLL_RECORDS, POLL_TIMEOUT_S)
        if records:
            give_up_ns = min(deadline_ns, clock.monotonic_ns() + stall_ns)
        for partition, offset, _ in records:
            one = seen[partition]
            one.records += 1
            one.last_offset = offset
            if one.first_offset < 0:
                one.first_offset = offset
        recorder.tick()
    partitions.finish()
    return seen


def parse_through(text: str) -> dict[int, int]:
    """Parse ``{"0": 17}`` into offsets by partition. Raises ``SettingsError``."""
    try:
        through = {int(partition): offset for partition, offset in json.loads(text).items()}
    except (ValueError, AttributeError) as error:
        raise SettingsError(f'--through takes a JSON object such as {{"0": 17}}: {error}') from error
    bad = [partition for partition, offset in through.items() if type(offset) is not int or offset < 0]
    if bad or not through:
        raise SettingsError(f"--through needs an offset for every partition; partitions without: {bad}")
    return through


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    arguments_parser = parser(
        "loadgen.final_read", "Read every partition from offset 0 through given offsets.", FINAL_CLIENTS
    )
    arguments_parser.add_argument("--stall-s", type=float, help="give up after so long without a record (30)")
    arguments_parser.add_argument("--through", required=True, metavar="JSON", help='{"<partition>": offset, ...}')
    parsed = arguments_parser.parse_args(argv)
    start_logging()
    try:
        arguments = resolve(parsed)
        through = parse_through(parsed.through)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return BAD_ARGUMENTS
    clock = SystemClock()
    recorder = Recorder(arguments.process, arguments.history, clock)
    settings = arguments.settings
    reader = reader_factory(arguments)()
    try:
        seen = read_through(
            settings.topic, through, settings.run_id, reader, recorder, clock, arguments.deadline_s,
            is_committed=reads_committed(arguments), stall_s=parsed.stall_s,
        )  # fmt: skip
    finally:
        recorder.close()
    complete = all(each.reached for each in seen.values())
    put_result(
        {
            "complete": complete,
            "records": sum(each.records for each in seen.values()),
            "errors": recorder.tally.total("errors"),
            "partitions": {
                str(partition): {
                    "through": each.through,
                    "records": each.records,
                    "first_offset": each.first_offset,
                    "last_offset": each.last_offset,
                    "reached": each.reached,
                }
                for partition, each in seen.items()
            },
        }
    )
    reader.close()
    return DONE if complete else INCOMPLETE


if __name__ == "__main__":
    sys.exit(main())
