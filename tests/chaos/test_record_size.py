"""A load of which a record can never be written is refused before anything is started, with what would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.experiment.asked import Asked
from chaos.experiment.errors import ExperimentError
from chaos.experiment.record_size import check_record_size
from chaos.experiment.resolve import resolve
from loadgen.workloads import CATALOGUE

#: The largest value that librdkafka takes by default, and the native client; a topic takes both.
CONFLUENT_MOST, NATIVE_MOST = 999_964, 1_048_489


def check(**asked: object) -> list[str]:
    whole = Asked(seed=1, **asked)  # type: ignore[arg-type]
    return check_record_size(resolve(whole)[0])


@pytest.mark.parametrize("client", ["native", "confluent"])
def test_every_workload_of_the_catalogue_can_be_written(client: str) -> None:
    """No workload of the catalogue has records that the topic would refuse."""
    for name in CATALOGUE:
        assert check(workload=name, client=client) == []


@pytest.mark.parametrize(("client", "most"), [("confluent", CONFLUENT_MOST), ("native", NATIVE_MOST)])
def test_what_the_client_never_takes_is_refused(client: str, most: int) -> None:
    """To the byte; a client of which more is asked for takes it."""
    assert check(record_bytes=most, client=client) == []
    with pytest.raises(
        ExperimentError, match=f"--record-bytes {most + 1}: .* at most {most} bytes, or give --producer"
    ):
        check(record_bytes=most + 1, client=client)


def test_a_workloads_file_is_named_and_its_rarest_value_counts(tmp_path: Path) -> None:
    """The most that a distribution may draw, with the longest key beside it."""
    path = tmp_path / "rare.yaml"
    path.write_text("value_bytes: {uniform: {least: 48, most: 999960}}\nkeys: {uniform: {keys: 10}}\n")
    with pytest.raises(ExperimentError) as refused:
        check(workload=str(path))
    assert str(refused.value) == (
        f"--workload {path}: a value of 999960 bytes and a key of 5 is too large for the producer's message.max.bytes "
        "1000000; write values of at most 999959 bytes, or give --producer-config message.max.bytes=1000001"
    )


def test_one_line_names_all_that_is_in_the_way() -> None:
    """The client's limit and the topic's own default: who does what it says is not refused again."""
    with pytest.raises(ExperimentError, match=r"message\.max\.bytes 1000000 and the topic's max\.message\.bytes"):
        check(record_bytes=2_000_000)
    with pytest.raises(ExperimentError) as refused:
        check(record_bytes=2_000_000, producer_config=["message.max.bytes=3000000"])
    assert "producer" not in str(refused.value)
    given = str(refused.value).rpartition(" --topic-config ")[2]
    larger = {"producer_config": ["message.max.bytes=3000000"], "topic_config": [given]}
    assert check(record_bytes=2_000_000, **larger) == []


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"topic_config": ["max.message.bytes=100"]}, "the topic's max.message.bytes 100"),
        ({"broker_config": ["message.max.bytes=100"]}, "the topic's max.message.bytes 100"),
        ({"topic_config": ["segment.bytes=200"]}, "the topic's segment.bytes 200"),
        ({"broker_config": ["socket.request.max.bytes=150"]}, "the broker's socket.request.max.bytes 150"),
    ],
)
def test_a_limit_of_the_clusters_that_was_asked_for_is_warned_of(asked: dict[str, list[str]], named: str) -> None:
    """It is the control of a run in which nothing is acknowledged, and ends as unknown."""
    (warning,) = check(**asked)
    assert warning.startswith(f"--workload steady: a value of 200 bytes is too large for {named}; ")


@pytest.mark.parametrize("codec", ["compression.type=lz4", "compression.codec=lz4"])
def test_what_may_compress_to_less_is_warned_of(codec: str) -> None:
    """A topic's limit is one of batches as they are sent; a client's is one of records as they are given to it."""
    asked = {"record_bytes": 1_500_000, "producer_config": [codec, "message.max.bytes=2000000"]}
    (warning,) = check(**asked)
    assert "the topic's max.message.bytes 1048588" in warning and warning.endswith(" (unless it is compressed to less)")
    with pytest.raises(ExperimentError, match=r"producer's message\.max\.bytes"):
        check(record_bytes=1_500_000, producer_config=[codec])
