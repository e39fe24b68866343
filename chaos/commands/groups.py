"""``gapless groups``: list, describe and delete consumer groups, and move where they continue.

Owns options and output, which resemble those of Kafka's kafka-consumer-groups. Does not own the requests
(``cluster.client.Admin``), or which offsets a reset computes (``chaos.commands.group_offsets``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from chaos.commands.cluster_admin import JsonOption, ServerOption, admin_of, print_table, sendable, status_with_missing
from chaos.commands.group_offsets import GroupOffsetRow, offset_rows, outside_lines, parse_target, target_offsets
from chaos.commands.up_state import DATA, Data
from chaos.exits import BadRequest, BadUsage, Exit
from cluster.client import Admin, AdminError
from cluster.client.group_descriptions import DescribedGroup
from cluster.client.offset_listing import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cluster.coordinator.group.states import GroupState
from cluster.process.one_line import printable
from cluster.protocol.errors import ErrorCode
from cluster.topic_partition import TopicPartition

#: The state of a group that does not exist.
NONE = GroupState.DEAD.value
LIST_HEADS = ("group", "type", "state")
#: A state or type that the broker is too old to report.
UNKNOWN = "Unknown"
#: The states of groups on gapless's brokers, and those that only groups with Kafka's newer protocols have.
STATES = frozenset({*(each.value for each in GroupState), "Assigning", "Reconciling", "NotReady"})

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="ID of the group.")]
Groups = Annotated[list[str], typer.Argument(metavar="GROUP...", help="IDs of the groups.")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    groups = typer.Typer(
        invoke_without_command=True, help="List, describe and delete consumer groups, and reset their offsets."
    )
    groups.callback()(_chosen)
    groups.command("list", help="List the groups of a cluster, their types and their states.")(list_groups)
    groups.command("describe", help="Show members, committed offsets and lag of groups.")(describe)
    groups.command(
        "reset-offsets", help="Move where a group without members continues. Shows the offsets; --execute moves them."
    )(reset_offsets)
    groups.command("delete", help="Delete groups without members, and their offsets.")(delete)
    app.add_typer(groups, name="groups")


def _chosen(context: typer.Context) -> None:
    """List, describe and delete consumer groups, and reset their offsets."""
    if context.invoked_subcommand is None:
        raise BadUsage("groups: say what to do: list, describe, reset-offsets or delete")


def list_groups(
    state: Annotated[
        list[str] | None, typer.Option(help="Only groups in this state, such as Stable; repeatable.")
    ] = None,
    bootstrap_server: ServerOption = None,
    data: Data = DATA,
    as_json: JsonOption = False,
) -> int:
    """Print one line for each group."""
    if unknown := sorted(set(state or ()) - STATES):
        raise BadRequest(f"--state {unknown[0]}: no group has this state; there are {', '.join(sorted(STATES))}")
    with admin_of(bootstrap_server, data, _reason) as admin:
        found = admin.list_groups(state or [])
    if as_json:
        print(json.dumps({each.group_id: asdict(each) for each in found}, indent=2))
    else:
        rows = [(each.group_id, each.group_type or UNKNOWN, each.state or UNKNOWN) for each in found]
        print_table(LIST_HEADS, rows)
    return int(Exit.VALID)


def describe(
    group: Groups, bootstrap_server: ServerOption = None, data: Data = DATA, as_json: JsonOption = False
) -> int:
    """Print each group, and a line for each of its partitions. Exit status 1 if one does not exist."""
    told: dict[str, Any] = {}
    missing = []
    with admin_of(bootstrap_server, data, _reason) as admin, sendable("GROUP"):
        for group_id, described in admin.describe_groups(group).items():
            committed = admin.list_group_offsets(group_id)
            if described.state == NONE and not committed:
                missing.append(group_id)
                continue
            ends = _offsets_at(admin, {*committed, *_assigned(described)}, LATEST_TIMESTAMP)
            rows = offset_rows(described, committed, ends)
            told[group_id] = {**asdict(described), "offsets": [row._asdict() for row in rows]}
            if not as_json:
                print(printable(_headline(described)))
                print_table(GroupOffsetRow._fields, rows)
    if as_json:
        print(json.dumps(told, indent=2))
    return status_with_missing("group", missing, "groups list")


def reset_offsets(
    group: GroupArgument,
    to: Annotated[
        str, typer.Option(metavar="TARGET", help="earliest, latest, an offset, or +N or -N from the current one.")
    ],
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[:0,1]",
            help="Topic, or some of its partitions; repeatable. [dim]default: all committed[/dim]",
        ),
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Move the offsets instead of only showing them.")] = False,
    bootstrap_server: ServerOption = None,
    data: Data = DATA,
    as_json: JsonOption = False,
) -> int:
    """Print where each partition continues now and then."""
    target = parse_target(to)
    with admin_of(bootstrap_server, data, _reason) as admin:
        with sendable("GROUP"):
            committed = admin.list_group_offsets(group)
        described = admin.describe_groups([group])[group]
        wanted = _wanted(admin, topic, committed)
        if not wanted:
            if described.state == NONE:
                listed = "'gapless groups list' shows all, and --topic starts a new one"
                print(printable(f"gapless: there is no group {group}; {listed}"), file=sys.stderr)
                return int(Exit.INVALID)
            raise BadRequest(f"group {group} has committed nothing; name a topic with --topic")
        first = _offsets_at(admin, wanted, EARLIEST_TIMESTAMP)
        last = _offsets_at(admin, wanted, LATEST_TIMESTAMP)
        moved = target_offsets(target, wanted, committed, first, last)
        if execute:
            admin.alter_group_offsets(group, moved)
    rows = [
        {
            "topic": key[0],
            "partition": key[1],
            "committed": committed[key].offset if key in committed else None,
            "new": new,
        }
        for key, new in sorted(moved.items())
    ]
    if as_json:
        print(json.dumps({"executed": execute, "offsets": rows}, indent=2))
    else:
        print_table(rows[0], [row.values() for row in rows])
    for line in outside_lines(target, moved, committed, first, last):
        print(printable(line), file=sys.stderr)
    if not execute:
        once = " once the group's consumers have stopped" if described.members else ""
        print(f"nothing was moved; repeat the command with --execute{once}", file=sys.stderr)
    return int(Exit.VALID)


def delete(group: Groups, bootstrap_server: ServerOption = None, data: Data = DATA) -> int:
    """Print what was deleted. Exit status 1 if a group was not."""
    status = Exit.VALID
    with admin_of(bootstrap_server, data, _reason) as admin, sendable("GROUP"):
        for group_id in group:
            try:
                admin.delete_groups([group_id])
            except AdminError as error:
                print(printable(f"gapless: {_reason(error)}"), file=sys.stderr)
                status = Exit.INVALID
            else:
                print(printable(f"deleted {group_id}"))
    return int(status)


def _reason(error: AdminError | TimeoutError) -> str:
    code = error.error_code if isinstance(error, AdminError) else ErrorCode.NONE
    if code in (ErrorCode.NON_EMPTY_GROUP, ErrorCode.UNKNOWN_MEMBER_ID):
        return f"{error}: the group has members; stop its consumers first"
    if code is ErrorCode.GROUP_ID_NOT_FOUND:
        return f"{error}; 'gapless groups list' shows all"
    return str(error)


def _headline(group: DescribedGroup) -> str:
    assignor = f", {group.protocol_name}" if group.protocol_name else ""
    count = len(group.members)
    members = f"{count} member{'s' * (count != 1)}"
    return f"{group.group_id}: {group.state}{assignor}, {members}, coordinator: broker {group.coordinator_id}"


def _assigned(group: DescribedGroup) -> set[TopicPartition]:
    return {key for member in group.members for key in member.partitions or ()}


def _wanted(admin: Admin, topics: list[str] | None, committed: Iterable[TopicPartition]) -> set[TopicPartition]:
    """The partitions that the options name, or all that have a committed offset."""
    if not topics:
        return set(committed)
    wanted: set[TopicPartition] = set()
    for text in topics:
        name, _, numbers = text.partition(":")
        known = admin.describe_topics([name])[name].partitions
        if not known:
            raise BadRequest(f"--topic {text}: there is no topic {name}")
        try:
            chosen = {int(each) for each in numbers.split(",")} if numbers else set(known)
        except ValueError as error:
            raise BadRequest(f"--topic {text}: partitions are numbers, such as {name}:0,1") from error
        if unknown := chosen - known.keys():
            raise BadRequest(f"--topic {text}: {name} has no partition {min(unknown)}")
        wanted |= {(name, number) for number in chosen}
    return wanted


def _offsets_at(admin: Admin, partitions: set[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
    """The offset of each partition that still exists at this timestamp. (A committed offset may outlive its topic.)"""
    views = admin.describe_topics(sorted({topic for topic, _ in partitions}))
    there = [key for key in partitions if key[0] in views and key[1] in views[key[0]].partitions]
    return {key: listed.offset for key, listed in admin.list_offsets(dict.fromkeys(there, timestamp)).items()}
