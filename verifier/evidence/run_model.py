"""The typed content of ``run.json``. Owns its shape and its JSON form; who fills what in is the conductor's matter.

Everything that a verdict depends on beside histories and segments stands here: the settings that decide which
anomalies are allowed, and the cluster's final state. Reading is tolerant of fields that a newer writer added. It is
strict about types and about what is absent: a default of Python's is for code that makes a value, never for a file.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Self, Union, get_args, get_origin, get_type_hints

from verifier.evidence.declared import DeclaredEvidence
from verifier.evidence.fault_kinds import UNCLEAN_ORDER

SCHEMA = 2
#: What JSON calls it.
_JSON = {int: "an integer", float: "a number", bool: "true or false", str: "a text", list: "a list", dict: "an object"}


class RunModelError(ValueError):
    """``run.json`` is not what this version reads; the message names the field."""


class OtherVersion(RunModelError):
    """``run.json`` is of another version; the message says which, and what to do."""


class Model:
    """JSON in and out for the dataclasses below."""

    def to_json(self) -> dict[str, Any]:
        """Plain dictionaries and lists; integer keys become strings, as JSON wants."""
        this: Any = self  # every subclass is a dataclass; Model itself has no fields
        plain: dict[str, Any] = _plain(asdict(this))
        return plain

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The inverse of ``to_json``. Raises ``RunModelError``."""
        result: Self = _decode(cls, value, "")
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(Model):
    """What the verdict depends on of what the run was asked, as resolved. Nothing else stands here.

    Nothing here has a default: anyone who starts the run knows it all, and what is absent is an error.
    """

    acks: str  # "all", "1", "0"
    idempotence: bool
    max_in_flight: int
    retries: int
    client: str  # "native", "confluent"
    brokers: int
    partitions: int
    replication_factor: int
    unclean_leader_election: bool
    unknown_producer: str  # gapless.unknown.producer: "gapless", "kafka", "seed"
    replica_lag_time_max_ms: int
    session_timeout_ms: int
    producer_id_expiration_ms: int
    rate: float  # records per second asked for, in all; 0 for as fast as they are acknowledged
    users: int
    load_processes: int
    readers: tuple[str, ...]  # clients that read while the load lasts
    final_readers: tuple[str, ...]  # clients that read everything at the end
    stalled_after_s: float
    target: str | None  # the addresses of a cluster that others started; None for one of the run's own
    replica_dirs: tuple[str, ...]  # ID=DIR: where brokers of such a cluster keep their files


@dataclass(frozen=True, slots=True)
class TopicSpec(Model):
    """A topic of the workload as it was created."""

    name: str
    partitions: int
    replication_factor: int
    topic_id: str = ""
    config: dict[str, str] = field(default_factory=dict)

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.config.get("cleanup.policy", "")


@dataclass(frozen=True, slots=True)
class PhaseSpan(Model):
    """One phase of the run on the monotonic clock; ``end_ns`` is None while it lasts or if it was cut off."""

    name: str
    start_ns: int
    end_ns: int | None = None


