"""A crowd at a broker's door: connections that say nothing, that send a request byte by byte, that never read.

Owns the connections, what they send, and how long it took until they were dropped. Does not own the broker, nor what
must hold (``test_mutations``, ``run``).
"""

from __future__ import annotations

import errno
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, repeat

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import encode_request, request_class
from tests.hostile.absence import HOST, Plain
from tests.hostile.target import Target

IDLE, SLOW, UNREAD = "idle", "slow", "unread"
#: Between two bytes of one that is slow.
BYTE_EACH_S = 0.5
#: Answers of sixty kilobytes, asked for so often without reading any.
UNREAD_REQUESTS = 20
#: Files and sockets besides the crowd.
SPARE_DESCRIPTORS = 200


def descriptors_for(count: int) -> int:
    """Let this process have so many connections, and return what a broker needs for them. Raises ``OSError``."""
    needed = 2 * count + 4 * SPARE_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise OSError(errno.EMFILE, f"{needed} descriptors are needed, ulimit -Hn is {hard}")
    if soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return needed


@dataclass
class Crowd:
    """All of them. ``dropped_s`` is how long after the last one was opened the broker had dropped all."""

    sockets: list[tuple[str, socket.socket]] = field(default_factory=list)
    opened: Counter[str] = field(default_factory=Counter)
    opened_s: float = 0.0
    dropped_s: float | None = None

    def __repr__(self) -> str:
        return f"Crowd({self.line()})"

    def line(self) -> str:
        """How many of each kind were opened, and how long it took until they were dropped."""
        counts = ", ".join(f"{count} {kind}" for kind, count in self.opened.items())
        end = "not all dropped" if self.dropped_s is None else f"all dropped after {self.dropped_s:.1f} s"
        return f"{counts} in {self.opened_s:.1f} s, {end}"

    def open(self, port: int, kind: str, count: int) -> None:
        """So many more; each has sent what its kind sends at once."""
        for _ in range(count):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            # What is not read waits in the broker, not in the kernel.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(30)
            sock.connect((HOST, port))
            sock.setblocking(False)
            self.sockets.append((kind, sock))
            if kind == UNREAD:
                _send(sock, _LARGE * UNREAD_REQUESTS)
        self.opened[kind] += count

    def wait(self, are_dropped: Callable[[], bool], within_s: float) -> None:
        """Go on, byte by byte, until all are dropped or the time is over.

        Who does not read need not hear of it: a reset that comes while the window is closed may pass it by.
        """
        begun_s = time.monotonic()
        # The last byte is never sent: the request would be whole.
        for byte in chain((bytes((each,)) for each in _LARGE[:-1]), repeat(b"")):
            for kind, sock in self.sockets:
                if kind == SLOW:
                    _send(sock, byte)
            if until(are_dropped, BYTE_EACH_S):
                self.dropped_s = time.monotonic() - begun_s
            if self.dropped_s is not None or time.monotonic() > begun_s + within_s:
                return


@dataclass
class Siege:
    """What a crowd has cost a broker: bytes of memory above what it had, at most and afterwards."""

    crowd: Crowd
    most_bytes: int
    left_bytes: int
    is_served: bool

    def __repr__(self) -> str:
        return f"Siege({self.line()})"

    def line(self) -> str:
        """The figures."""
        return (
            f"{self.crowd.line()}; memory at most {self.most_bytes / 1e6:.1f} MB more, {self.left_bytes / 1e6:.1f} MB "
            f"afterwards; others {'were' if self.is_served else 'WERE NOT'} served"
        )

    def wrong(self, most_bytes: int, within_s: float) -> list[str]:
        """What must not be, one line each."""
        found = [] if self.is_served else ["others were not served"]
        if self.most_bytes > most_bytes:
            found.append(f"the crowd cost {self.most_bytes / 1e6:.1f} MB")
        if self.crowd.dropped_s is None or self.crowd.dropped_s > within_s:
            found.append(f"not all of the crowd were dropped within {within_s:.0f} s")
        return found


def besiege(broker: Target, within_s: float, **counts: int) -> Siege:
    """Open so many of each kind, and wait until the broker has dropped them, or ``within_s`` is over."""
    with Plain(broker.port) as plain:
        plain.send(ApiKey.API_VERSIONS, 2)
    before, before_bytes = broker.process.num_fds(), broker.memory_bytes()
    most_bytes = before_bytes

    def are_dropped() -> bool:
        nonlocal most_bytes
        most_bytes = max(most_bytes, broker.memory_bytes())
        return broker.process.num_fds() <= before

    with crowd(broker.port, **counts) as made:
        with Plain(broker.port) as plain:
            is_served = bool(plain.send(ApiKey.API_VERSIONS, 2).api_keys)
        made.wait(are_dropped, within_s)
    return Siege(made, most_bytes - before_bytes, broker.memory_bytes() - before_bytes, is_served)


@contextmanager
def crowd(port: int, **counts: int) -> Iterator[Crowd]:
    """So many of each kind, as fast as they can be opened."""
    made = Crowd()
    try:
        begun_s = time.monotonic()
        for kind, count in counts.items():
            made.open(port, kind, count)
        made.opened_s = time.monotonic() - begun_s
        yield made
    finally:
        for _, sock in made.sockets:
            sock.close()


def flood(port: int, count: int) -> int:
    """Connect so often and leave at once, some with half a size; how many connections there were."""
    for number in range(count):
        with socket.create_connection((HOST, port), timeout=30) as sock:
            if number % 3 == 0:
                _send(sock, b"\0\0")
    return count


def _send(sock: socket.socket, data: bytes) -> None:
    """As much as is taken now."""
    view = memoryview(data)
    try:
        while view:
            view = view[sock.send(view) :]
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        return


def _large_request() -> bytes:
    """For a coordinator with a long name: cheap to answer, and the answer names it twice."""
    key = "crowd" * 6000
    message = request_class(ApiKey.FIND_COORDINATOR)(key_type=0, coordinator_keys=[key])
    frame = encode_request(message, 4, 1, "crowd")
    return len(frame).to_bytes(4, "big") + frame


_LARGE = _large_request()
