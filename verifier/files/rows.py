"""What the rules say about every replica's files, as Arrow rows: what Spark is handed. Owns the columns, no judgment.

One row per finding (``verifier.files.model.Finding``), and one per replica, whose ``check`` is null, with its stop
(``clean``) and the number of its files in ``places``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from verifier.files.replica import ReplicaDirectory, check, is_clean

#: Name and type of every column, in Spark's words; Arrow's follow from them.
COLUMNS = {
    "run": "string",
    "broker": "int",
    "topic": "string",
    "partition": "int",
    "clean": "boolean",
    "check": "string",
    "cause": "string",
    "file": "string",
    "offset": "bigint",
    "places": "bigint",
    "problem": "string",
}
_ARROW: dict[str, pa.DataType] = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
}
SCHEMA = pa.schema([pa.field(name, _ARROW[kind]) for name, kind in COLUMNS.items()])


def read_replica(replica: ReplicaDirectory) -> pa.RecordBatch:
    """The rows of one replica. Raises ``OSError``."""
    whose: dict[str, Any] = {
        "run": replica.run,
        "broker": replica.broker,
        "topic": replica.topic,
        "partition": replica.partition,
        "clean": is_clean(replica),
    }
    rows: list[dict[str, Any]] = [whose | found._asdict() for found in check(replica)]
    rows.append(whose | {"places": sum(1 for _ in Path(replica.path).iterdir())})
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)
