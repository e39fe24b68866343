"""Java properties, and the environment of a container."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.config import broker
from cluster.config.errors import ConfigError
from cluster.config.properties import from_environment, parse_properties


def test_a_properties_file_as_users_write_them() -> None:
    """Comments, blank lines, spaces, colons, continuations and escapes are Java's; a later pair wins."""
    found = parse_properties(
        "# comment\n! comment\n\n  broker.id = 1  \nlisteners: A://h:1,\\\n    B://h:2\nempty=\npath=a\\\\b\\u0041\nbroker.id=2\n"
    )
    assert found == {"broker.id": "2", "listeners": "A://h:1,B://h:2", "empty": "", "path": "a\\bA"}


def test_a_line_that_is_no_pair_is_named() -> None:
    """The error has the number of the line."""
    with pytest.raises(ConfigError, match="line 2 of the properties is not key=value: 'nonsense'"):
        parse_properties("a=1\nnonsense\n")


def format_properties(mapping: Mapping[str, str]) -> str:
    """One pair per line, escaped as ``java.util.Properties.store`` does."""
    return "".join(f"{_escape(key, key=True)}={_escape(value, key=False)}\n" for key, value in mapping.items())


def _escape(text: str, *, key: bool) -> str:
    text = (
        text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t").replace("\f", "\\f")
    )
    if key:
        return re.sub(r"([=: #!])", r"\\\1", text)
    return re.sub(r"^ +| +$", lambda spaces: "\\u0020" * len(spaces[0]), text)


@given(st.dictionaries(st.text(min_size=1).filter(lambda key: key == key.strip()), st.text()))
def test_what_is_written_is_read_back(mapping: dict[str, str]) -> None:
    """Any keys and values that are written as Java writes properties are read back."""
    printable = {
        key: value
        for key, value in mapping.items()
        if key.isprintable() and value.isprintable() and not value.endswith(" ") and not key.startswith("\\")
    }
    assert parse_properties(format_properties(printable)) == printable


def test_the_environment_follows_the_images_rule() -> None:
    """KAFKA_ goes, one underscore is a dot, two are an underscore, three a dash; JVM settings are no keys."""
    found = from_environment(
        {
            "KAFKA_BROKER_ID": "1",
            "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://h:1",
            "KAFKA_GAPLESS_PEER_ADDRESSES": "2@h:1",
            "KAFKA_A__B___C_D": "x",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "KAFKA_": "x",
            # what Kubernetes gives every container beside a service named kafka
            "KAFKA_PORT": "tcp://10.0.0.1:9092",
            "KAFKA_SERVICE_HOST": "10.0.0.1",
            "KAFKA_SERVICE_PORT": "9092",
            "KAFKA_SERVICE_PORT_CLIENTS": "9092",
            "KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
            "KAFKA_PORT_9092_TCP_PROTO": "tcp",
            "KAFKA_PORT_9092_TCP_PORT": "9092",
            "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
            "PATH": "/bin",
        }
    )
    assert found == {
        "broker.id": "1",
        "advertised.listeners": "PLAINTEXT://h:1",
        "gapless.peer.addresses": "2@h:1",
        "a_b-c.d": "x",
    }
    assert from_environment(
        {f"KAFKA_{name.upper().replace('.', '_')}": "1" for name in broker.BROKER_KEYS.keys}
    ) == dict.fromkeys(broker.BROKER_KEYS.keys, "1")
