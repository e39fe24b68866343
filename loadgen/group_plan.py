"""The consumer group of a workload: its members, and how long each of them lives. Pure. Starts no member.

As YAML, all of it optional:

```yaml
members:
  native: 3         # members with gapless's own client
  confluent: 3      # members with librdkafka
  static: 1         # how many members of each client have a group.instance.id
  lives_s: 8        # mean time until a member leaves, crashes or (if it is static) restarts
  assignor: range   # or roundrobin, cooperative-sticky
  transform: true   # write to the topic gapless-output, in transactions; default: false
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from random import Random
from typing import Any, NamedTuple

from loadgen.spec import SpecError

#: The only group of a run.
GROUP = "gapless-members"
#: The prefix of the names of members' processes; the client's name follows.
MEMBERS = "members"
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
CLIENTS_OF_MEMBERS = ("native", "confluent")

#: The specification: a mapping with some of the fields of ``Members``.
MembersSpec = Mapping[str, Any]

#: The shortest life, long enough for a member to get partitions and commit.
LEAST_LIFE_S = 2.0
#: The bounds of the time for which a member's place stays empty.
ABSENCE_S = (0.2, 2.0)
#: The share of dynamic members' lives that end in a crash.
CRASHES = 0.5


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a group. Raises SpecError for values that make no sense."""

    native: int = 3
    confluent: int = 3
    static: int = 1
    lives_s: float = 8.0
    assignor: str = "range"
    transform: bool = False

    def __post_init__(self) -> None:
        for name in ("native", "confluent", "static"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise SpecError(f"{name} of members is a number from 0 on, not {value!r}")
        if not self.native + self.confluent:
            raise SpecError("members needs at least one of native, confluent")
        lives_s = self.lives_s
        if isinstance(lives_s, bool) or not isinstance(lives_s, int | float) or not lives_s >= LEAST_LIFE_S:
            raise SpecError(f"lives_s of members is a number of seconds from {LEAST_LIFE_S:g} on, not {lives_s!r}")
        if not isinstance(self.transform, bool):
            raise SpecError(f"transform of members is true or false, not {self.transform!r}")
        if self.assignor not in ASSIGNORS:
            raise SpecError(f"assignor of members is one of {', '.join(ASSIGNORS)}, not {self.assignor!r}")

    @property
    def user_class(self) -> str:
        """The name of the Locust user class of the members."""
        return "TransformerUser" if self.transform else "MemberUser"

    def of(self, client: str) -> int:
        """How many members have this client."""
        return int(getattr(self, client))

    def processes(self) -> list[tuple[str, str, int]]:
        """Name, client and number of members of each process: there is one per client."""
        return [(f"{MEMBERS}-{client}", client, self.of(client)) for client in CLIENTS_OF_MEMBERS if self.of(client)]


def parse_members(spec: MembersSpec) -> Members:
    """The members that a specification describes. Raises SpecError."""
    known = [each.name for each in fields(Members)]
    if not isinstance(spec, Mapping) or not set(spec) <= set(known):
        raise SpecError(f"members is a mapping with some of {', '.join(known)}, not {spec!r}")
    return Members(**spec)


class LifeEnd(Enum):
    """How a member's life ends."""

    LEAVE = "left"
    #: without leaving the group: it stays a member until its session expires
    CRASH = "crashed"
    #: for a static member: closed, which does not leave the group, and started again at once
    RESTART = "restarted"


class Life(NamedTuple):
    """How long a member lives, how its life ends, and how long its place is then empty."""

    seconds: float
    end: LifeEnd
    absence_s: float


class MemberName(NamedTuple):
    """What a member is called (its ``client.id``): process, place, how many had the place before it, and the number of
    the last order that one of them obeyed (0: none).
    """

    process: str
    place: int
    instance: int
    order: int = 0

    def __str__(self) -> str:
        return f"{self.process}-{self.place}-{self.instance}" + (f"-after-{self.order}" if self.order else "")

    @classmethod
    def parse(cls, text: str) -> MemberName | None:
        """Parse a ``client.id``; None if it is not that of a member of a load."""
        found = _NAME.fullmatch(text)
        return found and cls(found["process"], int(found["place"]), int(found["instance"]), int(found["order"] or 0))


_NAME = re.compile(rf"(?P<process>{MEMBERS}-[a-z]+)-(?P<place>\d+)-(?P<instance>\d+)(?:-after-(?P<order>\d+))?")


class MemberPlace(NamedTuple):
    """One member's place in the group, which one consumer after the other takes: of a client, by its number."""

    client: str
    number: int
    instance_id: str | None

    def lives(self, seed: int, mean_s: float) -> Iterator[Life]:
        """The lives of its consumers, one after the other; the same for the same seed."""
        random = Random(f"{seed}/{self.client}/{self.number}")
        while True:
            seconds = LEAST_LIFE_S + random.expovariate(1 / (mean_s - LEAST_LIFE_S + 0.001))
            crashes = random.random() < CRASHES
            if self.instance_id is not None:
                # after a crash, the successor with the same id replaces it before its session expires
                yield Life(seconds, LifeEnd.CRASH if crashes else LifeEnd.RESTART, random.uniform(0.0, ABSENCE_S[0]))
            else:
                yield Life(seconds, LifeEnd.CRASH if crashes else LifeEnd.LEAVE, random.uniform(*ABSENCE_S))


def places(members: Members, client: str) -> list[MemberPlace]:
    """The places of the members with this client. The first ones are static."""
    return [
        MemberPlace(client, number, f"{client}-{number}" if number < members.static else None)
        for number in range(members.of(client))
    ]
