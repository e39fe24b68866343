"""Limits on how much the server keeps for its clients. Toxiproxy has none (docs/proxy.md). Pure.

GET /proxies returns all of it in one answer, and the event loop that encodes the answer also serves the links. Owns the
limits. Does not own the proxies (``registry``).
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.proxy import errors

#: A hundred brokers have about half as many links to each other and to their clients.
MAX_PROXIES = 20_000
#: The limit for all proxies together.
MAX_TOXICS = 2_000
#: The limit for the name of a proxy or a toxic.
MAX_NAME_CHARS = 255
#: The limit for ``listen`` or ``upstream``. The longest host name has 253 characters.
MAX_ADDRESS_CHARS = 300
#: The limit for the names and addresses of all proxies together.
MAX_TEXT_CHARS = 2_000_000


def check_name(name: str, where: str = "") -> None:
    """Raise ``ApiError`` 400 for the name of a proxy or a toxic that is too long."""
    if len(name) > MAX_NAME_CHARS:
        raise errors.invalid(f"name was invalid, must not have more than {MAX_NAME_CHARS} characters{where}")


def check_address(field: str, address: str | None, where: str = "") -> None:
    """Raise ``ApiError`` 400 for a ``listen`` or ``upstream`` that is too long."""
    if address is not None and len(address) > MAX_ADDRESS_CHARS:
        raise errors.invalid(f"{field} was invalid, must not have more than {MAX_ADDRESS_CHARS} characters{where}")


def check_toxics(numbers: Iterable[int]) -> None:
    """Raise ``ApiError`` 413 if no further toxic may be added. ``numbers`` has the number of toxics of each proxy."""
    if sum(numbers) >= MAX_TOXICS:
        raise errors.too_many("toxics", MAX_TOXICS)


class ProxyTexts:
    """Counts the proxies, and the characters of their names and addresses."""

    def __init__(self) -> None:
        self._chars: dict[str, int] = {}
        self._total = 0

    def __repr__(self) -> str:
        return f"ProxyTexts({len(self._chars)} proxies, {self._total} characters)"

    def set(self, name: str, *addresses: str) -> None:
        """Count this proxy with these addresses. Raises ``ApiError`` 413, and then changes nothing."""
        chars = len(name) + sum(map(len, addresses))
        total = self._total - self._chars.get(name, 0) + chars
        if name not in self._chars and len(self._chars) >= MAX_PROXIES:
            raise errors.too_many("proxies", MAX_PROXIES)
        if total > MAX_TEXT_CHARS:
            raise errors.too_many("characters in the names and addresses of proxies", MAX_TEXT_CHARS)
        self._chars[name], self._total = chars, total

    def forget(self, name: str) -> None:
        """Stop counting this proxy."""
        self._total -= self._chars.pop(name, 0)
