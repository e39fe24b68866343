"""Which client a member uses, and its configuration. Owns the choice; the library that was not chosen is not loaded.

(But for confluent-kafka, which ``loadgen.users.member`` knows.)
"""

from __future__ import annotations

from cluster.seams.clock import Clock
from loadgen.clients.consumer_keys import in_words_of
from loadgen.members.events import MemberClient
from loadgen.membership import GROUP, MemberPlace
from loadgen.settings import NATIVE, ConfigValue, LoadSettings

#: What members would not be members with, or the checks not hold for.
_OWN = ("auto.offset.reset", "enable.auto.commit", "group.id", "group.instance.id", "isolation.level")


def make_member(
    place: MemberPlace, client_id: str, bootstrap: str, settings: LoadSettings, assignor: str, clock: Clock
) -> MemberClient:
    """A consumer that takes this place."""
    given = in_words_of(place.client, settings.client, settings.consumer_config)
    own: dict[str, ConfigValue] = {"group.id": GROUP, "isolation.level": "read_committed"}
    if place.instance_id is not None:
        own["group.instance.id"] = place.instance_id
    asked = {key: value for key, value in given.items() if key not in _OWN}
    if place.client == NATIVE:
        from loadgen.members import native

        config = {**native.DEFAULTS, **asked, **own, "partition.assignment.strategy": assignor}
        config |= {"bootstrap.servers": bootstrap, "client.id": client_id}
        return native.NativeMember(settings.topic, config, clock)
    from loadgen.clients.librdkafka import consumer_config
    from loadgen.members import confluent

    config = {**confluent.DEFAULTS, **asked, **own}
    texts = consumer_config(bootstrap, client_id, config)
    return confluent.ConfluentMember(settings.topic, {**texts, "partition.assignment.strategy": assignor}, clock)
