"""All proxies of the server, by name: create, update, delete, populate, reset.

Changes run one after the other, like under Toxiproxy's lock. Owns Toxiproxy's rules about which proxy is kept, replaced
or restarted (docs/reference/toxiproxy.md "Proxies"). Does not own HTTP (``api``).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from chaos.proxy import addresses, bounds, errors, go_json
from chaos.proxy.proxy import Proxy
from chaos.proxy.request_body import decoded, read_struct
from chaos.proxy.toxic import Toxic, parse_toxic

_PROXY_FIELDS: dict[str, go_json.GoKind] = {
    "name": "string",
    "listen": "string",
    "upstream": "string",
    "enabled": "bool",
}
_POPULATE_TYPE = '[]struct { toxiproxy.Proxy; Enabled *bool "json:\\"enabled\\"" }'


@dataclass(frozen=True, slots=True)
class ProxyInput:
    """The body of a request about a proxy. A field that was not given is None."""

    name: str | None
    listen: str | None
    upstream: str | None
    enabled: bool | None


class PopulateError(Exception):
    """A populate failed. ``done`` has the proxies that were finished before."""

    def __init__(self, cause: errors.ApiError, done: list[Proxy]) -> None:
        super().__init__(cause.message)
        self.cause = cause
        self.done = done


class Registry:
    """The proxies of one server."""

    def __init__(self, seed: int, dial_timeout_ms: int) -> None:
        self.seed = seed
        self._dial_timeout_ms = dial_timeout_ms
        self._proxies: dict[str, Proxy] = {}
        self._texts = bounds.ProxyTexts()
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        return f"Registry({len(self._proxies)} proxies, seed {self.seed})"

    def all(self) -> list[Proxy]:
        """All proxies, sorted by name."""
        return [self._proxies[name] for name in sorted(self._proxies)]

    def get(self, name: str) -> Proxy:
        """The proxy with this name. Raises ``ApiError`` 404."""
        try:
            return self._proxies[name]
        except KeyError:
            raise errors.proxy_not_found() from None

    async def create(self, body: bytes) -> Proxy:
        """Create a proxy and start it, unless the body disables it. Raises ``ApiError``.

        A proxy that cannot listen is not registered.
        """
        given = _read_proxy(decoded(body))
        _check_required(given)
        async with self._changing:
            if given.name in self._proxies:
                raise errors.proxy_exists()
            proxy = self._new_proxy(given)
            await self._keep(proxy, enabled=given.enabled is not False)
        return proxy

    async def update(self, name: str, body: bytes) -> Proxy:
        """Change ``listen``, ``upstream`` and ``enabled``. A change of the first two closes all connections.

        If the proxy cannot listen on the new address, it keeps that address and is disabled. Raises ``ApiError``.
        """
        async with self._changing:
            proxy = self.get(name)
            given = _read_proxy(decoded(body))
            listen = proxy.listen if given.listen is None else given.listen
            upstream = proxy.upstream if given.upstream is None else given.upstream
            bounds.check_address("listen", given.listen)
            bounds.check_address("upstream", given.upstream)
            self._texts.set(name, listen, upstream)
            enabled = proxy.enabled if given.enabled is None else given.enabled
            if await _resolved(listen) != proxy.listen:
                await proxy.stop(keep_port=False)
                proxy.listen = listen
            if upstream != proxy.upstream:
                await proxy.change_upstream(upstream)
            if enabled:
                await proxy.start()
            else:
                await proxy.stop(keep_port=True)
        return proxy

    async def delete(self, name: str) -> None:
        async with self._changing:
            proxy = self.get(name)
            del self._proxies[name]
            self._texts.forget(name)
            await proxy.stop(keep_port=False)

    async def populate(self, body: bytes) -> list[Proxy]:
        """Create the proxies of a list. Raises ``PopulateError``.

        Checks the whole list first. Leaves a proxy with the same addresses unchanged, replaces one with other
        addresses, and does not touch proxies that are not in the list.
        """
        try:
            value = decoded(body)
            inputs = _read_list(value)
        except errors.ApiError as error:
            raise PopulateError(error, []) from None
        done: list[Proxy] = []
        async with self._changing:
            for given in inputs:
                # let links run between two proxies
                await asyncio.sleep(0)
                try:
                    done.append(await self._add_or_replace(given))
                except errors.ApiError as error:
                    raise PopulateError(error, done) from None
        return done

    async def reset(self) -> None:
        """Start every proxy and remove all toxics. Stops with ``ApiError`` at the first proxy that cannot listen."""
        async with self._changing:
            for proxy in self.all():
                await proxy.start()
                proxy.remove_all_toxics()

    async def close(self) -> None:
        """Stop and forget all proxies, when the server stops."""
        async with self._changing:
            for proxy in self.all():
                await proxy.stop(keep_port=False)
                self._texts.forget(proxy.name)
            self._proxies.clear()

    # --- toxics

    async def add_toxic(self, name: str, body: bytes) -> Toxic:
        async with self._changing:
            proxy = self.get(name)
            given = parse_toxic(body)
            if any(toxic.name == given.name for toxic in proxy.all_toxics()):
                raise errors.toxic_exists()
            bounds.check_name(given.name)
            bounds.check_toxics(len(each.all_toxics()) for each in self._proxies.values())
            toxic = given.build()
            proxy.add_toxic(toxic)
        return toxic

    async def update_toxic(self, name: str, toxic_name: str, body: bytes) -> Toxic:
        async with self._changing:
            proxy = self.get(name)
            toxic = proxy.toxic(toxic_name)
            toxic.update(body)
            proxy.toxic_updated(toxic)
        return toxic

    async def remove_toxic(self, name: str, toxic_name: str) -> None:
        async with self._changing:
            proxy = self.get(name)
            proxy.remove_toxic(proxy.toxic(toxic_name))

    # --- under the lock

    def _new_proxy(self, given: ProxyInput) -> Proxy:
        return Proxy(given.name or "", given.listen or "", given.upstream or "", self.seed, self._dial_timeout_ms)

    async def _add_or_replace(self, given: ProxyInput) -> Proxy:
        proxy = self._new_proxy(given)
        existing = self._proxies.get(proxy.name)
        if existing is not None:
            if await _resolved(proxy.listen) == existing.listen and proxy.upstream == existing.upstream:
                return existing
            await existing.stop(keep_port=False)
        await self._keep(proxy, enabled=given.enabled is not False)
        return proxy

    async def _keep(self, proxy: Proxy, *, enabled: bool) -> None:
        """Start a proxy if ``enabled``, and register it, possibly in place of another. Raises ``ApiError``."""
        self._texts.set(proxy.name, proxy.listen, proxy.upstream)
        try:
            if enabled:
                await proxy.start()
        except errors.ApiError:
            if proxy.name not in self._proxies:
                self._texts.forget(proxy.name)
            raise
        self._proxies[proxy.name] = proxy


def _read_proxy(value: go_json.Json) -> ProxyInput:
    found = read_struct(value, "Proxy", _PROXY_FIELDS, package="toxiproxy.")
    texts = {name: go_json.text(found[name]) for name in ("name", "listen", "upstream") if name in found}
    enabled = bool(found["enabled"]) if "enabled" in found else None
    return ProxyInput(texts.get("name"), texts.get("listen"), texts.get("upstream"), enabled)


def _read_list(value: go_json.Json) -> list[ProxyInput]:
    if value is None:
        return []
    if not isinstance(value, list):
        kind = go_json.type_name(value)
        raise errors.bad_request_body(f"json: cannot unmarshal {kind} into Go value of type {_POPULATE_TYPE}")
    inputs = [_read_proxy(item) for item in value]
    for position, given in enumerate(inputs, start=1):
        _check_required(given, f" at proxy {position}")
    return inputs


def _check_required(given: ProxyInput, where: str = "") -> None:
    if not given.name:
        raise errors.missing_field(f"name{where}")
    if not given.upstream:
        raise errors.missing_field(f"upstream{where}")
    if "/" in given.name:
        raise errors.invalid(f"name was invalid, must not contain a slash{where}")
    bounds.check_name(given.name, where)
    bounds.check_address("listen", given.listen, where)
    bounds.check_address("upstream", given.upstream, where)


async def _resolved(listen: str) -> str:
    try:
        return addresses.join(*await addresses.resolve(listen))
    except addresses.AddressError as error:
        raise errors.system_error(str(error)) from None
