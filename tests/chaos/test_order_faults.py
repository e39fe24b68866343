"""Faults by orders to the cluster: what they ask for, what their probes demand, and that all is as before then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from chaos.faults.admin_orders import RoundTrip, SeenReplicas
from chaos.faults.base import Fault, Probe
from chaos.faults.catalogue import FAULTS
from chaos.faults.reaction import ClusterReaction, epochs_for
from chaos.schedules.model import Injection
from tests.chaos.conducted import FastClock
from tests.chaos.fake_cluster import FakeCluster
from tests.chaos.fake_machine import FakeMachine
from tests.chaos.fake_orders import FakeOrders
from verifier.evidence.fault_kinds import NOT_ORDERED


def _four_brokers() -> FakeCluster:
    """One of them has no replica."""
    cluster = FakeCluster()
    cluster.broker_ids = (1, 2, 3, 4)
    cluster.processes[4] = type(cluster.processes[1])(1004)
    cluster.machines[4] = FakeMachine(lambda: None)
    cluster.orders = FakeOrders(cluster.topic, cluster.partitions, cluster.broker_ids, cluster.machines)
    return cluster


def _fault(name: str, cluster: FakeCluster, seed: int = 3, **parameters: object) -> Fault:
    injection = Injection(0.0, name, 0.01, {"partition": 0}, parameters)
    return FAULTS[name](injection, cluster, FastClock(), Random(seed))


async def _whole(fault: Fault) -> tuple[Probe, Probe]:
    await fault.choose()
    await fault.inject()
    during = await fault.bites()
    await fault.heal()
    return during, await fault.gone()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("brokers", [3, 4])
def test_a_partition_moves_there_and_back(brokers: int, seed: int) -> None:
    """To a broker without a replica if there is one; else one replica goes away. Back to the same order in any case."""
    cluster = FakeCluster() if brokers == 3 else _four_brokers()
    fault = _fault("reassign-partitions", cluster, seed)
    during, after = asyncio.run(_whole(fault))
    away, back = cluster.orders.moves
    assert back == (1, 2, 3) and len(away) == brokers - 1 and (4 in away) == (brokers == 4)
    assert len(set(back) - set(away)) == 1
    assert during.effective and after.effective and fault.bit(during, after)
    assert after.seen["copied_bytes"] == 100 and during.seen["copied_bytes"] == (100 if brokers == 4 else 0)
    assert cluster.orders.topics[cluster.topic].overrides == {}


def test_the_replica_of_the_leader_goes_where_it_is_asked_for() -> None:
    """Then another broker leads, without that anyone failed."""
    cluster = FakeCluster()
    asyncio.run(_whole(_fault("reassign-partitions", cluster, removes="leader")))
    assert cluster.orders.moves[0] == (2, 3)


def test_a_new_replica_that_copies_nothing_is_no_move() -> None:
    """Metadata with the right replicas proves no data: a fiftieth of the leader's bytes is too little."""
    cluster = _four_brokers()
    cluster.orders.empty = True
    fault = _fault("reassign-partitions", cluster, removes="follower")
    during, after = asyncio.run(_whole(fault))
    assert during.seen["moved"] is True and during.seen["copied_bytes"] == 0
    assert not during.effective and not fault.bit(during, after)


def test_a_former_replica_whose_data_stays_is_no_move() -> None:
    """Its directory must leave the disk: otherwise the evidence of the run would have one copy too many."""
    cluster = _four_brokers()
    cluster.orders.stubborn = True
    during, _ = asyncio.run(_whole(_fault("reassign-partitions", cluster)))
    assert during.seen["removed_data"] is False and not during.effective
    assert during.seen["directories_left"] == ["gapless-0"]


def test_a_move_that_does_not_come_back_is_not_healed() -> None:
    """The run ends with the replicas that it declared, or it is over."""
    cluster = FakeCluster()
    fault = _fault("reassign-partitions", cluster)

    async def stuck() -> None:
        await fault.choose()
        await fault.inject()
        cluster.orders.deaf = True
        await fault.heal()

    with pytest.raises(TimeoutError, match=r"gapless-0 did not get back to its replicas \[1, 2, 3\]"):
        asyncio.run(stuck())


