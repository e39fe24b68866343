"""Segments that a client's timestamps and settings make: each is three files, one of them open.

The broker has the defaults. What its operator sets may be smaller.
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.protocol.apis import ApiKey
from cluster.protocol.errors import ErrorCode
from cluster.protocol.messages import request_class
from tests.hostile.absence import Plain
from tests.hostile.target import Target
from tests.hostile.test_repetition import produce
from tests.simulation.client import TIMESTAMP, batch

pytestmark = pytest.mark.integration

DAY_MS = 86_400_000


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"segment_jitter_ms": str(10**15)},
        {"cleanup_policy": "compact", "max_compaction_lag_ms": "1"},
    ],
)
def test_timestamps_make_few_segments(broker: Target, plain: Plain, settings: dict[str, str]) -> None:
    """Each batch is ten days younger than the one before, and segment.ms is seven: each began a segment."""
    topic = f"times-{len(settings)}-{'lag' if 'cleanup_policy' in settings else 'default'}"
    assert plain.create_topic(topic, 1, **settings) == ErrorCode.NONE
    for day in range(0, 1000, 10):
        answer = produce(plain, topic, batch(b"x", key=b"k", timestamp=TIMESTAMP - (1000 - day) * DAY_MS))
        assert answer.error_code == ErrorCode.NONE
    assert len([*broker.directory.rglob(f"{topic}-0/*.log")]) <= 2  # one more when the machine takes ten seconds


def ask(plain: Plain, kind: int, name: str, setting: str, value: int) -> int:
    """Whether a setting of a topic (2) or of brokers (4) might be changed like that."""
    resource: Any = request_class(ApiKey.INCREMENTAL_ALTER_CONFIGS).AlterConfigsResource
    entry = resource.AlterableConfig(name=setting, config_operation=0, value=str(value))
    asked = resource(resource_type=kind, resource_name=name, configs=[entry])
    answer = plain.send(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[asked], validate_only=True)
    return int(answer.responses[0].error_code)


@pytest.mark.parametrize(
    ("key", "least"), [("segment.index.bytes", 209_715), ("segment.ms", 10_000), ("segment.bytes", 1_048_576)]
)
def test_settings_have_least_values(plain: Plain, key: str, least: int) -> None:
    """INVALID_CONFIG below, when a topic is made and later, of a topic and of brokers; an index of 4 bytes was full
    with every batch."""
    topic = f"least-{least}"
    assert plain.create_topic(topic, 1, **{key.replace(".", "_"): str(least - 1)}) == ErrorCode.INVALID_CONFIG
    assert plain.create_topic(topic, 1, **{key.replace(".", "_"): str(least)}) == ErrorCode.NONE
    of_brokers = {"segment.index.bytes": "log.index.size.max.bytes", "segment.ms": "log.roll.ms"}.get(key, f"log.{key}")
    for kind, name, setting in ((2, topic, key), (4, "", of_brokers)):
        assert ask(plain, kind, name, setting, least - 1) == ErrorCode.INVALID_CONFIG
        assert ask(plain, kind, name, setting, least + 1) == ErrorCode.NONE


@pytest.mark.parametrize("refused", [3_600_001, 9 * 10**18])
def test_what_is_deleted_is_removed_in_time(plain: Plain, refused: int) -> None:
    """INVALID_CONFIG above an hour: the disk, and once the descriptors too, were taken as long as anyone liked."""
    topic = f"delay-{refused}"
    assert plain.create_topic(topic, 1, file_delete_delay_ms=str(refused)) == ErrorCode.INVALID_CONFIG
    assert plain.create_topic(topic, 1, file_delete_delay_ms="3600000") == ErrorCode.NONE
    for kind, name, setting in ((2, topic, "file.delete.delay.ms"), (4, "", "log.segment.delete.delay.ms")):
        assert ask(plain, kind, name, setting, refused) == ErrorCode.INVALID_CONFIG
        assert ask(plain, kind, name, setting, 0) == ErrorCode.NONE
