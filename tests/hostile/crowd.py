"""A crowd at a broker's door: connections that say nothing, that send a request byte by byte, that never read.

Owns the connections, one loop over all of them, and when each of them was dropped. Does not own the broker, nor what
must hold (``test_crowd``, ``run``).
"""

from __future__ import annotations

import errno
import resource
import select
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cluster.protocol.apis import ApiKey
from cluster.protocol.messages import encode_request, request_class
from tests.hostile.absence import HOST

IDLE, SLOW, UNREAD = "idle", "slow", "unread"
#: Between two bytes of one that is slow.
BYTE_EACH_S = 0.5
#: Answers of some tens of kilobytes, asked for so often without reading any.
UNREAD_REQUESTS = 100
#: Files and sockets besides the crowd.
SPARE_DESCRIPTORS = 200
_ENDED = select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR


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
    """All of them. ``dropped_s`` has the seconds after ``begun_s`` in which each kind was dropped."""

    sockets: dict[int, tuple[str, socket.socket]] = field(default_factory=dict)
    opened: Counter[str] = field(default_factory=Counter)
    dropped_s: dict[str, list[float]] = field(default_factory=lambda: {IDLE: [], SLOW: [], UNREAD: []})
    begun_s: float = 0.0

    def __repr__(self) -> str:
        return f"Crowd({self.line()})"

    def line(self) -> str:
        """How many of each kind were opened, dropped, and by when the last one."""
        return ", ".join(
            f"{len(self.dropped_s[kind])} of {count} {kind} dropped by {max(self.dropped_s[kind], default=0.0):.1f} s"
            for kind, count in self.opened.items()
        )

    def open(self, port: int, kind: str, count: int) -> None:
        """So many more; each has sent what its kind sends at once."""
        for _ in range(count):
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            # What is not read waits in the broker, not in the kernel.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.settimeout(30)
            sock.connect((HOST, port))
            sock.setblocking(False)
            self.sockets[sock.fileno()] = (kind, sock)
            if kind == UNREAD:
                _send(sock, _LARGE * UNREAD_REQUESTS)
        self.opened[kind] += count

    def wait(self, within_s: float) -> None:
        """Go on, byte by byte, until all are dropped or the time is over."""
        with select.epoll() as watched:
            for number, (_, sock) in self.sockets.items():
                watched.register(sock, _ENDED)
                assert number == sock.fileno()
            turn, next_s = 0, self.begun_s
            while self.sockets and time.monotonic() < self.begun_s + within_s:
                if time.monotonic() >= next_s:
                    self._send_a_byte(turn)
                    turn, next_s = turn + 1, time.monotonic() + BYTE_EACH_S
                for number, _events in watched.poll(0.05):
                    kind, sock = self.sockets.pop(number)
                    watched.unregister(sock)
                    sock.close()
                    self.dropped_s[kind].append(time.monotonic() - self.begun_s)

    def _send_a_byte(self, turn: int) -> None:
        # Those that do not read send too: a closed window may hide from them that they were dropped.
        for kind, sock in self.sockets.values():
            if kind != IDLE and turn < len(_LARGE) - 1:
                _send(sock, _LARGE[turn : turn + 1])


@contextmanager
def crowd(port: int, **counts: int) -> Iterator[Crowd]:
    """So many of each kind, as fast as they can be opened."""
    made = Crowd()
    try:
        made.begun_s = time.monotonic()
        for kind, count in counts.items():
            made.open(port, kind, count)
        yield made
    finally:
        for _, sock in made.sockets.values():
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
    """All settings of a broker with their documentation: the answer is hundreds of times as long."""
    request = request_class(ApiKey.DESCRIBE_CONFIGS)
    resource_ = request.DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    message = request(resources=[resource_], include_synonyms=True, include_documentation=True)
    frame = encode_request(message, 4, 1, "crowd")
    return len(frame).to_bytes(4, "big") + frame


_LARGE = _large_request()
