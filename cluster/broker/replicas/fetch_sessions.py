"""Fetch sessions (KIP-227, docs/reference/kafka.md "Fetch sessions"): which session a follower's fetch belongs to.

Owns the sessions of a broker: their ids, the check of their epochs, and which makes room for another. Does not own what
a session keeps (``fetch_session``), nor time: it is told.

Followers alone get sessions; a consumer's request for one is declined with the id 0. A follower has one fetcher for
each leader, so a new session of a follower replaces its former one.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random

from cluster.broker.replicas.fetch_checks import FetchedBy
from cluster.broker.replicas.fetch_session import FULL_FETCH_EPOCHS, INITIAL_EPOCH, INT32_MAX, FetchSession, next_epoch
from cluster.broker.replicas.host import RequestRefused
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchRequest

#: The id of no session: it declines one.
NO_SESSION = 0
#: A session unused for this long makes room for another.
EVICTION_MS = 120_000


class FetchSessions:
    """The sessions of one leader broker, ``slots`` at most. ``random`` gives their ids: one that survived in a
    follower's memory must not be taken for another's after a restart."""

    def __init__(self, random: Random, slots: int) -> None:
        self._random = random
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}

    def __repr__(self) -> str:
        return f"<FetchSessions {list(self._sessions.values())}>"

    def __len__(self) -> int:
        return len(self._sessions)

    def admit(
        self, request: FetchRequest, reader: FetchedBy, now_ms: int, *, is_known: bool = True
    ) -> FetchSession | None:
        """The session that a follower's fetch belongs to; None for a full fetch without one.

        A follower that is no known broker gets none: any number could be made up, and each would be kept.

        Raises ``RequestRefused``: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH.
        """
        if request.session_epoch in FULL_FETCH_EPOCHS:
            self._close(request.session_id)
            wants_one = request.session_epoch == INITIAL_EPOCH and request.partitions
            return self._open(reader, now_ms) if wants_one and is_known else None
        session = self._sessions.get(request.session_id)
        if session is None or not session.reader.is_same(reader):
            raise RequestRefused(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id} of {reader!r}"
            )
        if request.session_epoch != session.epoch:
            raise RequestRefused(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"epoch {request.session_epoch} of fetch session {request.session_id}, {session.epoch} is due",
            )
        session.epoch = next_epoch(session.epoch)
        session.used_ms = now_ms
        return session

    def keep(self, replica_ids: Collection[int]) -> None:
        """Close the sessions of all other followers: they are gone."""
        for session in list(self._sessions.values()):
            if session.reader.replica_id not in replica_ids:
                self._close(session.session_id)

    def _open(self, reader: FetchedBy, now_ms: int) -> FetchSession | None:
        for session in list(self._sessions.values()):
            if session.reader.replica_id == reader.replica_id:
                self._close(session.session_id)
        if len(self._sessions) >= self._slots:
            oldest = min(self._sessions.values(), key=lambda session: session.used_ms, default=None)
            if oldest is None or now_ms - oldest.used_ms < EVICTION_MS:
                return None
            self._close(oldest.session_id)
        session_id = self._random.randint(1, INT32_MAX)
        while session_id in self._sessions:
            session_id = self._random.randint(1, INT32_MAX)
        return self._sessions.setdefault(session_id, FetchSession(session_id, reader, now_ms))

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()
