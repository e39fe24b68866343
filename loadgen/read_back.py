"""``python -m loadgen.read_back RUN``: reads back what a standalone load wrote, so that it can be judged.

Owns that task and its command. Each partition takes one more acknowledged record, and is read from where it ended when
the load began through that record. ``history/`` gets both, ``loadgen/read-back.json`` what became of it. Exit status 0
if every partition was read through, 1 otherwise, 254 for bad arguments.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from cluster.process.invocation import command
from cluster.process.one_line import printable
from cluster.seams.clock import Clock, SystemClock
from loadgen.clients.choice import reader
from loadgen.final_read import read_through
from loadgen.hosts import checked_host
from loadgen.recorder import Recorder
from loadgen.sentinel import Sentinels
from loadgen.settings import CONFLUENT, LoadSettings, SettingsError
from loadgen.tool import BAD_ARGUMENTS, DONE, INCOMPLETE, ToolArguments, sender_factory, start_logging
from loadgen.topics import positions
from verifier.evidence.arrow_stream import HistoryError
from verifier.evidence.history import scan_history
from verifier.evidence.run_directory import RunDirectory
from verifier.evidence.standalone import ByHandError, LoadStart, ReadBack, read_starts

SENTINEL, FINAL = "sentinel", "final"
SENTINELS_S = 30.0
#: The time limit. Reading usually ends sooner, when no more records come.
LONGEST_S = 24 * 3600.0
INTERRUPTED = "it was interrupted"


class LoadAtEnd:
    """A load that has ended. Raises ``SettingsError`` if the directory is not that of a load, and ``OSError``."""

    def __init__(self, run: RunDirectory, host: str | None) -> None:
        try:
            self.starts: tuple[LoadStart, ...] = read_starts(run)
        except ByHandError as error:
            raise SettingsError(f"{run.path}/{error}") from error
        if not self.starts:
            raise SettingsError(f"{run.path} is not a standalone load: it has no loadgen/*.load.json")
        self.run = run
        self.settings = LoadSettings.read(run.load_settings_json)
        self.bootstrap = checked_host(host or self.settings.producers_bootstrap)
        self.after = tuple(start.process for start in self.starts if _has_ended(run.history(start.process)))

    def begins(self) -> dict[int, int]:
        """The offset of each partition before which this load wrote nothing. Raises ``SettingsError``."""
        logs = positions(self.bootstrap, self.settings.topic, self.settings.partitions)
        return {
            number: max(log.begin, min(start.ends.get(number, 0) for start in self.starts))
            for number, log in logs.items()
        }


def _has_ended(history: Path) -> bool:
    try:
        return scan_history(history)[0].closed
    except (OSError, HistoryError):
        return False


def read_back(load: LoadAtEnd, clock: Clock) -> tuple[ReadBack, int]:
    """Read the load back; returns the result and the number of records. Raises ``SettingsError`` without an answer."""
    settings, begins = load.settings, load.begins()
    arguments = ToolArguments(settings, load.bootstrap, load.run.history(SENTINEL), SENTINEL, SENTINELS_S, CONFLUENT)
    recorder = Recorder(SENTINEL, arguments.history, clock)
    sentinels = Sentinels(
        settings.topic, sorted(begins), settings.run_id, sender_factory(arguments, clock), recorder, clock
    )
    try:
        sentinels.place(SENTINELS_S, threading.Event().wait)
    finally:
        recorder.close()
    through = {number: offset for number, offset in sentinels.offsets.items() if offset is not None}
    if len(through) < len(begins):
        why = f"{_partitions(begins.keys() - through)} accepted no record within {SENTINELS_S:.0f} s"
        return ReadBack(why=why, after=load.after, begins=begins), 0
    recorder = Recorder(FINAL, load.run.history(FINAL), clock)
    consumer = reader(CONFLUENT, load.bootstrap, FINAL, settings)
    try:
        seen = read_through(
            settings.topic, through, settings.run_id, consumer, recorder, clock, LONGEST_S, begins=begins
        )
    finally:
        recorder.close()
    consumer.close()
    short = {number for number, each in seen.items() if not each.reached}
    why = f"{_partitions(short)} did not return the record that it acknowledged last" if short else ""
    return ReadBack(why=why, after=load.after, begins=begins), sum(each.records for each in seen.values())


def _partitions(numbers: set[int]) -> str:
    return f"partition{'s' * (len(numbers) > 1)} {', '.join(map(str, sorted(numbers)))}"


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m loadgen.read_back", description="Read back a standalone load.")
    parser.add_argument("run", type=Path, help="the load's directory")
    parser.add_argument(
        "--host", default=None, metavar="HOST:PORT[,...]", help="bootstrap servers, if they have changed"
    )
    parsed = parser.parse_args(argv)
    start_logging()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    again = command(["load", "--read-back", str(parsed.run)])
    try:
        load = LoadAtEnd(RunDirectory(parsed.run), parsed.host)
    except (SettingsError, OSError) as error:
        _say(str(error))
        return BAD_ARGUMENTS
    _say("reading back what was written")
    records = 0
    try:
        outcome, records = read_back(load, SystemClock())
    except SettingsError as error:
        outcome = ReadBack(why=str(error), after=load.after, begins={})
    except KeyboardInterrupt:
        outcome = ReadBack(why=INTERRUPTED, after=load.after, begins={})
    outcome.write(load.run)
    if outcome.why:
        _say(f"not read back: {outcome.why}; when the cluster can be read: {again}")
        return INCOMPLETE
    _say(f"read back {records:,} records; try: {command(['verify', str(parsed.run)])}")
    return DONE


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _say(line: str) -> None:
    sys.stderr.write(printable(f"gapless: {line}") + "\n")


if __name__ == "__main__":
    sys.exit(main())
