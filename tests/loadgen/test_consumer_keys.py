"""One consumer configuration, written in one client's keys, for readers of each."""

from __future__ import annotations

import pytest

from cluster.config import consumer, profiles
from loadgen.clients.choice import check_client_config, left_out
from loadgen.clients.consumer_keys import in_words_of
from loadgen.settings import CONFLUENT, KAFKA_PYTHON, NATIVE, LoadSettings, SettingsError

LIBRDKAFKA = {
    "fetch.wait.max.ms": "70",
    "socket.timeout.ms": "3000",
    "auto.offset.reset": "error",
    "fetch.error.backoff.ms": "100",
    "isolation.level": "read_uncommitted",
}


def test_a_client_takes_its_own_keys_as_they_are() -> None:
    """What was written for a client is not touched, whatever it is."""
    assert in_words_of(CONFLUENT, CONFLUENT, LIBRDKAFKA) == LIBRDKAFKA
    assert in_words_of(NATIVE, NATIVE, {"anything": 1}) == {"anything": 1}


@pytest.mark.parametrize("client", [NATIVE, KAFKA_PYTHON])
def test_librdkafkas_words_are_told_in_kafkas(client: str) -> None:
    """Names and values that Kafka calls otherwise; what is librdkafka's own business is left out, and said."""
    known = in_words_of(client, CONFLUENT, LIBRDKAFKA)
    assert known == {
        "fetch.max.wait.ms": "70",
        "request.timeout.ms": "3000",
        "auto.offset.reset": "none",
        "isolation.level": "read_uncommitted",
    }
    assert consumer.validate(known)["fetch.max.wait.ms"] == 70
    settings = LoadSettings(run_id=1, readers=(CONFLUENT, NATIVE), consumer_config=dict(LIBRDKAFKA))
    assert left_out(settings) == [(NATIVE, "fetch.error.backoff.ms")]


@pytest.mark.parametrize("profile", profiles.PROFILES.values(), ids=lambda profile: profile.name)
@pytest.mark.parametrize("client", [CONFLUENT, NATIVE])
def test_every_profile_suits_every_reader(profile: profiles.Profile, client: str) -> None:
    """What a run is configured with by default is taken by the readers of both clients."""
    config = consumer.validate({}, client, profile.consumer_base(client)).as_text()
    check_client_config(LoadSettings(run_id=1, client=client, consumer_config=dict(config)))


def test_each_readers_client_judges_the_configuration() -> None:
    """A value that one of them refuses is refused before anything starts."""
    wrong = {"isolation.level": "nonsense"}
    for readers in ((CONFLUENT,), (NATIVE,)):
        with pytest.raises(SettingsError, match=r"isolation\.level"):
            check_client_config(LoadSettings(run_id=1, client=NATIVE, readers=readers, consumer_config=dict(wrong)))
