"""The forms a broker's configuration is written in: Java properties, and a container's environment.

Owns both readings, as pure functions of text and mapping. Reading the file is the caller's part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from cluster.config.errors import ConfigError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}

#: Variables that begin with KAFKA_ and are no broker keys in the images that users know.
NOT_KEYS = frozenset(
    {
        "KAFKA_HEAP_OPTS",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_VERSION",
    }
)

_PREFIX = "KAFKA_"
#: The variables that Kubernetes gives every container beside a service named ``kafka``; KAFKA_PORT is an address then.
_KUBERNETES = re.compile(r"KAFKA_SERVICE_(HOST|PORT(_\w+)?)|KAFKA_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?")


def parse_properties(text: str) -> dict[str, str]:
    """The pairs of a Java properties file: ``key=value``, ``#`` and ``!`` comments, ``\\`` at the end of a line.

    A later pair wins, as in Java. Raises ConfigError with the number of a line that has no ``=`` or ``:``.
    """
    found: dict[str, str] = {}
    pending, started = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.lstrip()
        if not pending:
            if not line or line[0] in "#!":
                continue
            started = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        key, value = _split(pending + line, started)
        found[key] = value
        pending = ""
    if pending:
        key, value = _split(pending, started)
        found[key] = value
    return found


def _split(line: str, number: int) -> tuple[str, str]:
    match = re.match(r"((?:[^\\=:\s]|\\.)+)\s*[=:]\s*(.*)\Z", line, re.DOTALL)
    if match is None:
        raise ConfigError(f"line {number} of the properties is not key=value: {line.strip()!r}")
    return _unescape(match[1]), _unescape(match[2]).rstrip()


def _unescape(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPES.get(escape, escape)

    return re.sub(r"\\(u[0-9a-fA-F]{4}|.)", one, text, flags=re.DOTALL)


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The broker keys in a container's environment, by the rule of Kafka's images.

    ``KAFKA_LOG_DIRS`` is ``log.dirs``: the prefix goes, the rest in lower case; ``___`` is ``-``, ``__`` is ``_``,
    ``_`` is ``.``. ``KAFKA_HEAP_OPTS`` and the like are no keys. Our own keys follow the same rule
    (``KAFKA_GAPLESS_PEER_ADDRESSES``). What Kubernetes sets for a service named ``kafka`` is not one either.
    """
    return {key_of(name): value for name, value in environment.items() if _is_key(name, value)}


def key_of(name: str) -> str:
    """The broker key that a variable of that name sets."""
    rest = name.removeprefix(_PREFIX).lower()
    return re.sub(r"_{1,3}", lambda match: {1: ".", 2: "_", 3: "-"}[len(match[0])], rest)


def _is_key(name: str, value: str) -> bool:
    if not name.startswith(_PREFIX) or name in NOT_KEYS or len(name) == len(_PREFIX):
        return False
    return _KUBERNETES.fullmatch(name) is None and not (name == "KAFKA_PORT" and "://" in value)
