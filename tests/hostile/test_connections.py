"""Many connections, silent ones, many files: a broker turns away what it cannot hold, and holds what it has (H8)."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cluster.process.processes import until
from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.hostile.absence import Plain
from tests.hostile.target import Target, target
from tests.hostile.test_repetition import produce
from tests.simulation.client import batch

pytestmark = pytest.mark.integration


def is_served(plain: Plain) -> bool:
    """Whether a connection is answered; False if the broker has closed it."""
    try:
        plain.send(ApiKey.API_VERSIONS, 2)
    except (EOFError, ConnectionError):
        return False
    return True


def test_connections_of_one_address(tmp_path: Path) -> None:
    """Above max.connections.per.ip they are closed at once; when one goes there is room for another."""
    with target(tmp_path, max_connections_per_ip="5") as broker, ExitStack() as stack:
        plains = [stack.enter_context(Plain(broker.port)) for _ in range(5)]
        assert all(map(is_served, plains))
        for _ in range(20):
            with Plain(broker.port) as further:
                assert not is_served(further)
        assert all(map(is_served, plains))
        plains.pop().sock.close()

        def is_room() -> bool:
            with Plain(broker.port) as another:
                return is_served(another)

        assert until(is_room, 5)
        assert broker.log().count("is turned away: 127.0.0.1 has max.connections.per.ip=5") == 1


def test_connections_in_all(tmp_path: Path) -> None:
    """Above max.connections clients are closed at once; a peer is taken in, in place of who was silent longest."""
    with target(tmp_path, max_connections="5") as broker, ExitStack() as stack:
        plains = [stack.enter_context(Plain(broker.port)) for _ in range(5)]
        assert all(map(is_served, plains))
        with Plain(broker.port) as further:
            assert not is_served(further)
        assert all(map(is_served, plains[:2] + plains[3:]))
        with Plain(broker.peer_port) as peer:
            assert is_served(peer)
            assert [is_served(plain) for plain in plains] == [True, True, False, True, True]


def test_silence_has_an_end(tmp_path: Path) -> None:
    """connections.max.idle.ms: who sends nothing, or half a request, is closed; who asks now and then is not."""
    with target(tmp_path, connections_max_idle_ms="1500") as broker, ExitStack() as stack:
        silent, half, busy = (stack.enter_context(Plain(broker.port)) for _ in range(3))
        half.sock.sendall(b"\0\0\1\0only half")
        for plain in (silent, half):
            plain.sock.settimeout(0.05)
        closed: set[Plain] = set()
        deadline = time.monotonic() + 15
        while len(closed) < 2 and time.monotonic() < deadline:
            assert is_served(busy)
            for plain in {silent, half} - closed:
                try:
                    plain.take()
                except TimeoutError:
                    continue
                except (EOFError, ConnectionError):
                    closed.add(plain)
        assert closed == {silent, half}
        assert is_served(busy)


def test_silent_connections_cost_little(broker: Target) -> None:
    """Not a buffer for five requests before the first has come."""
    with ExitStack() as stack:
        first = [stack.enter_context(Plain(broker.port)) for _ in range(100)]
        assert is_served(first[-1])
        before_bytes = broker.memory_bytes()
        more = [stack.enter_context(Plain(broker.port)) for _ in range(700)]
        assert is_served(more[-1])
        assert (broker.memory_bytes() - before_bytes) / len(more) < 30_000


DESCRIPTORS = 400


def test_a_flood_of_connections_leaves_descriptors_for_the_logs(tmp_path: Path) -> None:
    """More connections than files may be open: who is in is served, logs roll, topics are made, nothing has failed."""
    with target(tmp_path, DESCRIPTORS, gapless_min_segment_bytes="14") as broker, ExitStack() as stack:
        plain = stack.enter_context(Plain(broker.port))
        assert plain.create_topic("t", 1, segment_bytes="400") == ErrorCode.NONE
        crowd = [stack.enter_context(Plain(broker.port)) for _ in range(2 * DESCRIPTORS)]
        served = sum(map(is_served, crowd))
        assert DESCRIPTORS // 2 < served < DESCRIPTORS
        for _ in range(10):
            assert produce(plain, "t", batch(b"x" * 200)).error_code == ErrorCode.NONE
        assert plain.create_topic("another") == ErrorCode.NONE
        assert "too many files" not in broker.log().lower()
        assert "connections are turned away" in broker.log()


def delete_topic(plain: Plain, name: str) -> int:
    answer = plain.send(ApiKey.DELETE_TOPICS, 5, topic_names=[name], topics=[], timeout_ms=20_000)
    return int(answer.responses[0].error_code)


def test_too_many_files_are_no_failure_of_the_disk(tmp_path: Path) -> None:
    """A topic that rolls with each batch takes all files there are: it is refused, others go on, and it recovers."""
    with (
        target(tmp_path, DESCRIPTORS, gapless_min_segment_bytes="14") as broker,
        Plain(broker.port) as plain,
    ):
        assert plain.create_topic("good") == ErrorCode.NONE
        assert plain.create_topic("tiny", 1, segment_bytes="200", file_delete_delay_ms="0") == ErrorCode.NONE
        codes = [produce(plain, "tiny", batch(b"x" * 100)).error_code for _ in range(DESCRIPTORS + 20)]
        assert {*codes} == {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}
        assert codes == sorted(codes)
        assert produce(plain, "good", batch(b"x")).error_code == ErrorCode.NONE
        assert "too many files are open" in broker.log()
        with Plain(broker.port) as further, Plain(broker.peer_port) as peer:
            assert is_served(further) and is_served(peer)
        assert delete_topic(plain, "tiny") == ErrorCode.NONE
        assert until(lambda: broker.process.num_fds() < DESCRIPTORS // 2, 10)
        assert until(lambda: plain.create_topic("tiny2", 1, segment_bytes="200") == ErrorCode.NONE, 10)
        assert until(lambda: produce(plain, "tiny2", batch(b"x" * 100)).error_code == ErrorCode.NONE, 10)
        assert [produce(plain, "tiny2", batch(b"x" * 100)).error_code for _ in range(20)] == [0] * 20


@pytest.mark.parametrize(("name", "kind"), [("bounded", 2), ("", 4)])
def test_segments_have_a_least_size(broker: Target, plain: Plain, name: str, kind: int) -> None:
    """INVALID_CONFIG below gapless.min.segment.bytes, a megabyte as in Kafka 4, when topics are made and later."""
    assert plain.create_topic("tiny", 1, segment_bytes="100") == ErrorCode.INVALID_CONFIG
    plain.create_topic("bounded", 1, segment_bytes="1048576")
    resource: Any = request_class(ApiKey.INCREMENTAL_ALTER_CONFIGS).AlterConfigsResource
    key = "segment.bytes" if kind == 2 else "log.segment.bytes"
    codes = []
    for value in ("1048575", "2000000"):
        entry = resource.AlterableConfig(name=key, config_operation=0, value=value)
        asked = resource(resource_type=kind, resource_name=name, configs=[entry])
        answer = plain.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=False)
        codes.append(answer.responses[0].error_code)
    assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
