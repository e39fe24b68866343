"""FollowerLog: a follower's hold on its log: what it asks for, what it appends, where it cuts.

Owns the high watermark that a follower has learned, and the effects of what ``cluster.replication.follower`` decides.
Does not own the role (``Replica`` does), the connection or the pauses after errors (``Fetcher``).
"""

from __future__ import annotations

import logging

from cluster.broker.journal import Journal
from cluster.broker.metrics import Counters
from cluster.broker.rules import Rules
from cluster.log.errors import UnexpectedOffset
from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import parse_header
from cluster.protocol.errors import ErrorCode
from cluster.protocol.fetch import FetchPartition, FetchResult
from cluster.replication.follower import FetchPosition, Reaction, restart_within, truncation_offset
from cluster.replication.high_watermark import follower_high_watermark
from cluster.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

#: The event of the journal that reports a cut.
TRUNCATED = "log-truncated"


class FollowerLog:
    """For one replica. ``high_watermark`` is what it knows while it does not lead."""

    __slots__ = ("_counters", "_journal", "_key", "_log", "_rules", "_traffic", "high_watermark", "lag")

    def __init__(
        self,
        key: TopicPartition,
        log: PartitionLog,
        high_watermark: int,
        counters: Counters,
        rules: Rules,
        journal: Journal,
    ) -> None:
        self.high_watermark = high_watermark
        self._key = key
        self._log = log
        self._counters = counters
        self._traffic = counters.topic(key[0])
        self.lag = 0
        self._rules = rules
        self._journal = journal

    def __repr__(self) -> str:
        return f"<FollowerLog {self._key} to {self._log.log_end_offset}, watermark {self.high_watermark}>"

    def begin(self) -> None:
        """Start to follow. Raises ``LogError``."""
        log_end_offset = self._log.log_end_offset
        start = self._rules.initial_truncation(self._log.epochs.latest, self.high_watermark, log_end_offset)
        if start < log_end_offset:
            self._truncate(start, "no epochs")

    def position(self, leader_epoch: int) -> FetchPosition:
        """From where to fetch next."""
        log = self._log
        return FetchPosition(leader_epoch, log.log_end_offset, log.epochs.latest_number)

    def request(self, leader_epoch: int, max_bytes: int) -> FetchPartition:
        """What to ask of the leader."""
        return FetchPartition(*self._key, *self.position(leader_epoch), self._log.log_start_offset, max_bytes)

    def apply(self, sent: FetchPosition, leader_epoch: int, result: FetchResult) -> Reaction:
        """Carry out what the leader answered to a fetch from ``sent``: append or cut; else say what to do.

        Raises ``LogError`` for records that cannot be appended.
        """
        log = self._log
        code, diverging = _error_code(result.error_code), result.diverging
        what = self._rules.react(sent, self.position(leader_epoch), code, diverges=diverging is not None)
        if what is Reaction.TRUNCATE and diverging is not None:
            epoch, end_offset = diverging
            log_end_offset = log.log_end_offset
            local = log.epochs.end_offset_for(epoch, log_end_offset)
            offset = truncation_offset(epoch, end_offset, local, log_end_offset, self.high_watermark)
            start = log.log_start_offset
            self._truncate(offset, "diverging epoch")
            if offset == start:
                self._take_epoch(epoch, end_offset)
        elif what is Reaction.APPEND:
            if self._lacks_what_is_below(result.log_start_offset):
                self.restart(result.log_start_offset)
            else:
                self._append(result)
        return what

    def _take_epoch(self, epoch: int, end_offset: int) -> None:
        """All was cut, down to the log start: take the epoch that the leader's history has there, if none is left.

        What was below our start is committed, so it is the leader's too, and we need not begin where it does.
        """
        log = self._log
        if log.epochs.latest is None and log.log_end_offset <= end_offset:
            log.epochs.assign(epoch, log.log_end_offset)

    def _lacks_what_is_below(self, leader_start_offset: int) -> bool:
        """Whether we hold nothing, not even an epoch by which the leader could tell that our end is of another history:
        then what it has below that end is missing here, and our end proves nothing."""
        log = self._log
        is_blank = log.log_start_offset == log.log_end_offset and log.epochs.latest is None
        return is_blank and 0 <= leader_start_offset < log.log_end_offset

    def _append(self, result: FetchResult) -> None:
        log = self._log
        records = result.records
        if isinstance(records, memoryview) and len(records):
            self._append_records(records)
            self._traffic.replication_bytes_in += len(records)
        self.lag = max(0, result.high_watermark - log.log_end_offset)
        self.high_watermark = follower_high_watermark(self.high_watermark, result.high_watermark, log.log_end_offset)
        log.committed(self.high_watermark)
        # first the watermark, as in Kafka: the start never passes it, not even where the disk fails on the way
        if result.log_start_offset > log.log_start_offset:
            log.advance_log_start_offset(min(result.log_start_offset, log.log_end_offset))

    def _append_records(self, records: memoryview) -> None:
        log = self._log
        try:
            self._rules.follow(log, records)
        except UnexpectedOffset:
            first = parse_header(records)
            again = restart_within(log.log_start_offset, log.log_end_offset, first.base_offset, first.last_offset)
            if again is None:
                raise
        else:
            return
        logger.info("%s-%d: the leader's log begins within a batch, starting at its %d", *self._key, again.offset)
        self._start_at(again.offset, "leader begins within a batch")
        self._rules.follow(log, records)

    def cut(self, offset: int) -> None:
        """Let the log end at ``offset``, if it does not end before. Raises ``LogError``."""
        if offset < self._log.log_end_offset:
            self._truncate(offset, "leader ends before")

    def restart(self, offset: int) -> None:
        """Wipe the log and begin at ``offset``: the leader has deleted what we lack. Raises ``LogError``."""
        log = self._log
        logger.warning("%s-%d: the leader's log begins at %d, starting again there", *self._key, offset)
        self._counters.truncated_records += log.log_end_offset - log.log_start_offset
        self._tell(log.log_start_offset, "leader begins later")
        self._start_at(offset, "leader begins later")

    def _start_at(self, offset: int, cause: str) -> None:
        self._counters.truncations[cause] += 1
        self._log.truncate_fully_and_start_at(offset)
        self.high_watermark = offset

    def _truncate(self, offset: int, cause: str) -> None:
        """Also below our own log start: a leader may end before it (Kafka's ``UnifiedLog.truncateTo``)."""
        log = self._log
        log_end_offset = log.log_end_offset
        below = offset < self.high_watermark
        logger.log(
            logging.WARNING if below else logging.INFO,
            "%s-%d: cutting the log from %d to %d, %s the watermark %d",
            *self._key, log_end_offset, offset, "below" if below else "not below", self.high_watermark,
        )  # fmt: skip
        self._counters.truncated_records += log_end_offset - max(offset, log.log_start_offset)
        self._counters.truncations[cause] += 1
        self._tell(offset, cause)
        self._rules.truncate(log, offset)
        self.high_watermark = min(self.high_watermark, log.log_end_offset)

    def _tell(self, offset: int, cause: str) -> None:
        """The journal's line, before anything is cut: from where the log is cut, and where it ends now."""
        topic, partition = self._key
        cut = {"offset": offset, "log_end_offset": self._log.log_end_offset, "cause": cause}
        self._journal(TRUNCATED, {"topic": topic, "partition": partition, **cut})


def _error_code(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
