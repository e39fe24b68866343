"""reuse-epochs: a new leader stores its batches under its predecessor's epoch, as if the new one was not written down.

Of two leaders in one epoch each may have its own batch at an offset, and no follower can tell them apart: a vote that
is cast again after a crash, as in systems that keep their term in memory alone.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from cluster.broker.rules import Rules
from cluster.defects.firings import Firings
from cluster.log.appending import AppendInfo
from cluster.log.partition_log import PartitionLog
from cluster.log.sequence import VerdictKind
from cluster.protocol.batch import BatchHeader
from cluster.topic_partition import TopicPartition

NAME = "reuse-epochs"


def plant(rules: Rules, probability: float, random: Random, firings: Firings) -> Rules:
    """A firing is a leadership whose first batch gets the epoch of another leader's. A leader that continues in a newer
    epoch does right."""
    #: Of each log: the epoch in which this broker leads, and the one under which it stores.
    leads: dict[TopicPartition, tuple[int, int]] = {}

    def stored_as(log: PartitionLog, leader_epoch: int) -> int:
        leading, own = leads.get((log.topic, log.partition), (-1, -1))
        if leading == leader_epoch:
            return own
        end = log.log_end_offset
        former = log.epochs.epoch_for_offset(end - 1) if end > log.log_start_offset else None
        if former is None or former == own or former >= leader_epoch:
            return leader_epoch
        firings.note(
            NAME, topic=log.topic, partition=log.partition, leader_epoch=leader_epoch, stored_as=former, offset=end
        )
        # The leader began its epoch there when it was elected.
        log.epochs.truncate_from_end(end)
        return former

    def append(log: PartitionLog, batch: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int) -> AppendInfo:
        if log.verdict_on(header).kind is VerdictKind.ACCEPT:
            epoch = stored_as(log, leader_epoch)
            # What a coordinator has stored since then has the right one, and no log goes back.
            epoch = leader_epoch if log.epochs.latest_number > epoch else epoch
            leads[log.topic, log.partition] = leader_epoch, epoch
            leader_epoch = epoch
        return rules.append(log, batch, header, leader_epoch, now_ms)

    return replace(rules, append=append)
