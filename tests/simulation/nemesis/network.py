"""The network: what goes one way or both between two nodes is held, lost or slow."""

from __future__ import annotations

from tests.simulation.nemesis.base import Nemesis
from tests.simulation.nodes import CLIENT


async def _cut(nemesis: Nemesis, name: str, links: list[tuple[str, str]], *, lossy: bool) -> None:
    network = nemesis.world.network
    links = [link for link in links if not network.is_cut(*link)]
    nemesis.begin(name, " ".join("->".join(link) for link in links))
    for link in links:
        network.cut(*link, lossy=lossy)
    await nemesis.last(0.2, 1.0, 3.0, 6.0)
    nemesis.world.events.note("nemesis", f"heal {name} {' '.join('->'.join(link) for link in links)}")
    for link in links:
        network.heal(*link)


def _node(broker_id: int) -> str:
    return f"b{broker_id}"


async def cut(nemesis: Nemesis) -> None:
    """One direction between two brokers: what is sent is held."""
    await _cut(nemesis, "cut", [_pair(nemesis)], lossy=False)


async def cut_lossy(nemesis: Nemesis) -> None:
    """One direction between two brokers: what is sent is lost, and the connections end."""
    await _cut(nemesis, "cut-lossy", [_pair(nemesis)], lossy=True)


def _pair(nemesis: Nemesis) -> tuple[str, str]:
    source, destination = nemesis.random.sample(nemesis.world.broker_ids, 2)
    return _node(source), _node(destination)


async def cut_client(nemesis: Nemesis) -> None:
    """Between the clients and a broker, one direction: requests or answers are lost."""
    broker = _node(nemesis.leader() or nemesis.random.choice(nemesis.world.broker_ids))
    link = nemesis.random.choice([(CLIENT, broker), (broker, CLIENT)])
    await _cut(nemesis, "cut-client", [link], lossy=nemesis.random.random() < 0.7)


async def isolate(nemesis: Nemesis) -> None:
    """A broker and the others, both directions; clients still reach it."""
    broker_id = nemesis.leader() or nemesis.random.choice(nemesis.world.broker_ids)
    me = _node(broker_id)
    others = [_node(each) for each in nemesis.world.broker_ids if each != broker_id]
    links = [link for other in others for link in ((me, other), (other, me))]
    await _cut(nemesis, "isolate", links, lossy=nemesis.random.random() < 0.5)


async def slow_link(nemesis: Nemesis) -> None:
    """What goes one way between two nodes takes long, differently from connection to connection."""
    slow = nemesis.world.slow
    link = _pair(nemesis)
    if link in slow:
        return
    slow[link] = nemesis.random.choice((20.0, 100.0, 400.0))
    nemesis.begin("slow-link", f"{link[0]}->{link[1]} {slow[link]:g} ms")
    await nemesis.last(0.5, 2.0, 4.0)
    del slow[link]