def test_another_leader_is_elected_and_the_first_one_again() -> None:
    """Both by an election that the journals have; the order of the replicas is as before."""
    cluster = FakeCluster()
    during, after = asyncio.run(_whole(_fault("elect-preferred", cluster)))
    seen = cluster.orders.topics[cluster.topic].partitions[0]
    assert seen.replicas == (1, 2, 3) and seen.leader == 1
    assert during.seen["elected"] in (2, 3)
    assert during.effective and after.effective and after.seen["elections"] == 2


def test_a_leader_that_the_journals_do_not_know_is_no_election() -> None:
    """Brokers that tell of a leader prove nothing about who made it one."""

    class Forgetful(FakeCluster):
        async def elections(self, topic: str, partition: int, reason: str) -> int:
            return 0

    during, _ = asyncio.run(_whole(_fault("elect-preferred", Forgetful())))
    assert during.seen["leader_moved"] is True and not during.effective


def test_epochs_are_counted_by_partition_and_reason() -> None:
    """Once each, though two journals may tell of one."""

    def change(partition: int, epoch: int, reason: str) -> dict[str, object]:
        return {
            "event": "partition-changed", "topic": "t", "partition": partition, "leader_epoch": epoch, "reason": reason,
        }  # fmt: skip

    entries = [change(0, 3, "r"), change(0, 3, "r"), change(0, 4, "r"), change(0, 5, "s"), change(1, 6, "r")]
    assert epochs_for([*entries, {"event": "registered"}], ("t", 0), "r") == 2


class LosingOrders(FakeOrders):
    """Stores nothing in a partition above ``least``."""

    least = 2

    async def round_trip(self, topic: str, partition: int, size_bytes: int = 100) -> RoundTrip:
        if partition >= self.least:
            return RoundTrip(-1, False, "UNKNOWN_TOPIC_OR_PARTITION")
        return await super().round_trip(topic, partition, size_bytes)


def test_a_partition_is_added_when_a_record_went_through_it() -> None:
    """As many as asked for, known to every broker; nothing is left of the topic."""
    cluster = FakeCluster()
    during, after = asyncio.run(_whole(_fault("add-partitions", cluster, added=4)))
    assert during.effective and (during.seen["partitions_added"], during.seen["records_read"]) == (4, 4)
    assert after.effective and [*cluster.orders.topics] == [cluster.topic]
    losing = FakeCluster()
    losing.orders = LosingOrders(losing.topic, losing.partitions, losing.broker_ids, losing.machines)
    during, _ = asyncio.run(_whole(_fault("add-partitions", losing, added=4)))
    assert during.seen["partitions_added"] == 4 and not during.effective


def test_topics_come_and_go_one_of_them_twice() -> None:
    """Each replica has a directory, and the second topic of a name begins empty."""
    cluster = FakeCluster()
    during, after = asyncio.run(_whole(_fault("create-delete-topic", cluster, topics=2)))
    assert during.effective and during.seen["replica_directories"] == 2 * 3 * 3
    assert during.seen["records_read"] == 2 and during.seen["recreated"] is True
    assert after.effective and (after.seen["topics_known"], after.seen["replica_directories"]) == (0, 0)


def test_a_topic_that_is_made_again_with_its_former_records_does_not_count() -> None:
    """The records of the former topic must be gone with it."""

    class Remembering(FakeOrders):
        async def delete_topic(self, topic: str) -> None:
            self.kept = self.topics.get(topic)
            await super().delete_topic(topic)

        async def create_topic(self, topic: str, partitions: int, replicas: int, config: object) -> None:
            await super().create_topic(topic, partitions, replicas, {})
            self.topics[topic] = getattr(self, "kept", None) or self.topics[topic]

    cluster = FakeCluster()
    cluster.orders = Remembering(cluster.topic, cluster.partitions, cluster.broker_ids, cluster.machines)
    during, _ = asyncio.run(_whole(_fault("create-delete-topic", cluster, topics=1)))
    assert during.seen["records_read"] == 0 and not during.effective


