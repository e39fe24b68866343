"""Checks ``--host`` of a standalone load, which must be bootstrap servers, and not a URL as in Locust. Pure."""

from __future__ import annotations

import re

from loadgen.settings import SettingsError

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+._-]*)://")
#: Kafka's name for a listener without encryption, which librdkafka accepts before an address.
_PLAIN = "PLAINTEXT"


def checked_host(host: str) -> str:
    """The bootstrap servers. Raises ``SettingsError``, which shows the right form, if there are none, or for a URL."""
    if not host.strip():
        raise SettingsError("no cluster given: pass --host HOST:PORT (the bootstrap server)")
    schemes = [match["scheme"] for match in _SCHEME.finditer(host) if match["scheme"].upper() != _PLAIN]
    if schemes or "/" in _SCHEME.sub("", host):
        raise SettingsError(
            f"--host {host}: takes bootstrap servers, HOST:PORT[,HOST:PORT], not a URL; here: --host {_meant(host)}"
        )
    return host


def _meant(host: str) -> str:
    servers = [_SCHEME.sub("", each.strip()).partition("/")[0] for each in host.split(",")]
    return ",".join(each if re.search(r":\d+$", each) else f"{each}:9092" for each in servers)
