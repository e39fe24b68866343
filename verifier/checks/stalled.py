"""stalled: a partition accepts no writes although everything is healed.

Definition. Every fault is healed and every replica is back in its ISR (phase ``heal`` has ended), and the load
continues for longer than the bound ``stalled_after_s`` (phase ``recovery``). A partition is stalled if a record was in
flight to it during that time and nothing was acknowledged in it. The conductor ends the phase as soon as every
partition accepts writes, so it waits only for partitions that do not. A partition in which nothing was ever
acknowledged counts as well. If the replicas do not come back into sync, there is no phase ``recovery``, and the run is
unknown.

    heal ends at 50 s      t-0: acknowledged at 50.2 s      t-1: 40 records sent, nothing acknowledged until 60 s
"""

# Found without Spark, from the accounts of the histories: a stalled partition has no sentinel, and is therefore not in
# the tables of Spark. Pure.

from __future__ import annotations

from collections.abc import Iterator

from verifier.closing.closing import Closing
from verifier.evidence.phases import HEAL, RECOVERY
from verifier.evidence.run_model import RunModel
from verifier.evidence.units import ms_of_ns, ns_of_seconds
from verifier.facts import Found

NAME = "stalled"


def stalled(run: RunModel, closing: Closing) -> Iterator[Found]:
    """One anomaly per partition; ``detail`` has the time of the last heal, the wait in ms, and the bound in s."""
    waited = _waited(run)
    if waited is None or waited[1] - waited[0] < ns_of_seconds(run.settings.stalled_after_s):
        return
    since_ns, until_ns = waited
    for (topic, partition), last_ns in in_vain(closing, since_ns):
        detail = {
            "healed_ns": since_ns,
            "waited_ms": round(ms_of_ns(until_ns - since_ns)),
            "last_acked_ns": last_ns,
            "bound_s": run.settings.stalled_after_s,
        }
        yield Found(NAME, None, topic, partition, 1, 1, None, None, None, 1, detail)


def unproven(run: RunModel, closing: Closing) -> list[tuple[str, int]]:
    """Partitions that acknowledged nothing in the phase ``recovery``, although it was shorter than the bound.

    The phase ends early only if every partition accepts writes, so the records of such a run contradict each other.
    """
    waited = _waited(run)
    if waited is None or waited[1] - waited[0] >= ns_of_seconds(run.settings.stalled_after_s):
        return []
    return [place for place, _ in in_vain(closing, waited[0])]


def in_vain(closing: Closing, since_ns: int) -> Iterator[tuple[tuple[str, int], int | None]]:
    """Partitions with attempted writes but no acknowledgement after this time, each with its last acknowledgement."""
    acked: dict[tuple[str, int], int] = {}
    tried: dict[tuple[str, int], int] = {}
    for account in closing.accounts:
        for place, at_ns in account.last_acked_ns.items():
            acked[place] = max(at_ns, acked.get(place, at_ns))
        for place, at_ns in account.last_tried_ns.items():
            tried[place] = max(at_ns, tried.get(place, at_ns))
    for place in sorted(tried):
        last_ns = acked.get(place)
        if tried[place] > since_ns and (last_ns is None or last_ns <= since_ns):
            yield place, last_ns


def _waited(run: RunModel) -> tuple[int, int] | None:
    """The ends of the phases ``heal`` and ``recovery`` in ns; None if either is missing."""
    healed, recovery = run.phase(HEAL), run.phase(RECOVERY)
    if healed is None or recovery is None or healed.end_ns is None or recovery.end_ns is None:
        return None
    return healed.end_ns, recovery.end_ns
