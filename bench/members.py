"""Members of one group, as many as are asked for, in a process of their own: what ``bench groups`` starts.

    python -m bench.members CLIENT COUNT BOOTSTRAP GROUP TOPIC

A member is a consumer in a thread. All begin to poll when a line comes on standard input; each change of what they are
assigned is a line of JSON on standard output: the member, its partitions, and when it was known. They leave when
standard input ends. Owns nothing of what is measured. Times are monotonic seconds, the same in all processes.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from tests.support.group_members import CLIENTS, Member

#: A line is one member's at a time.
_LOCK = threading.Lock()


def main() -> int:
    client, count, bootstrap, group_id, topic = sys.argv[1:]
    stop = threading.Event()
    members = [CLIENTS[client](bootstrap, group_id, topic) for _ in range(int(count))]
    threads = [threading.Thread(target=_take_part, args=(*numbered, stop)) for numbered in enumerate(members)]
    _tell({"ready": len(members)})
    sys.stdin.readline()
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()
    for thread in threads:
        thread.join()
    return 0


def _take_part(number: int, member: Member, stop: threading.Event) -> None:
    known: set[int] = set()
    _tell({"member": number, "begun_s": time.monotonic()})
    while not stop.is_set():
        member.poll()
        if (assigned := member.assigned()) != known:
            known = assigned
            _tell({"member": number, "partitions": sorted(known), "known_s": time.monotonic()})
    member.leave()


def _tell(what: dict[str, object]) -> None:
    with _LOCK:
        print(json.dumps(what), flush=True)


if __name__ == "__main__":
    sys.exit(main())
