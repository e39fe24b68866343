"""docs/observability/dashboard.json: well formed, and every metric that it shows is one that a broker has."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from cluster.broker.long_turns import LongTurns
from cluster.broker.main import _open_metrics
from cluster.broker.metrics import LoopLag
from tests.cluster.broker.scenes import TOPIC, with_topic
from tests.simulation.client import Client, batch
from tests.simulation.nodes import MemoryCluster

ROOT = Path(__file__).resolve().parents[3]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs" / "observability" / "dashboard.json").read_text())
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]


def read(port: int) -> str:
    """The page of metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def exposed() -> dict[str, set[str]]:
    """Samples of a broker that served, as it shows them itself: name to its labels."""
    found: dict[str, set[str]] = {}

    async def check(cluster: MemoryCluster, client: Client) -> None:
        await client.produce(TOPIC, batch(b"a"))
        await client.produce("unknown", batch(b"a"))
        (node,) = cluster.nodes.values()
        lag = LoopLag(asyncio.get_running_loop())
        config = {"gapless.metrics.port": 0, "gapless.metrics.host": "127.0.0.1", "gapless.metrics.max.partitions": 9}
        server = _open_metrics(node, config, lag, LongTurns())  # type: ignore[arg-type]
        assert server is not None
        try:
            text = read(server.port)
        finally:
            server.close()
            lag.close()
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)

    with_topic(check)
    return found


def test_every_metric_of_the_dashboard_is_exposed() -> None:
    """By its whole name, with each label that an expression groups by or asks for; those of Prometheus are its own."""
    samples = exposed()
    assert len(EXPRESSIONS) > 20
    for expression in EXPRESSIONS:
        names = re.findall(r"gapless_\w+", expression)
        assert names
        assert [name for name in names if name not in samples] == [], expression
        groups = re.findall(r"by \(([^)]*)\)", expression)
        asked = {label.strip() for group in groups for label in group.split(",")}
        asked |= set(re.findall(r"(\w+)=", expression))
        labels = {label for name in names for label in samples[name]}
        assert asked - {"job", "instance"} <= labels, expression
    rated = {name for expression in EXPRESSIONS for name in re.findall(r"rate\((gapless_\w+)", expression)}
    assert all(name.endswith(("_total", "_bucket")) for name in rated)


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    """Panels have ids of their own and do not lie on each other; every one asks the source that a person chose."""
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) == 23
    shown = [panel for panel in panels if panel["type"] != "row"]
    assert all(panel["datasource"]["uid"] == "${datasource}" and panel["targets"] for panel in shown)
    assert {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"datasource", "job"}
    assert all("$job" in expression for expression in EXPRESSIONS)


def test_the_page_of_metrics_names_the_files() -> None:
    """docs/metrics.md names every file of docs/observability."""
    page = (ROOT / "docs" / "metrics.md").read_text()
    names = [path.name for path in (ROOT / "docs" / "observability").iterdir()]
    assert [name for name in names if f"observability/{name}" not in page] == []
