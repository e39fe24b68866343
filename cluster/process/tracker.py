"""What multiprocess does by itself and we do otherwise: its resource tracker, and its import of our main module.

Owns doing without the tracker, and what a new child is told of our main module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def no_resource_tracker() -> Iterator[None]:
    """Spare the helper process that multiprocess starts unasked with its first child, and keeps to its own end.

    It removes named semaphores and shared memory that processes leave behind. Neither we nor our children make any,
    and it costs 0.1 s of CPU at each start; it also unblocks SIGINT and SIGTERM, whatever was blocked before. With a
    descriptor that takes everything multiprocess believes that it runs. One that does run is left alone.
    """
    from multiprocess import resource_tracker

    tracker = resource_tracker._resource_tracker
    if tracker._fd is not None:
        yield
        return
    tracker._fd = os.open(os.devnull, os.O_WRONLY)
    try:
        yield
    finally:
        os.close(tracker._fd)
        tracker._fd = None


@contextmanager
def hidden_main() -> Iterator[None]:
    """Spare children that start meanwhile the import of our main module, in case their target is in it.

    None is (a target is named by its module), and the command line's is a second of CPU and 40 MB in every child.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
