"""Chooses the cluster of a run: one that gapless starts, or the one that ``--target`` names. Starts neither."""

from __future__ import annotations

from chaos.conductor.broker_machine import ports_for
from chaos.conductor.deployment import Deployment
from chaos.conductor.foreign_cluster import ForeignCluster
from chaos.conductor.observer import Observer
from chaos.conductor.run_cluster import RunCluster
from chaos.conductor.workbench import Workbench
from chaos.experiment.experiment import Experiment
from chaos.schedules.model import Schedule


def cluster_of(settings: Experiment, schedule: Schedule, bench: Workbench, observer: Observer) -> RunCluster:
    """The cluster of this experiment, not started yet."""
    if settings.asked.target is not None:
        return ForeignCluster(
            settings, bench.directory, bench.supervisor, observer, bench.transport, bench.progress.note
        )
    return Deployment(settings, bench.directory, bench.supervisor, observer, ports_for(schedule))
