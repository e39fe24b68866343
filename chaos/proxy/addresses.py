"""Splits, resolves and prints ``host:port`` like Go's ``net`` package, with its error messages.

See docs/reference/toxiproxy.md "Errors". One difference: without a host, the address is 127.0.0.1 instead of every
interface (docs/proxy.md). Opens no socket (``sockets``).
"""

from __future__ import annotations

from chaos.proxy import sockets

DEFAULT_HOST = "127.0.0.1"


class AddressError(Exception):
    """The address cannot be used. The message is Go's."""


def split(address: str) -> tuple[str, int]:
    """Host and port of ``host:port``, ``[v6]:port`` or ``:port``. Without them, "" and 0. Raises ``AddressError``."""
    if not address:
        return "", 0
    host, colon, port_text = address.rpartition(":")
    if host.startswith("[") and "]" in host:
        if not host.endswith("]"):
            raise AddressError(f"address {address}: missing port in address")
        host = host[1:-1]
    elif address.startswith("[") and address.endswith("]"):
        raise AddressError(f"address {address}: missing port in address")
    elif ":" in host:
        raise AddressError(f"address {address}: too many colons in address")
    elif not colon:
        raise AddressError(f"address {address}: missing port in address")
    if not port_text:
        return host, 0
    if not (port_text.isascii() and port_text.isdigit()):
        raise AddressError(f"lookup tcp/{port_text}: unknown port")
    if len(port_text) > 5 or int(port_text) > 65535:
        raise AddressError(f"address {port_text}: invalid port")
    return host, int(port_text)


def join(host: str, port: int) -> str:
    """``host:port``, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


async def resolve(address: str) -> tuple[str, int]:
    """The numeric host, and the port, of an address. Raises ``AddressError``."""
    host, port = split(address)
    if not host:
        return DEFAULT_HOST, port
    if sockets.is_numeric(host):
        return host, port
    try:
        return await sockets.resolve(host), port
    except (OSError, UnicodeError):
        raise AddressError(f"lookup {host}: no such host") from None
