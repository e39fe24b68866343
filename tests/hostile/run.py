"""Hostile frames from the command line: so many good ones to one broker, then as many bad ones to another.

    .venv/bin/python -m tests.hostile.run --count 1000000 [--first SEED] [--alone] [--crowd]
    .venv/bin/python -m tests.hostile.run --seed SEED

``--seed`` sends the one frame of a seed, and shows it and what came of it. A table at the end counts the frames by
listener and API, and the longest absences are shown with the largest frames that were open. Exit status 1 if the broker
died, a traceback is in its log, a connection was neither answered nor closed, memory or descriptors are left, the
producer beside lost an acknowledged record, or it or another connection waited too long (so leave the machine alone);
with ``--crowd`` also if thousands of connections that are idle, slow or never read cost too much or are not dropped.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.hostile import crowd
from tests.hostile.assault import MOST_P99_MS, Course, assail, both
from tests.hostile.mutations import hostile
from tests.hostile.target import target

#: Connections that come and go before the others, and those that stay.
FLOOD = 5000
CROWD = {crowd.IDLE: 5000, crowd.SLOW: 500, crowd.UNREAD: 200}
#: No frame is larger than 1 MB.
MOST_AWAY_MS = 250
MOST_CROWD_BYTES = 150_000_000
IDLE_MS = 10_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.hostile.run", description="Hostile frames, seed by seed.")
    parser.add_argument("--count", type=int, default=20_000, help="how many frames")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="only the frame of this seed, and what comes of it")
    parser.add_argument("--crowd", action="store_true", help="and thousands of useless connections")
    parser.add_argument("--alone", action="store_true", help="without the good requests to compare with")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.CRITICAL)
    with TemporaryDirectory(prefix="gapless-hostile-") as name:
        home = Path(name)
        if arguments.seed is not None:
            return _one(home, arguments.seed)
        seeds = range(arguments.first, arguments.first + arguments.count)
        course = assail(home, seeds, told=_tell) if arguments.alone else both(home, seeds, seeds, _tell)[0]
        if arguments.crowd:
            course.wrong += _crowd(home / "crowd")
    return _result(course)


def _crowd(directory: Path) -> list[str]:
    directory.mkdir()
    descriptors = crowd.descriptors_for(sum(CROWD.values()))
    with target(directory, descriptors, connections_max_idle_ms=str(IDLE_MS)) as broker:
        crowd.flood(broker.port, FLOOD)
        siege = crowd.besiege(broker, 3 * IDLE_MS / 1000, **CROWD)
    sys.stdout.write(f"after {FLOOD} connections that came and went: {siege.line()}\n")
    return siege.wrong(MOST_CROWD_BYTES, 2 * IDLE_MS / 1000)


def _tell(course: Course) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {course.line()}\n")
    sys.stderr.flush()


def _one(home: Path, seed: int) -> int:
    frame = hostile(seed)
    sys.stdout.write(f"{frame}\n{frame.wire[:2000].hex()}\n")
    course = assail(home, range(seed, seed + 1))
    log = (home / "process.log").read_text(errors="replace")
    sys.stdout.write(f"{log[-3000:]}\n")
    return _result(course)


def _result(course: Course) -> int:
    if course.watch.longest_s * 1000 > MOST_AWAY_MS:
        course.wrong.append(f"another connection waited {course.watch.longest_s * 1000:.0f} ms")
    if course.producer.p99_ms() > MOST_P99_MS:
        course.wrong.append(f"the producer beside waited {course.producer.p99_ms():.0f} ms at its 99th percentile")
    sys.stdout.write("".join(f"{line}\n" for line in course.counts.table()))
    kinds = ", ".join(f"{kind} {count}" for kind, count in course.counts.kinds.most_common())
    sys.stdout.write(f"{kinds}\n{course.line()}\n")
    sys.stdout.write("".join(f"{each}\n" for each in course.longest_absences()))
    sys.stdout.write("".join(f"WRONG {each}\n" for each in course.wrong))
    sys.stdout.write(f"RESULT frames={course.counts.frames} wrong={len(course.wrong)}\n")
    return int(bool(course.wrong))


if __name__ == "__main__":
    sys.exit(main())
