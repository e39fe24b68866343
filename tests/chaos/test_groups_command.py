"""``gapless groups``: where offsets are moved to, and what is shown of a group.

What it asks of a cluster is tested with one (``tests/integration/test_native_groups.py``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer import Exit

from chaos.commands import cluster_admin, groups
from chaos.commands.group_offsets import GroupOffsetRow, offset_rows, parse_target, target_offsets
from chaos.commands.main import run_command
from chaos.exits import BadRequest
from cluster.client import AdminError
from cluster.client.committed_offset import OffsetAndMetadata
from cluster.client.group_descriptions import DescribedGroup, DescribedMember, ListedGroup
from cluster.client.offset_listing import EARLIEST_TIMESTAMP
from cluster.protocol.errors import ErrorCode

KEY = ("t", 0)
COMMITTED = {KEY: OffsetAndMetadata(20)}


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("earliest", 10),
        ("latest", 30),
        ("25", 25),
        ("5", 10),
        ("99", 30),
        ("-3", 17),
        ("+3", 23),
        ("-50", 10),
        ("+50", 30),
    ],
)
def test_an_offset_is_moved_within_its_log(text: str, moved: int) -> None:
    """To an end, to a number, or by a distance; what lies outside is moved to the nearest end."""
    assert target_offsets(parse_target(text), [KEY], COMMITTED, {KEY: 10}, {KEY: 30}) == {KEY: moved}


def test_what_cannot_be_moved_is_refused() -> None:
    """A shift without a committed offset, a deleted partition, and an invalid target."""
    with pytest.raises(BadRequest, match="committed nothing for t-1"):
        target_offsets(parse_target("+1"), [("t", 1)], COMMITTED, {("t", 1): 0}, {("t", 1): 9})
    with pytest.raises(BadRequest, match="t-0 does not exist"):
        target_offsets(parse_target("latest"), [KEY], COMMITTED, {}, {})
    for text in ("", "end", "1.5", "--1", "9" * 30):
        with pytest.raises(BadRequest, match="earliest, latest"):
            parse_target(text)


def test_a_row_for_each_partition_and_each_idle_member() -> None:
    """Partitions with an offset, a reader or both; what is not known is left open."""
    reader = DescribedMember("m1", None, "c1", "/h1", (KEY, ("t", 1)))
    idle = DescribedMember("m2", None, "c2", "/h2", ())
    group = DescribedGroup("g", "Stable", "consumer", "range", 1, (reader, idle))
    gone = {("gone", 0): OffsetAndMetadata(4)}
    assert offset_rows(group, {**COMMITTED, **gone}, {KEY: 25, ("t", 1): 7}) == [
        GroupOffsetRow("gone", 0, 4),
        GroupOffsetRow("t", 0, 20, 25, 5, "m1", "c1", "/h1"),
        GroupOffsetRow("t", 1, None, 7, None, "m1", "c1", "/h1"),
        GroupOffsetRow(member="m2", client="c2", host="/h2"),
    ]


def test_a_cluster_that_does_not_answer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """One line names the address and the option that says it, and the status is 1. A refusal has no such words."""
    monkeypatch.setattr(cluster_admin, "TIMEOUT_MS", 300)
    for command in (["groups", "list"], ["transactions", "list"]):
        assert run_command([*command, "--bootstrap-server", "127.0.0.1:1"]) == 1
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err.endswith("; are the brokers of --bootstrap-server 127.0.0.1:1 up?\n")
    with pytest.raises(Exit) as refused, cluster_admin.admin_of("127.0.0.1:1", Path()):
        raise AdminError(ErrorCode.NON_EMPTY_GROUP, "g")
    assert (refused.value.exit_code, capsys.readouterr().err) == (1, "gapless: NON_EMPTY_GROUP: g\n")


class _Groups:
    """An admin that knows these groups; the first letter of what has members is an upper one."""

    def __init__(self, known: Collection[str]) -> None:
        self.left = set(known)

    def delete_groups(self, group_ids: Sequence[str]) -> None:
        [group_id] = group_ids
        if group_id not in self.left:
            raise AdminError(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} is not deleted")
        if group_id[0].isupper():
            raise AdminError(ErrorCode.NON_EMPTY_GROUP, f"group {group_id} is not deleted")
        self.left.remove(group_id)

    def list_group_offsets(self, group_id: str) -> dict[tuple[str, int], OffsetAndMetadata]:
        return COMMITTED if group_id in self.left - {"a"} else {}

    listed: Sequence[ListedGroup] = ()

    def list_groups(self, _states: Sequence[str]) -> Sequence[ListedGroup]:
        return self.listed

    def describe_groups(self, group_ids: Sequence[str]) -> dict[str, DescribedGroup]:
        [group_id] = group_ids
        state = "Empty" if group_id in self.left else "Dead"
        member = DescribedMember("m", None, "c", "/h", (KEY,))
        return {group_id: DescribedGroup(group_id, state, "consumer", "", 1, (member,) * group_id[0].isupper())}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> _Groups:
    """What the cluster has: two groups without members, and one that is active."""
    admin = _Groups({"a", "b", "Active"})

    @contextmanager
    def admin_of(_servers: str | None, _data: Path, _reason: object) -> Iterator[_Groups]:
        yield admin

    monkeypatch.setattr(groups, "admin_of", admin_of)
    monkeypatch.setattr(
        groups, "_offsets_at", lambda _admin, _wanted, at: {KEY: 10 if at == EARLIEST_TIMESTAMP else 30}
    )
    return admin


def test_groups_are_listed_as_kafkas_tool_does(known: _Groups, capsys: pytest.CaptureFixture[str]) -> None:
    """Its columns in its order: the type is of the group's protocol (KIP-848), not what its members are."""
    known.listed = [ListedGroup("a", "consumer", "Stable", "Classic"), ListedGroup("old", "connect", "")]
    assert run_command(["groups", "list"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["GROUP", "TYPE", "STATE"], ["a", "Classic", "Stable"], ["old", "Unknown", "Unknown"],
    ]  # fmt: skip
    assert run_command(["groups", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["a"] == {
        "group_id": "a", "protocol_type": "consumer", "state": "Stable", "group_type": "Classic"
    }  # fmt: skip


def test_every_group_that_can_be_deleted_is(known: _Groups, capsys: pytest.CaptureFixture[str]) -> None:
    """One that is refused does not keep those after it; each has a line, and the status is 1."""
    assert run_command(["groups", "delete", "a", "nosuch", "Active", "b"]) == 1
    out, err = capsys.readouterr()
    assert (known.left, out) == ({"Active"}, "deleted a\ndeleted b\n")
    first, second = err.splitlines()
    assert "nosuch" in first and "'gapless groups list' shows all" in first
    assert "Active" in second and "stop its consumers first" in second


def test_a_group_without_offsets_is_not_one_that_does_not_exist(
    known: _Groups, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both have nothing to move: the former needs a topic (254), the latter is unknown (1)."""
    assert run_command(["groups", "reset-offsets", "a", "--to", "latest"]) == 254
    assert "a has committed nothing; name a topic with --topic" in capsys.readouterr().err
    assert run_command(["groups", "reset-offsets", "nosuch", "--to", "latest"]) == 1
    err = capsys.readouterr().err
    assert err == "gapless: there is no group nosuch; 'gapless groups list' shows all, and --topic starts a new one\n"


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("group", "to", "said"),
    [
        ("b", "99", ["t-0: 99 is outside of the log (10 to 30)"]),
        ("b", "-50", ["t-0: -30 is outside of the log (10 to 30)"]),
        *[("b", to, []) for to in ("10", "30", "+10", "latest")],
        ("Active", "latest", []),
    ],
)
def test_what_a_dry_run_says(group: str, to: str, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """That an offset is not the one that was asked for, and that a group with members has to stop first."""
    assert run_command(["groups", "reset-offsets", group, "--to", to]) == 0
    first = " once the group's consumers have stopped" if group == "Active" else ""
    last = f"nothing was moved; repeat the command with --execute{first}"
    assert capsys.readouterr().err.splitlines() == [*said, last]
