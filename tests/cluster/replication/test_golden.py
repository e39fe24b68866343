"""Golden scenarios of replication: each a real bug, the rule that keeps it out, and what happens without the rule."""

from __future__ import annotations

from dataclasses import replace

from cluster.log.epochs import LeaderEpochCache
from cluster.protocol.errors import ErrorCode
from cluster.replication.follower import FetchPosition, Reaction, reaction
from cluster.replication.follower_progress import FollowerProgress
from cluster.replication.leader import LeaderState
from tests.cluster.replication.model import Cluster, Rules, lost

NONE = ErrorCode.NONE


# KIP-101: cutting to the high watermark loses what was acknowledged.


def kip_101_fast_failovers(rules: Rules) -> Cluster:
    cluster = Cluster(2, min_insync_replicas=1, rules=rules)
    cluster.write("m1")
    cluster.sync()
    second = cluster.write("m2")
    cluster[2].apply(cluster[2].fetch())
    cluster[2].fetch()  # proves m2 to the leader; the answer, with the new watermark, is lost
    assert second.outcome is NONE
    assert (cluster[2].end, cluster[2].high_watermark) == (2, 1)
    cluster[2].checkpoint = cluster[2].high_watermark
    cluster[2].crash()
    cluster[2].start(seen=True)
    cluster.elect(1, (1, 2))
    cluster.tell()
    cluster[1].crash()
    cluster.elect(2)
    cluster.tell()
    return cluster


def test_a_restarted_follower_keeps_what_is_above_its_watermark():
    """KIP-101: a follower is cut where epochs part, not at its own high watermark."""
    assert kip_101_fast_failovers(Rules()).values(2) == ["m1", "m2"]


def test_without_epochs_the_restarted_follower_loses_an_acknowledged_record():
    """KIP-101, the rule removed: truncation to the high watermark at the start loses m2."""
    naive = Rules(initial_truncation=lambda latest, watermark, end: min(watermark, end))
    assert kip_101_fast_failovers(naive).values(2) == ["m1"]


def kip_101_divergence(rules: Rules) -> Cluster:
    cluster = Cluster(2, min_insync_replicas=1, rules=rules)
    cluster.write("m1")
    cluster.sync()
    cluster.write("m2")
    cluster.sync()
    for replica in (cluster[1], cluster[2]):
        replica.checkpoint = replica.high_watermark
        replica.crash()
    cluster[2].cut(1)  # a power loss took the second record from broker 2
    cluster[2].start(seen=True)
    cluster.elect(2, (2,))
    cluster.tell()
    cluster.write("m3")
    cluster[1].start(seen=True)
    cluster.tell()
    cluster.sync()
    return cluster


def test_replicas_that_parted_are_made_equal_by_their_epochs():
    """KIP-101: two records at one offset are told apart by their epoch, and the follower gives way."""
    cluster = kip_101_divergence(Rules())
    assert cluster.values(1) == cluster.values(2) == ["m1", "m3"]


def no_divergence(epochs: LeaderEpochCache, epoch: int, end_offset: int) -> tuple[int, int]:
    return epoch, end_offset


def test_without_epochs_replicas_stay_different_for_ever():
    """KIP-101, the rule removed: the same length passes for the same content."""
    cluster = kip_101_divergence(Rules(end_offset_for=no_divergence))
    assert cluster.values(1) == ["m1", "m2"]
    assert cluster.values(2) == ["m1", "m3"]


# KIP-279: the epoch that was found is part of the answer.


def kip_279_three_elections(rules: Rules) -> Cluster:
    cluster = Cluster(2, min_insync_replicas=1, rules=rules)
    cluster.write("a0")
    cluster.sync()
    cluster[1].crash()
    cluster.elect(2, (2,))
    cluster.tell()
    cluster.write("b1")
    cluster.write("b1'")
    cluster[2].crash()
    cluster[1].start(seen=True)
    cluster.elect(1, (1,))  # unclean: broker 1 was not in sync
    cluster.tell()
    for value in ("a2", "a2'", "a2''"):
        cluster.write(value)
    cluster[2].start(seen=True)
    cluster.tell()
    cluster.sync()
    return cluster


