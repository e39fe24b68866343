"""double-assignment: two members of a group had one partition in one generation.

Definition. The leader of a generation assigns each partition to one member. Two members with different ids were
assigned the same partition in the same generation, and the first one had neither released it nor ended when the second
one got it. Legal: one after the other; two members in different generations, since the first one may not know yet that
it was removed; a static member that was restarted in the same generation, which its member id shows
(``group.instance.id``, ``-``, and a UUID). Not judged if a client does not report its generation, nor for partitions
that a cooperative member keeps from an earlier generation.

    orders, generation 3: member a: resume t-0      generation 3: member b: resume t-0
"""

# From the rows of histories, in this process. Pure.

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from verifier.groups.model import GroupEvidence, ResumedMember
from verifier.transactions.model import Anomalous

NAME = "double-assignment"
#: The length of the suffix of a member id: a hyphen and a UUID.
_RANDOM_CHARACTERS = 37


def double_assignment(evidence: GroupEvidence) -> Iterator[Anomalous]:
    """One anomaly per member that was assigned another member's partition; ``offset`` is where it began."""
    for (group, place), partition in evidence.partitions.items():
        generations: dict[int, list[ResumedMember]] = defaultdict(list)
        for resumed in partition.resumed:
            if resumed.generation >= 0:
                generations[resumed.generation].append(resumed)
        for generation, members in generations.items():
            for first, second in _doubles(members):
                detail = {
                    "group": group,
                    "generation": generation,
                    "process": second.process,
                    "member": second.member_id,
                    "other_process": first.process,
                    "other_member": first.member_id,
                }
                yield Anomalous(NAME, None, *place, second.offset, detail)


def _doubles(members: Sequence[ResumedMember]) -> Iterator[tuple[ResumedMember, ResumedMember]]:
    """Each member with the first one that still had the partition."""
    ordered = sorted(members, key=lambda each: (each.begin_ns, each.process, each.session))
    for at, second in enumerate(ordered):
        for first in ordered[:at]:
            if first.released_ns > second.begin_ns and not _may_share(first.member_id, second.member_id):
                yield first, second
                break


def _may_share(one: str, other: str) -> bool:
    """Whether both ids belong to the same member, or to one static member before and after a restart."""
    return one == other or (len(one) > _RANDOM_CHARACTERS and one[:-_RANDOM_CHARACTERS] == other[:-_RANDOM_CHARACTERS])
