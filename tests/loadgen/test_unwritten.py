"""Why a load wrote nothing: what stands in the line that says so, and what a worker tells of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.unwritten import WrittenState, likely_cause, name_of


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("_TRANSPORT: 127.0.0.1:1/1: Connect to ipv4#127.0.0.1:1 failed", "_TRANSPORT"),
        ("UNKNOWN_TOPIC_OR_PARTITION: This server does not host it", "UNKNOWN_TOPIC_OR_PARTITION"),
        ("not queued: _UNKNOWN_PARTITION: Local: Unknown partition", "_UNKNOWN_PARTITION"),
        ("outstanding at a fatal error: _FENCED: Local: fenced", "_FENCED"),
        ("outstanding when the producer was closed", ""),
        ("delivery report of sequence 3, not outstanding", ""),
    ],
)
def test_an_error_has_the_name_that_its_client_gives(text: str, name: str) -> None:
    """Kafka's or librdkafka's, whatever the load says before it; its own words have none."""
    assert name_of(text) == name


@pytest.mark.parametrize(
    ("texts", "cause"),
    [
        ([], None),
        (["outstanding when the producer was closed"], None),
        (
            ["_ALL_BROKERS_DOWN: 1/1 brokers are down"],
            "brokers are not reachable at their advertised addresses (",
        ),
        (
            ["_TRANSPORT: refused", "UNKNOWN_TOPIC_OR_PART: none"],
            "the topic, or a partition of it, is missing (U",
        ),
        (["NOT_ENOUGH_REPLICAS: 1 < 2"], "fewer replicas are in sync than min.insync.replicas requires (NOT"),
        (["TOPIC_AUTHORIZATION_FAILED: no"], "the brokers do not allow it (TOPIC"),
        (["MSG_SIZE_TOO_LARGE: Broker: too large"], "records are larger than the topic allows (MSG"),
        (["INVALID_TIMESTAMP: off", "a word"], "the producers were told INVALID_TIMESTAMP: off"),
    ],
)
def test_the_cause_that_leaves_least_doubt_is_named(texts: list[str], cause: str | None) -> None:
    """With the client's own words beside it; nothing where nobody said anything."""
    found = likely_cause({name_of(text): text for text in texts})
    assert found == cause if cause is None or found is None else found.startswith(cause)


@given(st.lists(st.tuples(st.booleans(), st.none() | st.sampled_from(["a", "b"]))))
def test_one_process_that_wrote_is_enough(processes: list[tuple[bool, str | None]]) -> None:
    """Then nothing is amiss; else the first cause that is known is that of all."""
    told = WrittenState.together(WrittenState(*each) for each in processes)
    assert told.has_written == any(has_written for has_written, _ in processes)
    known = [cause for _, cause in processes if cause]
    assert told.cause == (None if told.has_written or not known else known[0])


def test_a_cause_is_told_again_only_when_it_is_another() -> None:
    """The words of a client count attempts and milliseconds."""
    causes = [likely_cause({"_TRANSPORT": f"_TRANSPORT: b:1: refused (after {number}ms)"}) for number in (1, 2)]
    assert len({WrittenState(False, cause).kind for cause in causes}) == 1
    assert (
        len(
            {
                each.kind
                for each in (
                    WrittenState(False),
                    WrittenState(True),
                    WrittenState(False, causes[0]),
                    WrittenState(False, "x"),
                )
            }
        )
        == 4
    )
