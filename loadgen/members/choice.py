"""Chooses the client library of a member, and makes its configuration. Does not own any client.

Does not load the library that was not chosen, except confluent-kafka, which ``loadgen.users.member`` imports anyway.
"""

from __future__ import annotations

from cluster.seams.clock import Clock
from loadgen.clients.consumer_keys import in_words_of
from loadgen.group_plan import GROUP, MemberPlace, Members
from loadgen.members.events import MemberClient
from loadgen.members.output import OutputProducer
from loadgen.settings import NATIVE, ConfigValue, LoadSettings

#: The keys that the load sets itself: other values would break membership or the checks.
_OWN = ("auto.offset.reset", "enable.auto.commit", "group.id", "group.instance.id", "isolation.level")


def make_member(
    place: MemberPlace, client_id: str, bootstrap: str, settings: LoadSettings, members: Members, clock: Clock
) -> MemberClient:
    """A consumer for this place in the group. In a load with ``transform``, transactions commit its offsets."""
    assignor, commits = members.assignor, not members.transform
    given = in_words_of(place.client, settings.client, settings.consumer_config)
    own: dict[str, ConfigValue] = {"group.id": GROUP, "isolation.level": "read_committed"}
    if place.instance_id is not None:
        own["group.instance.id"] = place.instance_id
    asked = {key: value for key, value in given.items() if key not in _OWN}
    if place.client == NATIVE:
        from loadgen.members import native

        config = {**native.DEFAULTS, **asked, **own, "partition.assignment.strategy": assignor}
        config |= {"bootstrap.servers": bootstrap, "client.id": client_id}
        return native.NativeMember(settings.topic, config, clock, commits=commits)
    from loadgen.clients.librdkafka import consumer_config
    from loadgen.members import confluent

    config = {**confluent.DEFAULTS, **asked, **own}
    texts = consumer_config(bootstrap, client_id, config)
    texts["partition.assignment.strategy"] = assignor
    return confluent.ConfluentMember(settings.topic, texts, clock, commits=commits)


def make_output(place: MemberPlace, bootstrap: str, settings: LoadSettings, clock: Clock) -> OutputProducer:
    """The transactional producer for this place in the group."""
    transactional_id = f"{GROUP}-{place.client}-{place.number}"
    if place.client == NATIVE:
        from loadgen.members.native_output import native_output

        return native_output(bootstrap, transactional_id, clock)
    from loadgen.members.confluent_output import confluent_output

    return confluent_output(bootstrap, transactional_id, clock)
