"""What requests cost: how many of each API and version, how long they took and where, and which errors they met.

Owns the counting on the hot path, made so that a request that is answered at once costs two looks at the clock and one
step in a list. Does not own how it is shown (``exposition``).

Times are of one request inside this process. *Local* is its handler, *remote* what it waited for (followers, bytes,
the controller), *response* waiting behind earlier answers of its connection. There is no queue of requests here: what
has not been read yet waits in the socket, and shows as event-loop lag.
"""

from __future__ import annotations

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode

#: Bucket ``i`` counts times below ``4 ** i`` microseconds that are in no lower bucket; the last one all others.
BUCKETS = 14


class Times:
    """One histogram."""

    __slots__ = ("buckets", "sum_ns")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.sum_ns = 0

    def __repr__(self) -> str:
        return f"<Times of {sum(self.buckets)}>"

    def note(self, elapsed_ns: int) -> None:
        bucket = ((elapsed_ns // 1000).bit_length() + 1) >> 1
        self.buckets[bucket if bucket < BUCKETS else -1] += 1
        self.sum_ns += elapsed_ns

    def plus(self, other: Times) -> Times:
        """Both together, as a new one."""
        both = Times()
        both.buckets = [mine + theirs for mine, theirs in zip(self.buckets, other.buckets, strict=True)]
        both.sum_ns = self.sum_ns + other.sum_ns
        return both


class ApiMetrics:
    """One API. ``at_once`` are the times of requests that were local alone; the others' times are in the other four."""

    __slots__ = ("at_once", "local", "remote", "response", "total", "versions")

    def __init__(self) -> None:
        self.versions: dict[int, int] = {}
        self.at_once = Times()
        self.local = Times()
        self.remote = Times()
        self.response = Times()
        self.total = Times()

    def __repr__(self) -> str:
        return f"<ApiMetrics {self.versions}>"

    def delayed(self, started_ns: int, handled_ns: int, answered_ns: int, sent_ns: int) -> None:
        """A request that was not answered when its handler returned."""
        self.local.note(handled_ns - started_ns)
        self.remote.note(answered_ns - handled_ns)
        self.response.note(sent_ns - answered_ns)
        self.total.note(sent_ns - started_ns)

    def parts(self) -> dict[str, Times]:
        """The histograms as they are shown: what was answered at once waited nowhere."""
        nowhere = Times()
        nowhere.buckets[0] = sum(self.at_once.buckets)
        return {
            "total": self.total.plus(self.at_once),
            "local": self.local.plus(self.at_once),
            "remote": self.remote.plus(nowhere),
            "response": self.response.plus(nowhere),
        }


class RequestMetrics:
    """All APIs of one broker."""

    def __init__(self) -> None:
        self.apis: dict[int, ApiMetrics] = {}
        self.errors: dict[tuple[ApiKey, int], int] = {}

    def __repr__(self) -> str:
        return f"<RequestMetrics of {len(self.apis)} APIs>"

    def of(self, api_key: int) -> ApiMetrics:
        """Made when the API is served for the first time. (A plain int is hashed much quicker than a member.)"""
        metrics = self.apis.get(api_key)
        if metrics is None:
            metrics = self.apis[api_key] = ApiMetrics()
        return metrics

    def failed(self, api_key: ApiKey, code: int, count: int = 1) -> None:
        """``count`` answers, or partitions' parts of them, say ``code``."""
        if code != ErrorCode.NONE:
            self.errors[api_key, code] = self.errors.get((api_key, code), 0) + count
