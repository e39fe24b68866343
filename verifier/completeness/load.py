"""Checks that there was a real load: enough records were acknowledged and read, in total and in every partition. Pure.

Owns these doubts and their bounds. The bounds are low, since faults reduce throughput, and the requested rate may be
higher than the machine can send. They only distinguish a load from the remains of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from verifier.accounts.columns import Where
from verifier.checks.stalled import unproven
from verifier.closing.closing import Closing
from verifier.completeness.together import together
from verifier.doubts import HISTORIES, Doubt
from verifier.evidence.declared import WriterRole
from verifier.evidence.how_many import how_many
from verifier.evidence.phases import CHAOS
from verifier.evidence.run_model import RunModel
from verifier.evidence.sequenced_value import value_name
from verifier.evidence.units import seconds_of_ns
from verifier.facts import Facts
from verifier.workload_asked import transactions_asked

#: The least share of the records due at the requested rate that must have been acknowledged.
LEAST_OF_ASKED = 0.1
#: Each partition that is written to must have at least this part of the average number of acknowledged records.
LEAST_OF_SHARE = 0.1
#: The least share of a partition's acknowledged records that each live reader must have received.
LEAST_READ_LIVE = 0.5
#: The least share of all acknowledged records that the members of a group must have received together. If a member
#: dies, its partitions wait until its session expires.
LEAST_READ_BY_MEMBERS = 0.1
#: If at least this many aborts are expected, a run without any abort raises a doubt.
EXPECTED_ABORTS = 20
#: The default share of transactions that the workload aborts on purpose.
_USUAL_ABORTS = 0.1
#: The number that comes from the histories of each role, in words.
_COUNTED: dict[WriterRole, str] = {"producers": "what was acknowledged", "final": "what was read in the final phase"}


def doubts(run: RunModel, facts: Facts, closing: Closing) -> Iterator[Doubt]:
    """Reasons why the load was too small, or is too badly recorded, to prove anything."""
    uncounted = uncountable(run, closing)
    for role, names in uncounted.items():
        yield Doubt(f"{_COUNTED[role]} could not be counted: there is no readable history of {', '.join(names)}")
    if not facts.acked and "producers" not in uncounted:
        yield Doubt("nothing was acknowledged")
    if not facts.final_read and "final" not in uncounted:
        yield Doubt("nothing was read in the final phase")
    if facts.replicas and not sum(replica.batches for replica in facts.replicas):
        yield Doubt("no batch was found in any segment")
    if facts.malformed_rows:
        rows = how_many(facts.malformed_rows, "row")
        yield Doubt(f"the ranges of sequences and offsets do not match in {rows} of the histories")
    for each in facts.mistimed:
        value = value_name(each.stream, each.sequence)
        yield Doubt(
            f"{each.topic}-{each.partition}: {each.count} rows of acknowledgements begin at another time than their "
            f"values say; the first is that of {value}, from {each.invoke_ns} ns, sent about {each.sent_ns} ns",
            HISTORIES,
        )
    if "producers" not in uncounted:
        loads = [*_rate(run, facts), *_partitions(run, facts, closing), *_members(run, closing)]
        for reason in [*loads, *_transactions(run, closing), *_recovered(run, closing)]:
            yield Doubt(reason)


def uncountable(run: RunModel, closing: Closing) -> dict[WriterRole, list[str]]:
    """The roles whose values cannot be counted, each with its processes whose history is missing or unreadable."""
    found = {role: unreadable(run, closing, role) for role in _COUNTED}
    return {role: names for role, names in found.items() if names}


def unreadable(run: RunModel, closing: Closing, role: WriterRole) -> list[str]:
    """The declared processes of a role whose history is missing or unreadable."""
    read = {account.process for account in closing.accounts if account.state != "damaged"}
    return [process.name for process in run.evidence.of_role(role) if process.name not in read]


def _rate(run: RunModel, facts: Facts) -> Iterator[str]:
    """A total far below the requested rate."""
    chaos = run.phase(CHAOS)
    if chaos is None or chaos.end_ns is None or not run.settings.rate or not facts.acked:
        return
    seconds = seconds_of_ns(chaos.end_ns - chaos.start_ns)
    asked = run.settings.rate * seconds
    if facts.acked < LEAST_OF_ASKED * asked:
        yield (
            f"{facts.acked:,} records were acknowledged in {seconds:.0f} s of load, "
            f"less than {LEAST_OF_ASKED:.0%} of the {asked:,.0f} that were asked for"
        )


def _members(run: RunModel, closing: Closing) -> Iterator[str]:
    """A group that received too few records, nothing from some partition, or committed no offset."""
    if unreadable(run, closing, "members"):
        return  # already doubted: without a history, no one knows what a member received
    own = {process.name for process in run.evidence.of_role("members")}
    members = [account for account in closing.accounts if account.process in own]
    if not members:
        return
    producers = {process.name for process in run.evidence.of_role("producers")}
    written, taken = Counter[Where](), Counter[Where]()
    for each in closing.accounts:
        written.update(each.acked if each.process in producers else {})
        taken.update(each.read if each.process in own else {})
    acked, handed = written.total(), taken.total()
    if handed < LEAST_READ_BY_MEMBERS * acked:
        yield (
            f"the members of the group were handed {handed:,} records, less than {LEAST_READ_BY_MEMBERS:.0%} of the "
            f"{acked:,} that were acknowledged"
        )
    elif absent := [f"{topic}-{number}" for topic, number in sorted(written) if not taken[topic, number]]:
        yield f"no member of the group was handed anything of {', '.join(absent)}"
    if not any(each.rows.get((f, "ok"), (0, 0))[0] for each in members for f in ("offset-commit", "commit")):
        yield "the members of the group committed no offset"


def _transactions(run: RunModel, closing: Closing) -> Iterator[str]:
    """A run with transactions in which none was committed, or none aborted although some should have been."""
    plan = transactions_asked(run)
    if plan is None:
        return
    producers = {process.name for process in run.evidence.of_role("producers")}
    own = [account.rows for account in closing.accounts if account.process in producers]
    begun, committed = (sum(rows.get((f, "ok"), (0, 0))[0] for rows in own) for f in ("begin", "commit"))
    if not committed:
        yield f"none of {begun:,} transactions was committed"
    share = plan.get("aborts")
    expected = (share if isinstance(share, float | int) else _USUAL_ABORTS) * begun
    if expected >= EXPECTED_ABORTS and not any(f == "abort" for rows in own for f, _ in rows):
        yield f"none of {begun:,} transactions was aborted, and about {expected:,.0f} were to be"


def _recovered(run: RunModel, closing: Closing) -> Iterator[str]:
    """Partitions that accepted no writes in a phase ``recovery`` that was too short to call them stalled."""
    reason = "the phase recovery ended before the bound, and nothing was acknowledged in it since everything was healed"
    yield from together((f"{topic}-{partition}", reason) for topic, partition in unproven(run, closing))


def _partitions(run: RunModel, facts: Facts, closing: Closing) -> Iterator[str]:
    """Partitions with too few acknowledgements, and partitions of which a live reader read too little."""
    acked: Counter[tuple[str, int]] = Counter()
    live: dict[str, Mapping[tuple[str, int], int]] = {}
    # if an acknowledgement has no offset, the log says where its value is
    due: dict[tuple[str, int], int] = dict(facts.due)
    ends = {(final.topic, final.partition): final.sentinel_offset for final in run.final}
    for account in closing.accounts:
        process = run.evidence.process(account.process)
        if process is not None and process.role == "producers":
            acked.update(account.acked)
            for where, offset in account.due.items():
                due[where] = max(offset, due.get(where, -1))
        elif process is not None and process.role == "readers" and account.state != "torn":
            # a killed reader reads no more; ``verifier.completeness.killed`` checks that a fault killed it
            live[account.process] = account.read
    # streams are assigned to the partitions in turn; the streams of a killed process end early
    torn = {account.process for account in closing.accounts if account.state == "torn"}
    streams = [stream for stream, process in run.evidence.streams.items() if process not in torn]
    written = sorted({(topic.name, stream % topic.partitions) for topic in run.topics for stream in streams})
    share = sum(acked.values()) / max(1, len(written))
    complaints = []
    for place in written:
        name = f"{place[0]}-{place[1]}"
        if acked[place] < max(1.0, LEAST_OF_SHARE * share):
            complaints.append((name, f"{acked[place]:,} records were acknowledged, of about {share:,.0f} each"))
        for process_name, read in live.items():
            if read.get(place, 0) < LEAST_READ_LIVE * acked[place]:
                complaints.append(
                    (name, f"{process_name} read {read.get(place, 0):,} of {acked[place]:,} acknowledged records live")
                )
    for account in closing.accounts:
        # ``verifier.completeness.killed`` has the rules for a killed process
        if account.process not in live or account.state != "closed":
            continue
        for place, acknowledged in sorted(due.items()):
            # a log may be legally truncated below an acknowledged offset
            end = ends.get(place)
            wanted = acknowledged if end is None else min(acknowledged, end - 1)
            if account.reached.get(place, -1) < wanted:
                reached = account.reached.get(place, -1)
                reason = f"{account.process} came to offset {reached} live, of {wanted} acknowledged before recovery"
                complaints.append((f"{place[0]}-{place[1]}", reason))
    yield from together(complaints)
