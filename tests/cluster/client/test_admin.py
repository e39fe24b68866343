"""The synchronous Admin: its keys, its thread, its end. What it asks is tested where it is done."""

from __future__ import annotations

import threading

import pytest

from cluster.client import Admin
from cluster.config.errors import ConfigError


def test_keys():
    """Kafka's own; an unknown one is refused with the nearest, and so are bootstrap servers that are none."""
    with pytest.raises(
        ConfigError, match=r"unknown admin config key 'bootstrap\.server'; did you mean 'bootstrap\.ser"
    ):
        Admin({"bootstrap.server": "h:1"})
    with pytest.raises(ConfigError, match=r"admin config 'bootstrap\.servers' is empty"):
        Admin({})
    with pytest.raises(ConfigError, match="not a host:port address"):
        Admin({"bootstrap.servers": "h"})


def test_a_key_without_effect_is_warned_of(caplog):
    """So that nobody believes in it."""
    with Admin({"bootstrap.servers": "h:1", "metadata.max.age.ms": 1}):
        pass
    assert "admin config key 'metadata.max.age.ms' is accepted and changes nothing here" in caplog.text


def test_the_end():
    """Closing ends the thread; a second time does nothing, and calls are refused."""
    before = threading.active_count()
    admin = Admin({"bootstrap.servers": "127.0.0.1:1", "default.api.timeout.ms": 50})
    assert threading.active_count() == before + 1
    with pytest.raises(TimeoutError, match="Metadata: "):
        admin.list_topics()
    admin.close()
    admin.close()
    assert threading.active_count() == before
    with pytest.raises(RuntimeError, match="already been closed"):
        admin.list_topics()
