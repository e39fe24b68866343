"""The same seed twice: the same plan, values and keys, byte for byte, at any time and in any process."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.commands.session import first_record
from chaos.conductor.load import Load
from chaos.experiment.asked import Asked
from chaos.experiment.resolve import plan, resolve
from chaos.schedules.model import to_yaml
from loadgen.choices import parse_keys, parse_sizes
from loadgen.group_plan import MemberPlace, parse_members
from loadgen.kinds import BANK, parse_plan
from loadgen.records import StreamRecords, TransferRecords
from loadgen.settings import LoadSettings
from loadgen.transactional_ids import transactional_id
from verifier.evidence.sequenced_value import decode


@dataclass(frozen=True)
class Outcome:
    """All that was drawn for one run: its plan, what its load processes are handed, and what they make of it."""

    plan: str
    settings: dict[str, Any]
    values: list[bytes]
    keys: list[bytes | None]
    decisions: list[object]


def _conducted(asked: Asked, now_ns: int) -> Outcome:
    """What a run draws until its load begins."""
    experiment, _ = resolve(asked)
    schedule = plan(experiment)
    run = first_record(experiment, schedule, "gapless run", now_ns)
    nothing: Any = None
    here: Any = SimpleNamespace(topology=SimpleNamespace(bootstrap=lambda group: f"{group}:1"))
    settings = Load(experiment, nothing, here, run.run_id)._load_settings()
    streams = [_records(settings, stream) for stream in range(settings.producers)]
    places = [(each, sequence) for each in streams for sequence in range(60)]
    return Outcome(
        to_yaml(schedule),
        asdict(settings),
        [each.value(sequence, intended_ns=1000 + sequence) for each, sequence in places],
        [each.key(sequence) for each, sequence in places],
        [*_decisions(settings)],
    )


def _records(settings: LoadSettings, stream: int) -> StreamRecords:
    sizes = parse_sizes(settings.value_bytes)
    if settings.kind == BANK:
        return TransferRecords(settings.run_id, stream, sizes)
    return StreamRecords(settings.run_id, stream, sizes, parse_keys(settings.keys))


def _decisions(settings: LoadSettings) -> list[object]:
    """Which transactions are aborted or taken over, and how long members live."""
    made: list[object] = [transactional_id(settings.run_id, "producers", 0)]
    if settings.transactions is not None:
        drawn = parse_plan(settings.kind, settings.transactions)
        for number in range(40):
            made += [drawn.is_aborted(settings.run_id, 1, number), drawn.is_taken_over(settings.run_id, 1, number)]
    if settings.members is not None:
        members = parse_members(settings.members)
        for _, client, count in members.processes():
            for number in range(count):
                made += islice(MemberPlace(client, number, None).lives(settings.run_id, members.lives_s), 3)
    return made


@pytest.mark.parametrize(
    "asked",
    [
        Asked(seed=11, workload="mixed", swarm="historic"),
        Asked(seed=11, workload="mixed", faults="all", overlap=True),
        Asked(seed=11, workload="bank"),
        Asked(seed=11, workload="zombies"),
        Asked(seed=11, workload="groups", swarm="survivable"),
    ],
    ids=lambda asked: f"{asked.workload}-{asked.swarm}",
)
def test_all_that_is_drawn_follows_from_the_seed(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the time nor the process decides anything; another seed decides otherwise."""
    first = _conducted(asked, now_ns=5)
    monkeypatch.setattr(os, "getpid", lambda: 4242)
    assert _conducted(asked, now_ns=987_654_321_000) == first
    other = _conducted(Asked(**{**_options(asked), "seed": 12}), now_ns=5)
    assert other.plan != first.plan and other.values != first.values
    if asked.workload in ("mixed", "bank"):
        assert other.keys != first.keys


def _options(asked: Asked) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in Asked.__slots__}


def test_of_a_value_the_time_of_sending_alone_is_not_drawn() -> None:
    """What two runs with one seed send differs in that field and its checksum: key, size and padding are the same."""
    experiment, _ = resolve(Asked(seed=3, workload="mixed"))
    runs = [first_record(experiment, plan(experiment), "gapless run", now_ns) for now_ns in (1, 2)]
    sizes = parse_sizes(experiment.workload.load_fields()["value_bytes"])
    one, other = (StreamRecords(run.run_id, 4, sizes).value(7, sent) for run, sent in zip(runs, (10, 99), strict=True))
    assert one[:32] == other[:32] and one[40:44] == other[40:44] and one[48:] == other[48:]
    found = [decode(value) for value in (one, other)]
    assert [each.send_time_ns for each in found if each is not None] == [10, 99]
