"""The moves by name, and how often each is made compared to others. Owns that table alone."""

from __future__ import annotations

from tests.simulation.nemesis import clocks, disks, network, placement, processes, records, topics, unclean, zookeeper
from tests.simulation.nemesis.base import Move
from tests.simulation.topology import Topology


def _loses(topology: Topology) -> bool:
    return topology.is_unclean


def _skews(topology: Topology) -> bool:
    return topology.is_skewed


MOVES: dict[str, Move] = {
    "kill": Move(processes.kill, 2),
    "kill-leader": Move(processes.kill_leader, 4),
    "kill-controller": Move(processes.kill_controller, 2),
    "kill-two": Move(processes.kill_two, 2),
    "kill-all": Move(processes.kill_all, 2),
    "stop": Move(processes.stop, 2),
    "pause": Move(processes.pause, 3),
    "power-loss": Move(disks.power_loss, 5),
    "wipe": Move(disks.wipe, 3),
    "disk-error": Move(disks.disk_error, 4),
    "cut": Move(network.cut, 2),
    "cut-lossy": Move(network.cut_lossy, 2),
    "cut-client": Move(network.cut_client, 3),
    "isolate": Move(network.isolate, 3),
    "slow-link": Move(network.slow_link, 2),
    "cut-zookeeper": Move(zookeeper.cut_zookeeper, 2),
    "expire": Move(zookeeper.expire, 2),
    "change-controller": Move(zookeeper.change_controller, 3),
    "create-topic": Move(topics.create_topic, 1),
    "remake-topic": Move(topics.remake_topic, 2),
    "add-partition": Move(topics.add_partition, 1),
    "configure": Move(topics.configure, 2),
    "reassign": Move(placement.reassign, 2),
    "elect-preferred": Move(placement.elect_preferred, 2),
    "elect-unclean": Move(placement.elect_unclean, 1, _loses),
    "leave-behind": Move(unclean.leave_behind, 8, _loses),
    "delete-records": Move(records.delete_records, 3),
    "rebirth": Move(records.rebirth, 1),
    "clock-jump": Move(clocks.jump, 2),
    "clock-drift": Move(clocks.drift, 2, _skews),
    "slow-zookeeper": Move(zookeeper.slow_zookeeper, 2, _skews),
    "stale-zookeeper": Move(zookeeper.stale_zookeeper, 3, _skews),
}
