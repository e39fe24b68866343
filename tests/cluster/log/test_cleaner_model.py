"""Cleaning against the list of all that was ever written, with a crash at every operation."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.log.partition_log import PartitionLog
from cluster.protocol.batch import parse_header
from cluster.protocol.records import Record
from tests.cluster.log.builders import NOW_MS, bench, open_log
from tests.cluster.log.cleaning import CONFIG, KEYS, PAIRS, RETENTION_MS, batches, clean, put, records, reopen
from tests.cluster.log.crashing import Died, dying_after


@pytest.mark.parametrize("power", [False, True])
@settings(max_examples=2)
@given(
    writes=st.lists(
        st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from([None, b"1", b"22"])), min_size=1, max_size=3),
        min_size=10,
        max_size=14,
    ),
)
def test_a_crash_at_every_operation(writes, power):
    """After each one the next start has every key's newest record, no record that was never there, the same end,
    and the producer; and then the compaction can be done again, with the outcome it would have had."""
    prepared = bench()
    log = open_log(prepared, CONFIG)
    for sequence, pairs in enumerate(writes):
        put(log, *pairs, producer_id=7, producer_epoch=0, base_sequence=sum(map(len, writes[:sequence])))
    clean(log)  # what it leaves is small, so that the next one makes one segment of several
    for _ in range(8):
        put(log, (b"a", b"later"))
    log.flush()
    before = {record.offset: record for record in records(log)}
    end = log.log_end_offset
    operations = 0
    while True:
        on = deepcopy(prepared)
        log = reopen(on, recovery_point=end)
        try:
            with dying_after(operations):
                clean(log)
            done = True
        except Died:
            done = False
        if power:
            on.storage.power_loss()
        again = reopen(on, recovery_point=end)
        check(again, before, end)
        clean(again)
        check(again, before, end)
        active = again.segment_base_offsets[-1]
        below = [record.key for record in records(again) if record.offset < active]
        assert len(below) == len(set(below))
        if done:
            return
        operations += 1


def check(log: PartitionLog, before: dict[int, Record], end: int) -> None:
    after = records(log)
    assert log.log_end_offset == end
    segments = list(log._local.segments)
    assert all(segment.next_offset <= later.base_offset for segment, later in pairwise(segments))
    assert all(before[record.offset] == record for record in after)
    newest = {record.key: record for record in before.values()}
    assert set(newest.values()) <= set(after)
    entry = log.producers.get(7)
    assert entry is not None and entry.batches[-1].last_offset == end - 9


class Compacting(RuleBasedStateMachine):
    """Appends, compactions, restarts and time, against the list of all that was ever written."""

    @initialize()
    def begin(self) -> None:
        self.on = bench()
        self.log = open_log(self.on, CONFIG)
        self.written: dict[int, Record] = {}
        self.now_ms = NOW_MS
        #: Of each tombstone that a compaction has met, when it may go.
        self.horizons: dict[int, int] = {}
        self.gone: set[int] = set()

    @rule(pairs=st.lists(PAIRS, min_size=1, max_size=3))
    def write(self, pairs):
        base = self.log.log_end_offset
        put(self.log, *pairs, now_ms=self.now_ms)
        for number, (key, value) in enumerate(pairs):
            self.written[base + number] = Record(base + number, self.now_ms, key, value, ())

    @rule(later_ms=st.integers(1, 700))
    def wait(self, later_ms):
        self.now_ms += later_ms

    @rule(max_keys=st.sampled_from([2, 1000]))
    def compact(self, max_keys):
        starts = {o: parse_header(b).base_offset for b in batches(self.log) for o in self.offsets(b)}
        if not clean(self.log, self.now_ms, max_keys):
            return
        cleaned_to = self.log.cleaned_to
        newest = self.newest_below(cleaned_to)
        # The tombstones of one batch share the horizon of the first pass that saw one of them.
        horizons = {starts[o]: at for o, at in self.horizons.items() if o in starts}
        for offset, record in self.written.items():
            if offset >= cleaned_to or newest[record.key] != offset or record.value is not None or offset in self.gone:
                continue
            horizon = horizons.get(starts[offset])
            if horizon is None:
                self.horizons[offset] = self.now_ms + RETENTION_MS
            elif self.now_ms >= horizon:
                self.gone.add(offset)
            else:
                self.horizons[offset] = horizon

    @staticmethod
    def offsets(batch: bytes) -> range:
        header = parse_header(batch)
        return range(header.base_offset, header.next_offset)

    def newest_below(self, end: int) -> dict[bytes | None, int]:
        return {record.key: offset for offset, record in sorted(self.written.items()) if offset < end}

    @rule()
    def restart(self):
        self.log = reopen(self.on, self.log.cleaned_to, recovery_point=self.log.recovery_point)

    @invariant()
    def the_log_is_what_the_list_says(self):
        cleaned_to = self.log.cleaned_to
        newest = self.newest_below(cleaned_to)
        expected = [
            record
            for offset, record in sorted(self.written.items())
            if offset >= cleaned_to or (newest[record.key] == offset and offset not in self.gone)
        ]
        assert records(self.log) == expected
        assert self.log.log_end_offset == len(self.written)


TestCompacting = Compacting.TestCase
TestCompacting.settings = settings(stateful_step_count=20)
