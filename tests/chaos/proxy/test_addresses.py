"""Addresses as Go's net package reads them."""

from __future__ import annotations

import asyncio

import pytest

from chaos.proxy import addresses


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("127.0.0.1:80", "127.0.0.1", 80),
        ("localhost:0", "localhost", 0),
        (":81", "", 81),
        ("", "", 0),
        ("[::1]:82", "::1", 82),
        ("host:", "host", 0),
    ],
)
def test_split(address: str, host: str, port: int) -> None:
    """Host and port, either left out."""
    assert addresses.split(address) == (host, port)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("nonsense", "address nonsense: missing port in address"),
        ("127.0.0.1:99999", "address 99999: invalid port"),
        ("::1:80", "address ::1:80: too many colons in address"),
        ("[::1]", "address [::1]: missing port in address"),
        ("a:b", "lookup tcp/b: unknown port"),
        ("a:-1", "lookup tcp/-1: unknown port"),
    ],
)
def test_errors(address: str, text: str) -> None:
    """A bad address is refused with the text that Go has for it."""
    with pytest.raises(addresses.AddressError) as caught:
        addresses.split(address)
    assert str(caught.value) == text


def test_resolve_prefers_ipv4_and_defaults_to_loopback() -> None:
    """Names become numbers, IPv4 first; no host is the loopback address."""

    async def resolve_all() -> list[tuple[str, int]]:
        return [await addresses.resolve(address) for address in ("localhost:5", ":5", "[::1]:5", "10.0.0.1:5")]

    assert asyncio.run(resolve_all()) == [("127.0.0.1", 5), ("127.0.0.1", 5), ("::1", 5), ("10.0.0.1", 5)]
    assert addresses.join("::1", 5) == "[::1]:5"
