"""Garbage collection around what is made once and stays. Owns that alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting() -> Iterator[None]:
    """What is made inside stays to the end of the process: garbage is looked for among it neither now nor later.

    A process that has collected all tests holds millions of objects; every full collection would visit each of them.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
