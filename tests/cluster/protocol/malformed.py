"""Mutations of well-formed bytes, and the one rule they are held to: only the protocol's own errors may come out."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from cluster.protocol.errors import ProtocolError

Mutate = Callable[[bytes], bytes]

#: Values that lengths are made of when they lie.
LIES = [
    b"\xff\xff\xff\xff\x0f",
    b"\x80\x80\x80\x80\x08",
    b"\xff" * 12,
    b"\x7f\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\xff\xff\xff\xfe",
    b"\x7f\xff",
    b"\x80\x00",
    b"\x00",
    b"\x01",
]


@st.composite
def mutations(draw: st.DrawFn) -> Mutate:
    """A function that damages bytes: cut, flip, overwrite by a lie, insert, delete, repeat."""
    steps = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["cut", "flip", "lie", "insert", "delete", "append"]),
                st.floats(0, 1),
                st.integers(0, 255),
                st.sampled_from(LIES),
            ),
            min_size=1,
            max_size=4,
        )
    )

    def mutate(data: bytes) -> bytes:
        for kind, where, byte, lie in steps:
            at = int(where * len(data))
            if kind == "cut":
                data = data[:at]
            elif kind == "flip" and at < len(data):
                data = data[:at] + bytes((data[at] ^ (byte or 1),)) + data[at + 1 :]
            elif kind == "lie":
                data = data[:at] + lie + data[at + len(lie) :]
            elif kind == "insert":
                data = data[:at] + lie + data[at:]
            elif kind == "delete":
                data = data[:at] + data[at + byte % 5 + 1 :]
            elif kind == "append":
                data += lie
        return data

    return mutate


def assert_only_malformed(decode: Callable[[bytes], Any], data: bytes) -> None:
    """``decode`` returns or raises a ``ProtocolError``; anything else propagates and fails the test."""
    try:
        decode(data)
    except ProtocolError:
        return


def peak_bytes(call: Callable[[], Any]) -> int:
    """The most memory that Python allocated during ``call``."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