def test_a_tail_of_an_epoch_that_the_leader_never_saw_is_cut():
    """KIP-279: the leader answers with its largest epoch not above the follower's, and where that ends."""
    cluster = kip_279_three_elections(Rules())
    assert cluster.values(1) == cluster.values(2) == ["a0", "a2", "a2'", "a2''"]


def test_without_the_epoch_found_the_tail_stays():
    """KIP-279, the rule removed: the log end as the answer for an unknown epoch leaves b1 under a2."""
    cluster = kip_279_three_elections(Rules(end_offset_for=no_divergence))
    assert cluster.values(2) == ["a0", "b1", "b1'", "a2''"]


# KAFKA-7128: who reached a lagging watermark is not yet in sync.


def kafka_7128_lagging_follower(rules: Rules) -> tuple[Cluster, list[str]]:
    cluster = Cluster(4, min_insync_replicas=1, rules=rules)
    writes = [cluster.write("m1")]
    cluster.sync()
    cluster.state = replace(cluster.state, isr=(1, 2, 4), leader_epoch=1, partition_epoch=1)
    cluster.tell()
    cluster.sync(2, 4)
    writes.append(cluster.write("m2"))
    for broker_id in (2, 4):
        cluster[broker_id].apply(cluster[broker_id].fetch())
        cluster[broker_id].fetch()  # m2 is committed, and the followers have not heard of it
    cluster[1].crash()
    cluster.elect(2)
    cluster.tell()
    assert cluster[2].high_watermark == 1
    cluster[3].fetch()  # at offset 1: the watermark, below the start of the epoch
    cluster.answer_proposal(2)
    cluster[2].crash()
    cluster[4].crash()
    if 3 in cluster.state.isr:
        cluster.elect(3)
    return cluster, lost(cluster, writes)


def test_a_follower_joins_only_beyond_the_start_of_the_epoch():
    """KAFKA-7128: the new leader's watermark lags, so being at it proves nothing."""
    cluster, missing = kafka_7128_lagging_follower(Rules())
    assert cluster.state.isr == (2, 4)
    assert missing == []


class JoinsAtTheWatermark(LeaderState):
    """The rule of the epoch's start removed."""

    __slots__ = ()

    def _may_join(self, follower: FollowerProgress) -> bool:
        return self.isr.pending is None and follower.log_end_offset >= self.high_watermark


def test_without_the_epoch_start_an_acknowledged_record_is_lost():
    """KAFKA-7128, the rule removed: broker 3 joins, leads, and m2 is gone."""
    cluster, missing = kafka_7128_lagging_follower(Rules(leader_state=JoinsAtTheWatermark))
    assert cluster.state.leader == 3
    assert missing == ["m2"]


# KIP-903: what a broker proved in its former life does not count in this one.


