"""Reads and parses YAML files that users write. Owns one-line errors with the place in the text.

A mapping must not have a key twice (YAML 1.2.2, section 3.2.1.1). The library silently uses the last one, which would
ignore a part of what the user wrote; here it is an error. Does not own what a document means: callers do, and put the
name of the file before the message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster.process.one_line import reason

#: The most values in a document after its aliases are expanded: a thousand times what users have written so far.
MOST_VALUES = 200_000


class DocumentError(ValueError):
    """The document cannot be read. The message is one line with the place in the text, but without the file's name."""


def read_text(path: Path) -> str:
    """The text of a file. Raises DocumentError if it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DocumentError(f"it cannot be read: {reason(error)}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"line {line}: it is not UTF-8 text (byte 0x{error.object[error.start]:02x})") from error


def load_yaml(text: str) -> Any:
    """The single document in a text; None if it is empty. Raises DocumentError, also for a key that is given twice."""
    # imported here, so that commands without YAML do not load it
    import yaml

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_bombs(node)
        _refuse_repeated_keys(loader, node)
        return loader.construct_document(node)
    except DocumentError:
        raise
    except yaml.MarkedYAMLError as error:
        said = ", ".join(part for part in (error.context, error.problem) if part)
        mark = error.problem_mark or error.context_mark
        raise DocumentError(f"{_place(mark)}it is not YAML: {said}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise DocumentError(f"it is not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise DocumentError("it is nested too deeply") from error


def _refuse_bombs(root: Any) -> None:
    """Raises DocumentError if aliases expand to more values than ``MOST_VALUES``, which could exhaust the memory.

    What a node stands for is the sum of what is in it, and is examined once. One that is in itself counts as one.
    """
    stands_for: dict[int, int] = {}
    waiting = [root]
    while waiting:
        node = waiting[-1]
        if stands_for.get(id(node)):
            waiting.pop()
            continue
        within = _within(node)
        if id(node) not in stands_for:
            stands_for[id(node)] = 0
            waiting += [each for each in within if id(each) not in stands_for]
            continue
        waiting.pop()
        values = stands_for[id(node)] = 1 + sum(stands_for[id(each)] for each in within)
        if values > MOST_VALUES:
            raise DocumentError(f"line {node.start_mark.line + 1}: it stands for more than {MOST_VALUES:,} values")


def _within(node: Any) -> list[Any]:
    """The nodes in a collection. For a mapping, its keys and its values."""
    if not isinstance(node.value, list):
        return []
    return [each for entry in node.value for each in (entry if isinstance(entry, tuple) else (entry,))]


def kind_of(document: object) -> str:
    """What a document is that should be a mapping, for a message: ``it is empty``, ``it is a list``."""
    if document is None:
        return "it is empty"
    return f"it is a {'list' if isinstance(document, list) else 'single value'}"


def _refuse_repeated_keys(loader: Any, root: Any) -> None:
    """Raises DocumentError for a repeated key in any mapping, including those behind (possibly cyclic) aliases."""
    import yaml

    waiting, seen = [root], {id(root)}
    repeats: list[tuple[int, int, str]] = []
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.MappingNode):
            repeats += _repeats(loader, node)
        for each in _within(node):
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    if repeats:
        line, first, key = min(repeats)
        raise DocumentError(f"line {line}: key {key!r} is given twice, first in line {first}; leave one of them out")


def _repeats(loader: Any, mapping: Any) -> list[tuple[int, int, str]]:
    """Line, first line and text of each key of one mapping that would replace another."""
    import yaml

    lines: dict[Any, int] = {}
    found = []
    for key, _ in mapping.value:
        # a key that is not a scalar is refused when the document is constructed
        if isinstance(key, yaml.ScalarNode):
            # compare keys like a dict: 1 and 0x1 are equal; a merge key (<<) has no value
            is_merge = key.tag == "tag:yaml.org,2002:merge"
            value = key.value if is_merge else loader.construct_object(key)
            line = key.start_mark.line + 1
            if value in lines:
                found.append((line, lines[value], key.value))
            lines.setdefault(value, line)
    return found


def _place(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
