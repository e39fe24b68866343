"""``stats`` in ``verdict.json``: counts of values, regions, and faults by kind. Owns these; decides nothing. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from verifier.evidence.declared import WriterRole
from verifier.facts import Audit, Region
from verifier.figures.lag_figures import figures
from verifier.witness.effectiveness import Injected

#: The figures that are counted in the histories of each role. If one of those histories is missing, they are left out.
_COUNTED: dict[WriterRole, frozenset[str]] = {
    "producers": frozenset({"acked", "acked_and_read", "unknown", "failed", "never_sent", "deleted"}),
    "final": frozenset({"read", "acked_and_read"}),
}


def stats(injected: Sequence[Injected], audit: Audit, uncounted: Collection[WriterRole] = ()) -> dict[str, Any]:
    """``stats`` in ``verdict.json``, without the counts from the roles in ``uncounted``."""
    counted = _stats(injected, audit)
    absent = frozenset[str]().union(*(_COUNTED[role] for role in uncounted))
    return {name: value for name, value in counted.items() if name not in absent}


def _stats(injected: Sequence[Injected], audit: Audit) -> dict[str, Any]:
    facts = audit.facts

    def values(chosen: Sequence[Region]) -> int:
        return sum(region.values for region in chosen)

    return {
        "acked": facts.acked,
        "read": values([region for region in audit.regions if region.seen]),
        "acked_and_read": values([region for region in audit.regions if region.acked and region.seen]),
        "in_log": values([region for region in audit.regions if region.logged]),
        "unknown": facts.unknown,
        "failed": facts.failed,
        "never_sent": facts.never_sent,
        "deleted": facts.deleted,
        "deliveries": facts.read,
        "segments": sum(replica.files for replica in facts.replicas),
        "bytes": sum(replica.size_bytes for replica in facts.replicas),
        "batches": sum(replica.batches for replica in facts.replicas),
        "torn_bytes": sum(replica.size_bytes - replica.walked_bytes for replica in facts.replicas),
        "final_readers": len({reader.process for reader in facts.readers}),
        "live_readers": len(facts.live_readers),
        "read_lag": figures(audit.lags),
        "faults": {
            "injected": len(injected),
            "effective": sum(each.effective for each in injected),
            "skipped": sum(each.skipped for each in injected),
            "kinds": _kinds(injected),
        },
        "regions": [
            {"acked": region.acked, "in_log": region.logged, "read": region.seen, "values": region.values}
            for region in sorted(audit.regions, key=lambda r: (not r.acked, not r.logged, not r.seen))
        ],
    }


def _kinds(injected: Sequence[Injected]) -> dict[str, dict[str, int]]:
    """For each kind of fault: how many were injected, and how many of those took effect."""
    kinds: dict[str, dict[str, int]] = {}
    for each in injected:
        counted = kinds.setdefault(each.fault, {"injected": 0, "effective": 0})
        counted["injected"] += 1
        counted["effective"] += each.effective
    return kinds