@dataclass(frozen=True, slots=True)
class DefectSetting(Model):
    """A defect that was switched on: ``lose-acked:0.01`` is ``("lose-acked", 0.01)``."""

    name: str
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class FinalPartition(Model):
    """One partition as the final phase found it.

    ``sentinel_offset`` is the acknowledged offset of its sentinel. ``status`` is ``"ok"`` or ``"unavailable: ..."``.
    """

    topic: str
    partition: int
    leader: int = -1
    leader_epoch: int = -1
    high_watermark: int = -1
    log_start_offset: int = 0
    log_end_offsets: dict[int, int] = field(default_factory=dict)
    sentinel_offset: int | None = None
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class ChildProcess(Model):
    """A process that the run started, recorded before it was waited for."""

    name: str
    pid: int
    creation_time: float
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class HarnessHealth(Model):
    """How loaded the harness itself was: the worst event-loop lag seen, in seconds, by process name."""

    event_loop_lag_s: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModel(Model):
    """``run.json``. Times are ISO 8601 UTC (``started``, ``ended``) or monotonic nanoseconds (``*_ns``).

    What is not known yet when the run begins is there and empty; what is absent is an error.
    """

    name: str
    seed: int
    run_id: int
    started: str
    started_ns: int
    settings: RunSettings
    experiment: dict[str, Any]  # all that was asked, and every configuration as resolved
    versions: dict[str, str]
    repro: str
    faults_requested: list[str]
    defects: list[DefectSetting]
    topology: dict[str, Any]
    topics: list[TopicSpec]
    evidence: DeclaredEvidence  # what the run must leave; known before the load starts
    final_topic_ids: dict[str, str]  # topic ids as the final phase found them
    phases: list[PhaseSpan]
    children: list[ChildProcess]
    harness: HarnessHealth
    final: list[FinalPartition]
    interrupted: bool
    problems: list[str]  # what kept the run from being complete evidence
    producer_ids_below: int | None  # ids handed out end before it, by /latest_producer_id_block at the end
    schema: int = SCHEMA
    judging: list[ChildProcess] = field(default_factory=list)  # processes of the verification, after the seal
    ended: str | None = None
    exit_status: int | None = None

    @property
    def may_elect_uncleanly(self) -> bool:
        """Whether a replica from outside the ISR may become leader of a partition of the run's topic: of any by the
        topic's settings, or of one where a fault orders it (``verifier.witness.witness``)."""
        return self.settings.unclean_leader_election or UNCLEAN_ORDER in self.faults_requested

    def phase(self, name: str) -> PhaseSpan | None:
        """A phase that the run came to, by its name."""
        return next((each for each in self.phases if each.name == name), None)

    @classmethod
    def from_json(cls, value: Any) -> Self:
        """The inverse of ``to_json``. Raises ``RunModelError``, also for a ``run.json`` of another version."""
        if isinstance(value, dict) and value.get("schema", SCHEMA) != SCHEMA:
            raise OtherVersion(
                f"run.json: schema is {value['schema']!r}, and this version reads {SCHEMA}; "
                "judge the run with the version that made it"
            )
        return _decode(cls, value, "")  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def _decode(kind: Any, value: Any, where: str) -> Any:
    """``value`` (from JSON) as ``kind``. Raises ``RunModelError`` naming ``where``, a field; "" is the whole."""
    if kind is Any:
        return value
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        if value is None and NoneType in arguments:
            return None
        (kind,) = (argument for argument in arguments if argument is not NoneType)
        return _decode(kind, value, where)
    if is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, _of(dict, value, where), where)
    if origin is list:
        return [_decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(_of(list, value, where))]
    if origin is tuple:  # of any length
        return tuple(_decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(_of(list, value, where)))
    if origin is dict:
        items = _of(dict, value, where).items()
        return {_key(arguments[0], key, where): _decode(arguments[1], item, f"{where}.{key}") for key, item in items}
    if kind is float and type(value) is int:
        return float(_of(int, value, where))
    return _of(kind, value, where)


def _decode_dataclass(kind: type, value: dict[str, Any], where: str) -> Any:
    hints = get_type_hints(kind)
    known: dict[str, Any] = {}
    for each in fields(kind):
        place = f"{where}.{each.name}" if where else each.name
        if each.name not in value:
            raise RunModelError(f"run.json: {place} is absent")
        known[each.name] = _decode(hints[each.name], value[each.name], place)
    return kind(**known)


def _of(kind: type, value: Any, where: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RunModelError(f"run.json: {where or 'it'} must be {_JSON[kind]}, not {json.dumps(value):.80}")
    # a seed may be of any size; what else is beyond 64 bits no table can hold
    if isinstance(value, int) and where != "seed" and not -(1 << 63) <= value < 1 << 63:
        raise RunModelError(f"run.json: {where}: the number is beyond 64 bits")
    return value


def _key(kind: Any, key: str, where: str) -> Any:
    if kind is not int:
        return key
    try:
        return int(_of(int, int(key), where))
    except RunModelError:
        raise
    except ValueError:
        raise RunModelError(f"run.json: {where}: the key {key!r} is no integer") from None
