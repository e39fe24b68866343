"""The checks inconsistent-offsets and duplicate: the operations contradict each other about a key's log.

Owns these two checks. Does not own the derived order of the log (``verifier.operations.versions``).
"""

from __future__ import annotations

import numpy as np

from verifier.operations.columns import least_by
from verifier.operations.findings import Findings, findings
from verifier.operations.pairing import Operations
from verifier.operations.versions import Versions


def find(operations: Operations, versions: Versions) -> list[Findings]:
    """One inconsistency per slot, with two of its values; one duplicate per value, with its first offset."""
    claims = np.bincount(versions.claim_slot, minlength=len(versions.slot_key))
    slots = np.flatnonzero(claims > 1)
    first_claim = np.cumsum(claims) - claims
    one = versions.claim_value[first_claim[slots]]
    another = versions.claim_value[first_claim[slots] + 1]
    preferred = versions.slot_value[slots]
    inconsistent = findings(
        "inconsistent-offsets",
        versions.slot_key[slots],
        value=preferred,
        other=np.where(one == preferred, another, one),
        offset=versions.slot_offset[slots],
        delta=claims[slots],
    )
    stands = np.bincount(versions.claim_value, minlength=len(operations.values))
    twice = np.flatnonzero(stands > 1)
    offsets = least_by(versions.claim_value, versions.slot_offset[versions.claim_slot], len(operations.values), -1)
    duplicate = findings(
        "duplicate",
        operations.key_of[twice],
        value=twice,
        offset=offsets[twice],
        operation=operations.writer[twice],
        delta=stands[twice],
    )
    return [inconsistent, duplicate]
