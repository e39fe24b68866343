"""The catalogue of workloads, and their files. Owns names and reading; the form is ``loadgen.workload``'s."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path

from loadgen.documents import DocumentError, kind_of, load_yaml, read_text
from loadgen.kinds import BANK, TRANSACTIONS
from loadgen.workload import DEFAULT_OUTSTANDING, UNLIMITED, Workload, WorkloadError

CATALOGUE: dict[str, Workload] = {
    each.name: each
    for each in (
        Workload("steady", "records of 200 B at a steady rate: 1,500 per second, or --rate"),
        Workload("small", "10,000 records of 100 B per second", rate=10_000, value_bytes=100),
        Workload("large", "20 records of 100 KB per second", rate=20, value_bytes=100_000),
        Workload(
            "mixed",
            "500 records per second of 48 B to 20 KB (lognormal), with 1,000 keys (zipf)",
            rate=500,
            value_bytes={"lognormal": {"median": 300, "sigma": 1.2, "least": 48, "most": 20_000}},
            keys={"zipf": {"keys": 1000, "exponent": 1.1}},
        ),
        Workload(
            "bursts",
            "500 records per second, and eight times as many in the last two of every ten seconds",
            rate=500,
            shape={"bursts": {"every_s": 10, "for_s": 2, "factor": 8}},
        ),
        Workload(
            "steps",
            "250 records per second, doubled every ten seconds up to 4,000",
            rate=250,
            shape={"steps": [[10, 1], [10, 2], [10, 4], [10, 8], [10, 16]]},
        ),
        Workload(
            "unlimited",
            "records of 200 B as fast as they are acknowledged, 500 unacknowledged per producer",
            rate=UNLIMITED,
            outstanding=DEFAULT_OUTSTANDING,
        ),
        Workload(
            "compressed",
            "2,000 records per second of 100 B to 1 KB in lz4 batches",
            rate=2000,
            value_bytes={"uniform": {"least": 100, "most": 1000}},
            compression="lz4",
        ),
        Workload(
            "crowded", "24 producers on 6 partitions, 50 records per second each", rate=1200, partitions=6, streams=24
        ),
        Workload(
            "transactions",
            "4 transactional producers: 12 records on 3 of 6 partitions in each transaction, a tenth of them aborted",
            rate=240,
            partitions=6,
            streams=12,
            kind=TRANSACTIONS,
            transactions={"partitions": 3, "records": 12, "aborts": 0.1},
        ),
        Workload(
            "zombies",
            "as transactions; in a fifth of them another producer takes over the id; records of one producer come late",
            rate=120,
            partitions=6,
            streams=12,
            kind=TRANSACTIONS,
            transactions={"partitions": 3, "records": 12, "aborts": 0.1, "zombies": 0.2, "late": 1},
        ),
        Workload(
            "slow-transactions",
            "as transactions, open for seconds: 3 records on 3 partitions; quick ones in three of every ten seconds",
            rate=3,
            shape={"bursts": {"every_s": 10, "for_s": 3, "factor": 16}},
            partitions=6,
            streams=12,
            kind=TRANSACTIONS,
            transactions={"partitions": 3, "records": 3, "aborts": 0.1},
        ),
        Workload(
            "rivals",
            "as transactions; two producers in two processes have the same transactional.id, and fence each other",
            rate=240,
            partitions=6,
            streams=12,
            kind=TRANSACTIONS,
            transactions={"partitions": 3, "records": 12, "aborts": 0.05, "rivals": 2},
        ),
        Workload(
            "bank",
            "6 transactional producers that transfer amounts between two accounts each, 4 transfers in a transaction",
            rate=192,
            partitions=6,
            streams=12,
            kind=BANK,
            transactions={"partitions": 2, "records": 8, "aborts": 0.2},
        ),
        Workload(
            "groups",
            "as steady, and six members of a consumer group read it, who come, leave and crash",
            members={"native": 3, "confluent": 3},
        ),
        Workload(
            "pipeline",
            "300 records per second, which six members of a consumer group write to another topic in transactions",
            rate=300,
            members={"native": 3, "confluent": 3, "transform": True},
        ),
    )
}


def find_workload(text: str) -> Workload:
    """The workload of that name in the catalogue, or of the YAML file at that path. Raises WorkloadError."""
    if text in CATALOGUE:
        return CATALOGUE[text]
    path = Path(text)
    if not path.exists():
        near = get_close_matches(text, CATALOGUE, n=1)
        hint = f"did you mean {near[0]!r}?" if near else "'gapless list workloads' shows all, or name an existing file"
        raise WorkloadError(f"unknown workload {text!r}; {hint}")
    return read_workload(path)


def read_workload(path: Path) -> Workload:
    """A workload's file. Raises WorkloadError."""
    try:
        document = load_yaml(read_text(path))
    except DocumentError as error:
        raise WorkloadError(f"workload {path}: {error}") from error
    known = {each.name for each in fields(Workload)} - {"name"}
    if not isinstance(document, dict):
        wanted = f"a workload is a mapping with some of {', '.join(sorted(known))}"
        raise WorkloadError(f"workload {path}: {kind_of(document)}; {wanted}")
    if unknown := [key for key in document if key not in known]:
        near = get_close_matches(str(unknown[0]), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}"
        raise WorkloadError(f"workload {path}: unknown field {unknown[0]!r}; {hint}")
    try:
        return Workload(name=path.stem, **document)
    except WorkloadError as error:
        # it is known by its name, and wrong in its file
        raise WorkloadError(str(error).replace(f"workload {path.stem}: ", f"workload {path}: ", 1)) from error
