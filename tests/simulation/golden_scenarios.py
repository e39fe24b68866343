"""The golden scenarios: which rule each shows, and what is seen in the end if it is played without that rule.

Owns the table and the anomalies. The scripts are in ``golden/``, the wrong logic in ``golden_removals``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cluster.broker.control.controller import reassignments
from cluster.broker.control.links.channels import BrokerChannel
from cluster.broker.replicas import produce_checks
from cluster.broker.replicas.follower_log import FollowerLog
from cluster.broker.replicas.roles import Roles
from cluster.controller import leadership, partitions, reassignment
from cluster.log import appending, opening, replicated_appends
from cluster.log.file_names import FileNames
from cluster.log.producers import ProducerStates
from cluster.log.segment import Segment
from cluster.replication.isr import InSyncReplicas
from cluster.replication.leader import LeaderState
from tests.simulation import golden_removals as without
from tests.simulation.golden_removals import as_they_are
from tests.simulation.removals import (
    Removal,
    acknowledge_early,
    cut_to_the_watermark,
    forget_on_failover,
    keep_the_log_start,
    keep_the_tail,
    no_controller_fencing,
)
from tests.simulation.transcript import TOPIC, Transcript

Anomaly = Callable[[Transcript], None]
#: Its owner, its name, and what stands there instead.
Patch = tuple[object, str, object]


@dataclass(frozen=True)
class Scenario:
    """``removal`` and ``patches`` take the rule away. ``loses_anyway``: what was acknowledged is lost with a disk, by
    an unclean election, or by acks=1, whatever the rules."""

    anomaly: Anomaly
    removal: Removal = as_they_are
    patches: tuple[Patch, ...] = ()
    loses_anyway: bool = False


def loses(*values: str) -> Anomaly:
    """These values, all of them acknowledged, are not in the log of the one that leads in the end."""

    def check(transcript: Transcript) -> None:
        assert transcript.leader(TOPIC) > 0
        assert transcript.lost() == list(values)

    return check


def leads_with(*values: str) -> Anomaly:
    """The log of the one that leads in the end holds this, which it should not."""

    def check(transcript: Transcript) -> None:
        assert transcript.values(transcript.leader(TOPIC)) == list(values)

    return check


def refuses(value: str) -> Anomaly:
    """It is in the log of the one that leads, and its producer was told that it is not."""

    def check(transcript: Transcript) -> None:
        assert value in transcript.values(transcript.leader(TOPIC))
        assert value not in transcript.acknowledged

    return check


def differ(one: list[str], other: list[str]) -> Anomaly:
    """Brokers 1 and 2 live, have nothing more to copy, and hold different records at the same offsets."""

    def check(transcript: Transcript) -> None:
        assert set(transcript.processes) >= {1, 2}
        assert (transcript.values(1), transcript.values(2)) == (one, other)

    return check


def has_no_leader(*alive: int) -> Anomaly:
    """These brokers live and are well, and none leads."""

    def check(transcript: Transcript) -> None:
        assert set(transcript.processes) >= set(alive)
        assert transcript.leader(TOPIC) == -1

    return check


def says(*sentences: str) -> Anomaly:
    """Clients were told this, first of all and in this order, which is wrong."""

    def check(transcript: Transcript) -> None:
        told = [said for said in transcript.said if said in sentences]
        assert told[: len(sentences)] == list(sentences)

    return check


def _nothing(*_arguments: object) -> None:
    """In the place of what is to do nothing."""


def _always(*_arguments: object) -> bool:
    return True


SCENARIOS = {
    "kip-101-cut-to-the-watermark": Scenario(loses("m2"), cut_to_the_watermark),
    "kip-101-divergence": Scenario(differ(["m1", "m2"], ["m1", "m3"]), keep_the_tail, loses_anyway=True),
    "kip-279-three-elections": Scenario(
        differ(["a0", "c1", "c2", "c3"], ["a0", "b1", "b2", "c3"]), keep_the_tail, loses_anyway=True
    ),
    "kafka-7128-joining-at-the-watermark": Scenario(loses("m2"), without.join_at_the_watermark),
    "kip-903-a-former-life": Scenario(loses("m1", "m2"), without.forget_broker_epochs),
    "split-brain": Scenario(loses("stray"), acknowledge_early),
    "a-leader-that-ends-below-our-start": Scenario(
        loses("a3", "b0", "b1", "b2"),
        keep_the_log_start,
        ((FollowerLog, "_lacks_what_is_below", _nothing),),
        loses_anyway=True,
    ),
    "a-disk-that-fails-while-a-role-is-taken": Scenario(
        has_no_leader(2, 3),
        patches=((Roles, "_failed", _nothing), (BrokerChannel, "_note_partition_errors", _nothing)),
    ),
    "an-empty-follower-of-another-history": Scenario(
        loses("a0", "a1", "b0", "b1"),
        patches=((opening, "_load_epochs", _nothing), (FollowerLog, "_lacks_what_is_below", _nothing)),
        loses_anyway=True,
    ),
    "an-epoch-bump-during-a-write": Scenario(refuses("m2"), without.answer_every_bump),
    "a-batch-that-claims-too-much": Scenario(
        leads_with("m1", "unreadable", "m3"),
        patches=((produce_checks, "check_inside", lambda records, header, *_: (records, header)),),
    ),
    "a-first-batch-beyond-32-bits": Scenario(
        has_no_leader(2),
        patches=tuple(
            (module, "roll_reason", without.never_roll_what_is_empty) for module in (appending, replicated_appends)
        ),
    ),
    "a-cut-into-a-hole": Scenario(
        says("read from 1: no answer"),
        patches=((Segment, "locate", without.locate_without_a_hole),),
        loses_anyway=True,
    ),
    "a-producer-that-expired-above-a-cut": Scenario(
        loses("p0"), patches=((ProducerStates, "drop_marks_above", without.keep_marks_of_the_expired),)
    ),
    "a-retry-after-a-failover": Scenario(leads_with("m1", "m2", "m2", "m3"), forget_on_failover),
    "a-producer-that-was-succeeded": Scenario(leads_with("a0", "b0", "a1"), without.obey_former_epochs),
    "five-in-flight": Scenario(refuses("m0"), without.remember_one_batch),
    "a-gap-after-an-unclean-election": Scenario(leads_with("m0", "m2"), without.take_gaps, loses_anyway=True),
    "too-few-in-sync": Scenario(loses("m2"), without.one_is_enough),
    "a-watermark-that-waits-for-enough": Scenario(
        says("read from 0: 0:m1 1:m2", "read from 0: 0:m1 1:n2"),
        patches=((LeaderState, "advance", without.advance_alone),),
        loses_anyway=True,
    ),
    "an-answer-for-another-record": Scenario(loses("stray"), without.confirm_by_offset_alone),
    "a-leader-that-was-paused": Scenario(
        loses("stray"), patches=((InSyncReplicas, "_propose", without.take_what_is_proposed),)
    ),
    "a-proposal-that-was-overtaken": Scenario(loses("m3"), without.forget_partition_epochs),
    "a-controller-that-was-deposed": Scenario(loses("m2"), no_controller_fencing),
    "a-replica-that-is-not-in-sync": Scenario(loses("m2"), without.elect_anybody),
    "a-preferred-leader-that-lags": Scenario(
        loses("m2"), patches=((leadership, "elect_preferred", without.prefer_whoever_is_alive),)
    ),
    "a-shutdown-with-nobody-in-sync": Scenario(
        loses("m2"), patches=((partitions, "elect_controlled_shutdown", without.hand_over_to_anybody),)
    ),
    "a-move-whose-new-replica-lags": Scenario(
        has_no_leader(1, 3),
        patches=((reassignments, "is_complete", _always), (reassignment, "is_complete", _always)),
    ),
    "a-deletion-that-a-replica-has-not-heard-of": Scenario(
        says("all live replicas begin at 1 or above", "read from 0: 0:a0 1:a1"),
        patches=((LeaderState, "low_watermark", without.begin_alone),),
    ),
    "a-new-segment-and-a-power-loss": Scenario(
        loses("m3", "m4"), patches=((FileNames, "unsynced_directories", lambda _names: ()),)
    ),
}
