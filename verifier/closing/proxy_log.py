"""How often the proxy's own log says that a link began to listen. Owns the form of these lines; judges nothing.

The proxy is a process of its own, and logs each start: it knows nothing of the conductor's record of faults.
Toxiproxy, which may take its place, leaves no such log with a run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial

from verifier.evidence.bounded import size_of
from verifier.evidence.run_directory import RunDirectory

#: The log of a run's own proxy, and that of the relays in front of a cluster that others started.
_LOGS = ("proxy.log", "relays.log")
#: A line that is longer than any of ours comes in pieces.
_PIECE = 1 << 16
_STARTED = re.compile(r" INFO chaos\.proxy\.proxy: Proxy\('(?P<link>[^']+)', .*, on\) started$")


def link_starts(directory: RunDirectory) -> Mapping[str, int]:
    """By link; nothing if no log tells. One that cannot be read is doubted with all logs
    (``verifier.closing.closing``)."""
    found: Counter[str] = Counter()
    for name in _LOGS:
        path = directory.path / name
        with suppress(OSError):
            size_of(path)
            with path.open(encoding="utf-8", errors="replace") as lines:
                found.update(starts_in(iter(partial(lines.readline, _PIECE), "")))
    return found


def starts_in(lines: Iterable[str]) -> Counter[str]:
    """The same of the lines of a log. Pure."""
    seen = (_STARTED.search(line.rstrip("\n")) for line in lines)
    return Counter(each["link"] for each in seen if each is not None)
