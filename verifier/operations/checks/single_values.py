"""The checks of single values: phantom, G1a, precommitted-read, lost-write and unseen.

Owns these checks. Does not own the derived order of the log (``verifier.operations.versions``).
"""

from __future__ import annotations

import numpy as np

from verifier.operations.columns import least_by, marked, most_by, starts_of_groups
from verifier.operations.findings import Findings, findings
from verifier.operations.model import FAIL, OK
from verifier.operations.pairing import Operations
from verifier.operations.versions import Versions


def find(operations: Operations, versions: Versions) -> list[Findings]:
    """The findings of all five checks."""
    return [
        _phantom(operations),
        _aborted_read(operations),
        _precommitted_read(operations),
        _lost_write(operations, versions),
        _unseen(operations, versions),
    ]


def _phantom(operations: Operations) -> Findings:
    """One finding per value that was read but never sent."""
    count = len(operations.values)
    reader = least_by(operations.read, operations.read_by, count, -1)
    found = np.flatnonzero((operations.writer < 0) & (reader >= 0))
    offset = most_by(operations.read, operations.read_offset, count)
    return findings("phantom", operations.key_of[found], value=found, offset=offset[found], operation=reader[found])


def _aborted_read(operations: Operations) -> Findings:
    """One finding per read, by an ok operation, of a value whose only writer failed."""
    writer = operations.writer[operations.read]
    failed = (writer >= 0) & (operations.type[writer] == FAIL)
    rows = np.flatnonzero(failed & (operations.type[operations.read_by] == OK))
    value = operations.read[rows]
    return findings(
        "G1a",
        operations.key_of[value],
        value=value,
        offset=operations.read_offset[rows],
        operation=operations.read_by[rows],
        earlier=writer[rows],
    )


def _precommitted_read(operations: Operations) -> Findings:
    """One finding per operation and key for which the operation read its own send."""
    rows = np.flatnonzero(operations.writer[operations.read] == operations.read_by)
    by, key = operations.read_by[rows], operations.key_of[operations.read[rows]]
    order = np.lexsort((np.arange(len(rows)), key, by))
    rows = rows[order][starts_of_groups([by[order], key[order]])]
    value = operations.read[rows]
    return findings(
        "precommitted-read",
        operations.key_of[value],
        value=value,
        offset=operations.read_offset[rows],
        operation=operations.read_by[rows],
    )


def _lost_write(operations: Operations, versions: Versions) -> Findings:
    """One finding per value that must have been written, is not after the last value read, and was not read itself."""
    count = len(operations.keys)
    read = np.flatnonzero(versions.ok_read & (versions.first_index >= 0))
    bound = most_by(operations.key_of[read], versions.first_index[read], count)
    at_bound = read[versions.first_index[read] == bound[operations.key_of[read]]]
    witness = np.full(count, -1, dtype=np.int64)
    witness[operations.key_of[at_bound]] = at_bound
    happened = marked(len(operations.values), operations.sent[versions.committed])
    lost = np.flatnonzero(
        happened & ~versions.ok_read & (versions.last_index >= 0) & (versions.last_index <= bound[operations.key_of])
    )
    key = operations.key_of[lost]
    offset = versions.slot_offset[versions.key_start[key] + versions.first_index[lost]]
    return findings(
        "lost-write",
        key,
        value=lost,
        other=witness[key],
        offset=offset,
        operation=operations.writer[lost],
        delta=bound[key] - versions.first_index[lost],
    )


def _unseen(operations: Operations, versions: Versions) -> Findings:
    """One finding per acknowledged value that no ok operation read."""
    acknowledged = operations.type[operations.sent_by] == OK
    rows = np.flatnonzero(acknowledged & ~versions.ok_read[operations.sent])
    value = operations.sent[rows]
    return findings(
        "unseen",
        operations.key_of[value],
        value=value,
        offset=operations.sent_offset[rows],
        operation=operations.sent_by[rows],
    )