def test_directories_that_stay_keep_a_topic_from_being_gone() -> None:
    """Metadata forgets a topic before its brokers remove it."""
    cluster = FakeCluster()
    cluster.orders.stubborn = True
    _, after = asyncio.run(_whole(_fault("create-delete-topic", cluster, topics=1)))
    assert after.seen["topics_known"] == 0 < after.seen["replica_directories"] and not after.effective


@pytest.mark.parametrize("name", ["create-delete-topic", "add-partitions"])
def test_a_topic_is_not_gone_because_no_broker_answers(name: str) -> None:
    """One that does not answer may still report it."""

    class Silent(FakeOrders):
        async def topic_on(self, broker_id: int, topic: str) -> Mapping[int, SeenReplicas] | None:
            return await super().topic_on(broker_id, topic) or (None if broker_id == 3 else {})

    cluster = FakeCluster()
    cluster.orders = Silent(cluster.topic, cluster.partitions, cluster.broker_ids, cluster.machines)
    during, after = asyncio.run(_whole(_fault(name, cluster)))
    assert during.effective and not after.effective
    assert after.seen["topics_known"] > 0 and after.seen["replica_directories"] == 0


def test_a_setting_shows_in_what_is_refused() -> None:
    """On a topic beside the load, whose own is not touched; set back, the same record is taken."""
    cluster = FakeCluster()
    during, after = asyncio.run(_whole(_fault("alter-config", cluster, key="max.message.bytes")))
    assert during.effective and during.seen["refusal"] == "MESSAGE_TOO_LARGE" and during.seen["brokers_agreeing"] == 3
    assert after.effective and after.seen["accepted"] is True
    assert cluster.orders.topics[cluster.topic].overrides == {}


@pytest.mark.parametrize("former", [{}, {"segment.ms": "5000"}])
def test_a_setting_of_the_runs_topic_is_set_back_to_what_it_was(former: dict[str, str]) -> None:
    """Its own value, or none: a default that was set would be another state of the topic."""
    cluster = FakeCluster()
    asyncio.run(cluster.orders.set_config(cluster.topic, former))
    during, after = asyncio.run(_whole(_fault("alter-config", cluster, key="segment.ms")))
    assert during.effective and during.seen["closed_segments"] >= 2
    assert after.effective and cluster.orders.topics[cluster.topic].overrides == former


