"""How much one server keeps for its clients, where Toxiproxy has no bound (docs/proxy.md). Pure.

All of it is in one answer to GET /proxies, and links share the loop that makes that answer.
"""

from __future__ import annotations

from collections.abc import Iterable

from chaos.proxy import errors

#: Links of a hundred brokers to each other and to their clients are about half as many.
MAX_PROXIES = 20_000
#: On all proxies together.
MAX_TOXICS = 2_000
#: Of a proxy or a toxic.
MAX_NAME_CHARS = 255
#: ``listen`` or ``upstream``: the longest name of a host has 253.
MAX_ADDRESS_CHARS = 300
#: Of all names and addresses of proxies together.
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
    """Raise ``ApiError`` 413 if there is no room for one more beside those of all proxies."""
    if sum(numbers) >= MAX_TOXICS:
        raise errors.too_many("toxics", MAX_TOXICS)


class ProxyTexts:
    """Counts proxies, and the characters of their names and addresses."""

    def __init__(self) -> None:
        self._chars: dict[str, int] = {}
        self._total = 0

    def __repr__(self) -> str:
        return f"ProxyTexts({len(self._chars)} proxies, {self._total} characters)"

    def set(self, name: str, *addresses: str) -> None:
        """This proxy is kept with these addresses from now on. Raises ``ApiError`` 413, and changes nothing."""
        chars = len(name) + sum(map(len, addresses))
        total = self._total - self._chars.get(name, 0) + chars
        if name not in self._chars and len(self._chars) >= MAX_PROXIES:
            raise errors.too_many("proxies", MAX_PROXIES)
        if total > MAX_TEXT_CHARS:
            raise errors.too_many("characters in the names and addresses of proxies", MAX_TEXT_CHARS)
        self._chars[name], self._total = chars, total

    def forget(self, name: str) -> None:
        """This proxy is gone."""
        self._total -= self._chars.pop(name, 0)
