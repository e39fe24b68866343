"""Changing a stored configuration: set, delete, append and subtract (KIP-339). Pure.

Owns what each operation makes of the stored texts. Does not own whether the outcome is legal (the tables' ``validate``)
nor where it is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from cluster.config.errors import ConfigError
from cluster.config.keys import KeyTable, KeyType


class AlterOperation(IntEnum):
    """``config_operation`` of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """One entry of a request."""

    name: str
    operation: int
    value: str | None


def altered(table: KeyTable, stored: Mapping[str, str], alterations: Iterable[Alteration]) -> dict[str, str]:
    """``stored`` after ``alterations``, each value as ``KeyTable.normal`` spells it.

    Raises ConfigError, also for what cannot be stored at all.
    """
    result = dict(stored)
    seen: set[str] = set()
    for name, number, value in alterations:
        key = table.key(name)
        if name in seen:
            raise ConfigError(f"{table.what} config key '{name}' is changed twice in one request")
        seen.add(name)
        try:
            operation = AlterOperation(number)
        except ValueError:
            raise ConfigError(f"unknown operation {number} on {table.what} config key '{name}'") from None
        if operation is AlterOperation.DELETE:
            result.pop(name, None)
            continue
        if value is None:
            raise ConfigError(f"{table.what} config key '{name}' cannot be null; delete it to return to the default")
        if operation is AlterOperation.SET:
            result[name] = key.text(key.parse(value, table.what))
            continue
        if key.kind is not KeyType.LIST:
            raise ConfigError(
                f"{table.what} config key '{name}' is not a list, so it cannot be appended to or subtracted from"
            )
        result[name] = _combined(operation, result.get(name, key.text(key.default)), value)
    return result


def replaced(table: KeyTable, alterations: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The whole configuration as AlterConfigs gives it: what is not named is not set anymore. Raises ConfigError."""
    return altered(table, {}, (Alteration(name, AlterOperation.SET, value) for name, value in alterations))


def _combined(operation: AlterOperation, stored: str, value: str) -> str:
    members = [part.strip() for part in stored.split(",") if part.strip()]
    given = [part.strip() for part in value.split(",") if part.strip()]
    if operation is AlterOperation.APPEND:
        return ",".join(dict.fromkeys((*members, *given)))
    gone = set(given)
    return ",".join(member for member in members if member not in gone)
