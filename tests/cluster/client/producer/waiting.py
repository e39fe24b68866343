"""Knowing that a thread waits, without waiting for it: a condition that tells.

Owns that alone. Does not own what is waited for.
"""

from __future__ import annotations

import threading

import pytest


def telling_condition(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """From now on, the semaphore returned is released whenever a thread is about to wait, the lock in its hand.

    So whoever has acquired it, and then takes that lock, finds the thread waiting.
    """
    begun = threading.Semaphore(0)

    class Telling(threading.Condition):
        def wait_for(self, predicate, timeout=None):
            begun.release()
            return super().wait_for(predicate, timeout)

    monkeypatch.setattr(threading, "Condition", Telling)
    return begun
