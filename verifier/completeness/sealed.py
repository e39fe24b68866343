"""Checks every file of a run against its seal, to find files that were changed after the run. Pure.

Owns which evidence a changed file blinds. A file that was changed later must not cause an anomaly. So a changed history
blinds the histories, and a changed ``run.json`` blinds everything. A replica's changed bytes blind nothing: they are
the cluster's own data, and are judged no matter what damaged them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from verifier.closing.closing import Closing
from verifier.completeness.together import together
from verifier.doubts import ALL, CLOCK, EXCUSES, HISTORIES, JOURNALS, NOTHING, Doubt, Evidence
from verifier.evidence.how_many import how_many

#: (pattern, the evidence that a changed file blinds). The first pattern that matches the path applies.
_BLINDS: tuple[tuple[str, frozenset[Evidence]], ...] = (
    ("run.json", ALL),
    ("history/*", HISTORIES),
    ("faults.jsonl", EXCUSES),
    ("leaders.jsonl", EXCUSES),
    ("nodes/*/control.jsonl", JOURNALS),
    ("resources.jsonl", CLOCK),
    ("*", NOTHING),
)
#: The most files that doubts name; the others are only counted.
MOST_NAMED = 6


def doubts(closing: Closing) -> Iterator[Doubt]:
    """Files that are missing, new, changed or unreadable since the run was sealed, or that the run did not declare."""
    if closing.seal_problem is not None:
        yield Doubt(closing.seal_problem)
    for each in closing.unreadable:
        yield Doubt(f"{each.path} cannot be read: {each.error}", blind_for(each.path))
    yield from _told([(path, "it belongs to nothing that the run declared") for path in closing.strangers], NOTHING)
    words = {"missing": "missing since the run was sealed", "changed": "changed since the run was sealed"}
    words["new"] = "not there when the run was sealed"
    for blinds in dict.fromkeys(blinds for _, blinds in _BLINDS):
        named = [each for each in closing.differences if blind_for(each.path) == blinds]
        yield from _told([(each.path, words[each.what]) for each in named], blinds)


def _told(complaints: list[tuple[str, str]], blinds: frozenset[Evidence]) -> Iterator[Doubt]:
    for line in together(complaints[:MOST_NAMED]):
        yield Doubt(line, blinds)
    if len(complaints) > MOST_NAMED:
        yield Doubt(f"the same or similar for {how_many(len(complaints) - MOST_NAMED, 'more file')}", blinds)


def blind_for(path: str) -> frozenset[Evidence]:
    """The evidence that a changed file with this path blinds."""
    return next(blinds for pattern, blinds in _BLINDS if fnmatchcase(path, pattern))