@pytest.mark.parametrize(("every", "bites"), [(1, False), (3, True)])
def test_segments_that_were_full_do_not_show_a_setting(every: int, bites: bool) -> None:
    """Under a load, small segments are closed all the time; with the setting, before they are full."""
    full_bytes = 131_072

    class Small(FakeOrders):
        looks = 0

        async def config_on(self, broker_id: int, topic: str) -> Mapping[str, str] | None:
            return {**(await super().config_on(broker_id, topic) or {}), "segment.bytes": str(full_bytes)}

        async def held_on(self, broker_id: int, topic: str) -> Mapping[int, int] | None:
            self.looks += broker_id == 1
            return dict.fromkeys(range(2), self.looks * full_bytes // every)

        async def set_config(self, topic: str, values: Mapping[str, str | None]) -> None:
            known = self.topics[topic]
            self.topics[topic] = replace(known, overrides={k: v for k, v in values.items() if v is not None})

    class Busy(FakeMachine):
        async def segments(self, directory: str) -> int:
            self.closed += 1
            return self.closed

    cluster = FakeCluster()
    cluster.machines.update({broker_id: Busy(lambda: None) for broker_id in cluster.broker_ids})
    cluster.orders = Small(cluster.topic, cluster.partitions, cluster.broker_ids, cluster.machines)
    during, _ = asyncio.run(_whole(_fault("alter-config", cluster, key="segment.ms")))
    assert during.seen["closed_segments"] >= 2 and during.effective == bites


def test_a_setting_that_every_broker_describes_and_that_does_nothing_has_not_bitten() -> None:
    """``segment.ms`` must close segments, which takes a load."""

    class Idle(FakeMachine):
        async def segments(self, directory: str) -> int:
            return 3

    cluster = FakeCluster()
    cluster.machines.update({broker_id: Idle(lambda: None) for broker_id in cluster.broker_ids})
    during, _ = asyncio.run(_whole(_fault("alter-config", cluster, key="segment.ms")))
    assert during.seen["brokers_agreeing"] == 3 and not during.effective


def test_a_replica_outside_the_isr_is_elected_when_the_isr_is_dead() -> None:
    """One follower is out, the others acknowledge without it and die; it leads, and they cut their logs off."""
    cluster = FakeCluster()
    fault = _fault("elect-unclean", cluster)
    during, after = asyncio.run(_whole(fault))
    left = during.seen["elected"]
    assert left in (2, 3)
    assert [step["broker"] for step in during.seen["steps"]] == [each for each in (1, 2, 3) if each != left]
    assert cluster.links.frame_acts[0].direction == "response"
    assert during.effective and during.seen["leaderless"] and during.seen["written_without"]
    assert after.effective and after.seen["truncations"] == 2 and fault.bit(during, after)


def test_the_time_of_an_unclean_order_is_that_of_its_first_request() -> None:
    """The verdict goes by it, and by every answer: what was ordered before and what was refused excuses nothing."""

    class Sent(FakeOrders):
        async def elect_unclean(self, topic: str, partition: int) -> str:
            sent_ns.append(clock.monotonic_ns())
            if len(sent_ns) == 1:
                raise TimeoutError
            return await super().elect_unclean(topic, partition)

    cluster, sent_ns = FakeCluster(), list[int]()
    cluster.orders = Sent(cluster.topic, cluster.partitions, cluster.broker_ids, cluster.machines)
    fault = _fault("elect-unclean", cluster)
    clock, began_ns = fault.clock, fault.clock.monotonic_ns()
    during, _ = asyncio.run(_whole(fault))
    assert began_ns < during.seen["ordered_ns"] <= sent_ns[0]
    assert during.seen["all_answers"] == ["REQUEST_TIMED_OUT", "NONE"]
    assert during.seen["answer"] == "NONE"


def test_an_unclean_order_that_failed_has_its_time_in_the_record() -> None:
    """It may have been carried out; before it is sent, nothing has been ordered."""

    class Broken(FakeOrders):
        async def elect_unclean(self, topic: str, partition: int) -> str:
            raise OSError("broken")

    cluster = FakeCluster()
    cluster.orders = Broken(cluster.topic, cluster.partitions, cluster.broker_ids, cluster.machines)
    fault = _fault("elect-unclean", cluster)

    async def fail() -> None:
        await fault.choose()
        assert fault.deeds() == {"answer": NOT_ORDERED}
        await fault.inject()

    with pytest.raises(OSError, match="broken"):
        asyncio.run(fail())
    assert set(fault.deeds()) == {"answer", "all_answers", "ordered_ns"}
    assert fault.deeds()["answer"] != NOT_ORDERED


def test_an_unclean_election_that_cuts_nothing_off_does_not_count() -> None:
    """No one came back with more than the elected one had: nothing shows that it lacked anything."""

    class Lossless(FakeCluster):
        async def reaction(self) -> ClusterReaction:
            return replace(await super().reaction(), truncations=0)

    fault = _fault("elect-unclean", Lossless())
    during, after = asyncio.run(_whole(fault))
    assert during.effective and not fault.bit(during, after)


def test_a_follower_that_stays_in_the_isr_is_not_elected() -> None:
    """No one is killed then: the fault would only be an outage. Its probe says that nothing was ordered, by the word
    that the verifier knows."""

    class InSync(FakeCluster):
        async def isr(self, partition: int) -> frozenset[int]:
            return frozenset(self.broker_ids)

    cluster = InSync()
    during, _ = asyncio.run(_whole(_fault("elect-unclean", cluster)))
    assert not during.effective and during.seen["steps"] == [] and cluster.restarts == 0
    assert during.seen["answer"] == NOT_ORDERED
    assert not any(cluster.links.toxics.values())


def test_an_unclean_election_that_the_journals_do_not_know_is_none() -> None:
    """A leader may come back by itself: what the controller wrote counts, with its reason."""

    class Forgetful(FakeCluster):
        async def elections(self, topic: str, partition: int, reason: str) -> int:
            return 0

    during, _ = asyncio.run(_whole(_fault("elect-unclean", Forgetful())))
    assert during.seen["leader_moved"] is True and not during.effective
