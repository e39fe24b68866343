"""Whether the evidence is what the run left: every file against the seal. Pure.

What was changed later accuses no one. A changed history blinds what clients were told, a changed ``run.json``
everything. A replica's changed bytes stay in the judgment: they are the cluster's data, no matter what damaged them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from verifier.closing.closing import Closing
from verifier.completeness.together import together
from verifier.doubts import ALL, CLOCK, EXCUSES, HISTORIES, JOURNALS, NOTHING, Doubt, Evidence
from verifier.evidence.how_many import how_many

#: What a changed file makes blind, by its path; the first that fits.
_BLINDS: tuple[tuple[str, frozenset[Evidence]], ...] = (
    ("run.json", ALL),
    ("history/*", HISTORIES),
    ("faults.jsonl", EXCUSES),
    ("leaders.jsonl", EXCUSES),
    ("nodes/*/control.jsonl", JOURNALS),
    ("resources.jsonl", CLOCK),
    ("*", NOTHING),
)
#: At most this many files are named; the others are counted.
MOST_NAMED = 6


def doubts(closing: Closing) -> Iterator[Doubt]:
    """What is not as it was sealed."""
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
    """What a file that is not as it was makes blind."""
    return next(blinds for pattern, blinds in _BLINDS if fnmatchcase(path, pattern))
