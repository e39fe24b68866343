"""The log as it is served: whole batches only, each once, in a row."""

from __future__ import annotations

import struct

from chaos.conductor.served_logs import whole_batches


def batch(base_offset, records, size=70):
    """As much of a batch as is looked at."""
    head = struct.pack(">qi", base_offset, size - 12) + b"\x00" * 11 + struct.pack(">i", records - 1)
    return head + b"\xaa" * (size - len(head))


def test_batches_are_taken_whole_and_once():
    """What was there before the asked offset is left out, and so is a batch that is cut short."""
    three = [batch(0, 5), batch(5, 1), batch(6, 10)]
    served = b"".join(three)
    assert whole_batches(served, 0) == (served, 16)
    assert whole_batches(served, 5) == (three[1] + three[2], 16)
    # an offset within a batch is served with the whole batch
    assert whole_batches(served, 3) == (served, 16)
    for cut in range(1, 70):
        assert whole_batches(served[:-cut], 0) == (three[0] + three[1], 6)
    assert whole_batches(b"", 7) == (b"", 7)
    # what comes again, or goes back, is the leader's log as it is: for the verifier to see
    again = b"".join((three[0], three[0], three[1], three[0], three[2]))
    assert whole_batches(again, 0) == (again, 16)
    assert whole_batches(three[0] + again[70:], 5) == (again[140:], 16)
    assert whole_batches(struct.pack(">qi", 0, -5) + b"\x00" * 80, 0) == (b"", 0)