def kip_903_bounce_behind_a_delayed_proposal(rules: Rules) -> tuple[Cluster, list[str]]:
    cluster = Cluster(3, min_insync_replicas=1, rules=rules)
    cluster.state = replace(cluster.state, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    cluster.tell()
    writes = [cluster.write("m1")]
    cluster.sync()
    assert cluster[1].proposal is not None, "broker 3 has caught up, and is to be added"
    cluster[3].crash(wiped=True)
    cluster[3].start(seen=True)
    cluster.answer_proposal(1)
    for broker_id in (1, 2):
        cluster[broker_id].crash()
    if 3 in cluster.state.isr:
        cluster.elect(3)
    return cluster, lost(cluster, writes)


def test_a_proposal_for_a_brokers_former_life_is_refused():
    """KIP-903: the proposal names the broker epoch in which the replica was seen."""
    cluster, missing = kip_903_bounce_behind_a_delayed_proposal(Rules())
    assert cluster.state.isr == (1, 2)
    assert missing == []


class ForgetsBrokerEpochs(LeaderState):
    """The rule of the broker epoch removed."""

    __slots__ = ()

    def _broker_epochs(self) -> dict[int, int]:
        return {}


def test_without_broker_epochs_an_empty_replica_joins():
    """KIP-903, the rule removed: broker 3 came back without its disk and becomes the leader."""
    cluster, missing = kip_903_bounce_behind_a_delayed_proposal(Rules(leader_state=ForgetsBrokerEpochs))
    assert cluster.state.leader == 3
    assert missing == ["m1"]


def test_a_fetch_of_a_former_life_is_known_as_such():
    """KIP-903: a delayed fetch that a broker sent before its restart moves nothing."""
    cluster = Cluster(2, min_insync_replicas=1)
    leader = cluster[1].leader
    assert leader is not None
    leader.fetched(2, 0, 0, 0, broker_epoch=5)
    assert leader.is_of_former_life(2, 4)
    assert not leader.is_of_former_life(2, 5)
    assert not leader.is_of_former_life(2, -1)


# Split brain (KAFKA-14154, Redpanda issue 3003).


def test_a_deposed_leader_that_nobody_told_acknowledges_nothing():
    """Without its followers the old leader cannot move its watermark, and it cannot shrink its ISR either."""
    cluster = Cluster()
    cluster.write("m1")
    cluster.sync()
    cluster.elect(2, (2, 3))
    cluster.tell(2, 3)
    stray = cluster.write("stray", leader_id=1)
    cluster.sync()
    cluster.now_ms += 60_000
    leader = cluster[1].leader
    assert leader is not None
    cluster[1].proposal = leader.check_lag(cluster[1].end, cluster.now_ms)
    assert cluster.answer_proposal(1) is ErrorCode.FENCED_LEADER_EPOCH
    leader.advance(cluster[1].end, cluster.now_ms)
    assert stray.outcome is None
    good = cluster.write("good")
    cluster.sync(2, 3)
    assert good.outcome is NONE
    cluster.tell(1)
    assert stray.outcome is ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.sync()
    assert cluster.values(1) == cluster.values(2) == cluster.values(3) == ["m1", "good"]


def test_a_follower_of_yesterday_cannot_be_served_by_a_leader_of_today():
    """Fencing: a fetch in an older epoch is refused, so an old follower's position is never counted."""
    cluster = Cluster()
    cluster.write("m1")
    cluster.sync()
    cluster.elect(1)
    cluster.tell(1)
    answer = cluster[2].fetch()
    assert answer is not None
    assert answer.error is ErrorCode.FENCED_LEADER_EPOCH
    assert reaction(answer.sent, cluster[2].position(), answer.error, diverges=False) is Reaction.PARK


def led_in_between(rules: Rules) -> tuple[Cluster, list[str]]:
    cluster = Cluster(3, min_insync_replicas=1, rules=rules)
    stray = cluster.write("stray")  # nobody has fetched it
    cluster.elect(2, (2, 3))
    cluster.tell()
    good = cluster.write("good", leader_id=2)
    cluster.sync()
    cluster.elect(1, (1, 2, 3))
    cluster.tell()
    cluster.sync()
    assert cluster[1].high_watermark > stray.offset
    return cluster, lost(cluster, [stray, good])


def test_a_write_of_a_leadership_that_ended_is_never_confirmed():
    """Redpanda issue 3003: its watermark is beyond the offset when it leads again, but stands on another record."""
    assert led_in_between(Rules())[1] == []


def test_without_its_end_a_write_of_a_former_leadership_is_confirmed():
    """Redpanda issue 3003, the rule removed: what the leader in between has put there passes for the write."""

    def only_the_watermark(leader: LeaderState | None, _epoch: int, required_offset: int) -> ErrorCode | None:
        return None if leader is None or leader.high_watermark < required_offset else NONE

    assert led_in_between(Rules(acknowledgement=only_the_watermark))[1] == ["stray"]


def bumped_while_it_waits(rules: Rules) -> ErrorCode | None:
    cluster = Cluster(3, min_insync_replicas=2, rules=rules)
    write = cluster.write("m1")
    cluster.elect(1, (1, 2))  # broker 3 has died
    cluster.tell()
    assert cluster[1].high_watermark == 0
    outcome = write.outcome
    cluster.sync(2)
    assert cluster.values(2) == ["m1"]
    return outcome or write.outcome


def test_an_epoch_bump_alone_ends_no_wait():
    """Kafka's ``DelayedProduce``: the broker leads on, so its watermark will tell, and nothing is sent twice."""
    assert bumped_while_it_waits(Rules()) is NONE


def test_with_an_answer_to_each_bump_what_is_stored_is_refused():
    """The rule removed: m1 is in every log, and its producer is told to send it again."""

    def same_epoch(leader: LeaderState | None, epoch: int, required_offset: int) -> ErrorCode | None:
        if leader is None or leader.leader_epoch != epoch:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return NONE if leader.high_watermark >= required_offset else None

    assert bumped_while_it_waits(Rules(acknowledgement=same_epoch)) is ErrorCode.NOT_LEADER_OR_FOLLOWER


# KAFKA-18723: an answer that comes after the world changed.


def late_answer(rules: Rules) -> Cluster:
    cluster = Cluster(3, rules=rules)
    cluster.write("m1")
    late = cluster[2].fetch()
    cluster.write("m2")
    cluster[2].apply(cluster[2].fetch())
    cluster[2].apply(late)
    return cluster


def test_an_answer_for_another_position_is_dropped():
    """Records are appended only if the log still ends where they were asked for."""
    assert late_answer(Rules()).values(2) == ["m1", "m2"]


def test_without_the_position_check_a_late_answer_repeats_records():
    """Without the check of the position, a late answer appends a record twice."""

    def trusting(sent: FetchPosition, here: FetchPosition, error: ErrorCode, *, diverges: bool) -> Reaction:
        return reaction(here, here, error, diverges=diverges)

    assert late_answer(Rules(reaction=trusting)).values(2) == ["m1", "m2", "m1"]


# The in-sync set and the watermark.


def test_the_watermark_stands_still_below_min_insync_replicas():
    """KAFKA-15583: a leader alone shows nothing new to consumers."""
    cluster = Cluster()
    cluster.write("m1")
    cluster.sync()
    cluster.elect(1, (1,))
    cluster.tell()
    replica = cluster[1]
    assert replica.leader is not None
    replica.entries.append((replica.leader_epoch, "acks=1"))
    assert not replica.leader.advance(replica.end, cluster.now_ms)
    assert replica.high_watermark == 1


def test_acks_all_is_refused_below_min_insync_replicas():
    """KAFKA-1555: not enough replicas, nothing is appended."""
    cluster = Cluster()
    cluster.elect(1, (1,))
    cluster.tell()
    assert cluster[1].append("m1") is None


def test_the_watermark_moves_when_a_shrink_is_committed():
    """KAFKA-13091: nobody fetches any more who could move it."""
    cluster = Cluster()
    write = cluster.write("m1")
    cluster.sync(2)
    assert write.outcome is None
    cluster.now_ms += 10_001
    cluster[2].fetch()
    leader = cluster[1].leader
    assert leader is not None
    cluster[1].proposal = leader.check_lag(cluster[1].end, cluster.now_ms)
    assert cluster[1].proposal is not None
    assert cluster[1].proposal.members == (1, 2)
    assert write.outcome is None, "until the controller has agreed, broker 3 counts"
    assert cluster.answer_proposal(1) is NONE
    assert write.outcome is NONE


def test_a_replica_being_added_counts_before_the_controller_answers():
    """Maximal ISR: the controller may have added it already, so what it lacks is not committed."""
    cluster = Cluster(3, min_insync_replicas=1)
    cluster.state = replace(cluster.state, isr=(1, 2), leader_epoch=1, partition_epoch=1)
    cluster.tell()
    cluster.sync()
    assert cluster.answer_proposal(1, lose_answer=True) is NONE
    assert cluster.state.isr == (1, 2, 3)
    write = cluster.write("m1")
    cluster.sync(2)
    assert write.outcome is None
    cluster.sync(3)
    assert write.outcome is NONE
