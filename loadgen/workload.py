"""A workload: what a load writes, and how fast, declared as one value. Owns its fields and their checks.

A field that is None is left to the options of the load. Does not own what the fields mean (``shapes``, ``choices``,
``pace``), files and names (``workloads``), or which client writes the records. As YAML:

```yaml
summary: what it is for
rate: 1500              # records per second in all; or unlimited: as fast as they are acknowledged, and then
                        # outstanding: 500 for at most that many unacknowledged per producer
shape: {bursts: {every_s: 10, for_s: 2, factor: 8}}
value_bytes: {lognormal: {median: 300, sigma: 1.0, most: 20000}}
keys: {zipf: {keys: 1000, exponent: 1.1}}
partitions: 6
streams: 12             # each on one partition; one producer writes one, or one of each partition of its transactions
compression: lz4
members: {native: 3, confluent: 3}   # of one consumer group, besides (loadgen.group_plan)
kind: transactions      # what its users do: streams, if it says nothing
transactions: {partitions: 3, records: 12, aborts: 0.1, zombies: 0, late: 0}
```
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from loadgen.choices import Keys, KeySpec, Sizes, SizeSpec, parse_keys, parse_sizes
from loadgen.group_plan import MembersSpec, parse_members
from loadgen.kinds import BANK, STREAMS, TRANSACTIONAL, PlanSpec, check_kind, check_streams, streams_per_user
from loadgen.settings import SettingsError
from loadgen.shapes import ShapeSpec, parse_shape
from loadgen.spec import SpecError

UNLIMITED = "unlimited"
DEFAULT_OUTSTANDING = 500
DEFAULT_BYTES = 200
#: More than a few producers without a rate reach on two cores; to bound what a run writes.
UNLIMITED_PER_S = 30_000
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


class WorkloadError(SettingsError):
    """The workload does not exist, or contradicts an option. The message names the field."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload. A field that it does not set is None. Raises WorkloadError for invalid values."""

    name: str
    summary: str = ""
    rate: float | str | None = None
    outstanding: int | None = None
    shape: ShapeSpec | None = None
    value_bytes: SizeSpec | None = None
    keys: KeySpec | None = None
    partitions: int | None = None
    streams: int | None = None
    compression: str | None = None
    members: MembersSpec | None = None
    kind: str = STREAMS
    transactions: PlanSpec | None = None

    def __post_init__(self) -> None:
        try:
            self._check()
        except SpecError as error:
            raise WorkloadError(f"workload {self.name}: {error}") from error

    def _check(self) -> None:
        rate = self.rate
        if isinstance(rate, bool) or not (rate is None or rate == UNLIMITED or _is_positive(rate)):
            raise SpecError(f"rate is records per second above 0, or {UNLIMITED}; not {rate!r}")
        for name in ("outstanding", "partitions", "streams"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise SpecError(f"{name} is a number of at least 1, not {value!r}")
        if self.outstanding is not None and rate != UNLIMITED:
            raise SpecError(f"outstanding works only with rate: {UNLIMITED}")
        if self.compression is not None and self.compression not in COMPRESSIONS:
            raise SpecError(f"compression is one of {', '.join(COMPRESSIONS)}, not {self.compression!r}")
        if self.shape is not None and not parse_shape(self.shape).is_constant and rate == UNLIMITED:
            raise SpecError(f"shape works only with a rate in records per second, not with rate: {UNLIMITED}")
        if self.value_bytes is not None:
            parse_sizes(self.value_bytes)
        if self.keys is not None:
            parse_keys(self.keys)
        if self.members is not None:
            parse_members(self.members)
        check_kind(self.kind, self.transactions)
        if self.kind == BANK and self.keys not in (None, "none"):
            raise SpecError(f"kind: {BANK} has keys of its own; leave out keys")
        if self.is_transactional and rate == UNLIMITED:
            raise SpecError(f"kind: {self.kind} works only with a rate in records per second")
        if self.streams is not None:
            check_streams(self.kind, self.transactions, self.streams, self.partitions or self.streams)

    def with_options(
        self, options: Mapping[str, tuple[str, Any]], defaults: Mapping[str, Any] | None = None
    ) -> Workload:
        """The workload with what was asked for by options, ``field -> (option's name, value or None)``.

        ``defaults`` are for what neither says. Raises WorkloadError if an option says something else than the
        workload.
        """
        changes = {}
        for name, (option, value) in options.items():
            if value is None:
                continue
            own = getattr(self, name)
            if own is not None and own != value:
                raise WorkloadError(
                    f"{option} {value} contradicts {name} {own} of workload {self.name}; leave one of them out"
                )
            changes[name] = value
        absent = {name: value for name, value in (defaults or {}).items() if getattr(self, name) is None}
        try:
            return replace(self, **{**absent, **changes})
        except WorkloadError as error:
            raise self._of_option(options, changes) or error from error

    def _of_option(self, options: Mapping[str, tuple[str, Any]], changes: Mapping[str, Any]) -> WorkloadError | None:
        """The refusal of the first invalid option; None if only a combination of options is invalid."""
        for name, value in changes.items():
            try:
                replace(self, **{name: value})
            except WorkloadError as error:
                return WorkloadError(f"{options[name][0]} {value}: {error.__cause__}")
        return None

    @property
    def is_transactional(self) -> bool:
        """Whether its producers have a ``transactional.id``."""
        return self.kind in TRANSACTIONAL

    @property
    def streams_per_user(self) -> int:
        """How many streams one of its producers writes."""
        return streams_per_user(self.kind, self.transactions)

    @property
    def is_unlimited(self) -> bool:
        """Whether records are sent as fast as they are acknowledged."""
        return self.rate == UNLIMITED

    @property
    def records_per_s(self) -> float:
        """The rate without its shape; 0 if there is none."""
        return 0.0 if self.rate is None or isinstance(self.rate, str) else float(self.rate)

    def expected_records(self, seconds: float) -> int:
        """How many records will be written in this many seconds; an upper estimate if there is no rate."""
        if self.is_unlimited:
            return int(UNLIMITED_PER_S * seconds)
        return int(self.records_per_s * parse_shape(self.shape or "constant").work(seconds))

    @property
    def mean_bytes(self) -> float:
        """The mean size of a value."""
        return self.sizes.mean

    @property
    def sizes(self) -> Sizes:
        """The sizes of values."""
        return parse_sizes(self.value_bytes or DEFAULT_BYTES)

    @property
    def key_choice(self) -> Keys:
        """The keys of records."""
        return parse_keys(self.keys or "none")

    def load_fields(self) -> dict[str, Any]:
        """The fields of ``LoadSettings`` that the workload sets. All others have defaults."""
        said = {
            "rate": self.records_per_s or None,
            "shape": self.shape,
            "value_bytes": self.value_bytes,
            "keys": self.keys,
            "members": self.members,
            "outstanding": self.outstanding or DEFAULT_OUTSTANDING if self.is_unlimited else None,
            "kind": None if self.kind == STREAMS else self.kind,
            "transactions": self.transactions,
        }
        return {name: value for name, value in said.items() if value is not None}


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
