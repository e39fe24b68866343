"""Passes of garbage collection are short (``cluster.process.garbage``), in a process of its own: it is Python's."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from cluster.process import garbage
from cluster.process.garbage import ALL_EACH_NS, COUNTED_EACH_NS, MANY_EACH_NS, MANY_OBJECTS, YOUNG_AFTER, Garbage

SCRIPT = """
import asyncio, gc, json, weakref
from cluster.process.garbage import ALL_EACH_NS, MANY_EACH_NS, Garbage

class Node:
    pass

async def main():
    now_ns = [0]
    garbage = Garbage(asyncio.get_running_loop(), lambda: now_ns[0])
    garbage.begin()
    kept, most = [], 0
    for _ in range(100):
        kept += [[number] for number in range(10_000)]
        await asyncio.sleep(0)
        most = max(most, sum(len(gc.get_objects(generation)) for generation in range(3)))
    circle = Node()
    circle.itself = circle
    is_gone = weakref.ref(circle)
    kept += [[number] for number in range(200_000)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del circle
    gc.collect()
    set_aside = is_gone() is not None
    early = garbage.examine_all()
    now_ns[0] += ALL_EACH_NS
    # With this many objects it takes longer, and is done less often.
    soon = garbage.examine_all()
    now_ns[0] += MANY_EACH_NS
    late = garbage.examine_all()
    again = garbage.examine_all()
    found = [len(kept), most, set_aside, early, soon, late, is_gone() is None, again]
    garbage.end()
    print(json.dumps([*found, gc.get_freeze_count(), len(gc.callbacks)]))

asyncio.run(main())
"""


def test_what_is_old_is_set_aside_and_examined_seldom() -> None:
    """Of a million objects that live on, a pass examines the new ones; cycles of old ones go when all are examined."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    kept, most, set_aside, early, soon, late, is_gone, again, frozen, callbacks = json.loads(done.stdout)
    assert kept == 1_200_000
    assert most < 200_000
    assert set_aside
    assert (early, soon, late, is_gone, again) == (False, False, True, True, False)
    assert (frozen, callbacks) == (0, 0)


def test_what_is_set_aside_is_seldom_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 50 ms for a million objects, in which nothing else runs: once a minute while there are too many."""
    loop, now_ns, counts, calls = asyncio.new_event_loop(), 0, 0, []

    def count() -> int:
        nonlocal counts
        counts += 1
        return MANY_OBJECTS

    python = SimpleNamespace(get_freeze_count=count, callbacks=[], get_threshold=lambda: YOUNG_AFTER)
    for name in ("collect", "freeze", "unfreeze", "enable", "set_threshold"):
        setattr(python, name, lambda *_given, name=name: calls.append(name))
    monkeypatch.setattr(garbage, "gc", python)
    made = Garbage(loop, lambda: now_ns)
    made.begin()
    for _ in range(garbage.SET_ASIDE_AFTER):
        python.callbacks[0]("stop", {"generation": 1})
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    calls.clear()
    while now_ns < MANY_EACH_NS:
        assert not made.examine_all()
        now_ns += ALL_EACH_NS // 5
    assert counts <= MANY_EACH_NS // COUNTED_EACH_NS
    assert calls == []
    assert made.examine_all()
    assert calls == ["unfreeze", "collect", "freeze"]
