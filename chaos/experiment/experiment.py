"""A complete experiment: the options as given, and what they resolve to. Owns the checks between its parts.

Does not resolve options (``chaos.experiment.resolve``).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from chaos.experiment.forms import ScheduleFile
from chaos.experiment.resolved import TOPIC, Resolved
from chaos.experiment.target_options import own_topic
from chaos.schedules.model import Schedule

#: Seconds of load before the first fault.
WARMUP_S = 4.0
#: The longest run: 30 days. A schedule of that length still takes only seconds to generate.
LONGEST_S = 720 * 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment(Resolved):
    """Everything that decides a run. ``asked`` has the options as given, the other fields what they resolve to."""

    asked: Asked

    @property
    def schedule(self) -> Schedule | None:
        """The schedule that was given; None if it is to be generated from ``faults`` and the seed."""
        return None if self.asked.schedule is None else self.asked.schedule.schedule

    @property
    def topic(self) -> str:
        """The topic that the load writes. In a cluster that gapless did not start, it has a name of its own."""
        return TOPIC if self.asked.target is None else own_topic(self.asked)

    @property
    def web_port(self) -> int | None:
        """The port of the web interface: None without one, 0 for a free port."""
        return 0 if self.asked.web and self.asked.web_port is None else self.asked.web_port

    def expected_disk_bytes(self, load_s: float) -> int:
        """An upper estimate of the bytes that the run writes if its load lasts ``load_s`` seconds.

        Counts every record on each replica, the histories, and Spark's temporary files.
        """
        records = self.workload.expected_records(load_s + 30)
        return int(records * ((self.workload.mean_bytes + 80) * self.asked.replication_factor + 200)) + 200_000_000

    def to_json(self) -> dict[str, Any]:
        """The ``experiment`` in ``run.json``: the options as given, and what they resolve to."""
        asked = {each.name: _plain(getattr(self.asked, each.name)) for each in fields(self.asked)}
        # By name: ``super()`` without arguments does not work in a dataclass with slots.
        return {"asked": asked, "resolved": Resolved.to_json(self)}


def check(experiment: Experiment) -> None:
    """Raises ExperimentError on the first contradiction."""
    asked = experiment.asked
    if not WARMUP_S < asked.time_limit_s <= LONGEST_S:
        raise ExperimentError(
            f"--time-limit must be longer than the warm-up of {WARMUP_S:g} s and at most {LONGEST_S // 3600}h, "
            f"not {asked.time_limit_s:g} s"
        )
    if not 0 < asked.stalled_after_s <= LONGEST_S:
        raise ExperimentError(
            f"--stalled-after must be above 0 s and at most {LONGEST_S // 3600}h, not {asked.stalled_after_s:g} s"
        )
    if asked.replication_factor > asked.brokers:
        raise ExperimentError(
            f"--replication-factor {asked.replication_factor} needs at least "
            f"{asked.replication_factor} brokers, not {asked.brokers}; raise --brokers or lower it"
        )
    if experiment.min_insync_replicas > asked.replication_factor:
        raise ExperimentError(
            f"--min-insync-replicas {experiment.min_insync_replicas} can never be met "
            f"with --replication-factor {asked.replication_factor}"
        )
    if experiment.idempotence and experiment.acks != "all":
        raise ExperimentError(f"--idempotence true needs --acks all, not --acks {experiment.acks}")
    if "/" in asked.name or asked.name in ("", ".", "..", "latest") or not asked.name.isprintable():
        raise ExperimentError(
            f"--name {asked.name!r} is not a valid name for a directory in results/; pick another name"
        )
    producers = experiment.users // experiment.workload.streams_per_user
    if asked.load_processes > producers:
        raise ExperimentError(
            f"--load-processes {asked.load_processes} needs at least {asked.load_processes} producers, "
            f"not {producers}; raise --users or lower it"
        )


def _plain(value: object) -> object:
    if isinstance(value, ScheduleFile):
        return {"path": str(value.path), **asdict(value.schedule)}
    return list(value) if isinstance(value, tuple) else value
