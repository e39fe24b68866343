"""Small functions on integer columns that several modules share. Pure NumPy. Owns no rule.

All columns of one call have the same length. Groups and codes are numbers from 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from verifier.operations.model import BoolArray, IntArray


def codes_of(*columns: IntArray) -> tuple[IntArray, int]:
    """A number for each row, and the count of distinct rows. Equal rows have equal numbers, in order of appearance."""
    codes, uniques = pd.factorize(columns[0])
    count = len(uniques)
    for column in columns[1:]:
        other, uniques = pd.factorize(column)
        codes, distinct = pd.factorize(codes.astype(np.int64) * max(len(uniques), 1) + other)
        count = len(distinct)
    return codes.astype(np.int64), count


def first_rows(codes: IntArray, count: int) -> IntArray:
    """The first row with each number below ``count``. Every number must occur."""
    first = np.empty(count, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def starts_of_groups(columns: Sequence[IntArray]) -> BoolArray:
    """A mask of the rows that differ from the row before them. The columns must be sorted."""
    starts = np.ones(len(columns[0]), dtype=np.bool_)
    if len(starts):
        starts[1:] = False
        for column in columns:
            starts[1:] |= column[1:] != column[:-1]
    return starts


def group_numbers(starts: BoolArray) -> IntArray:
    """The number of each row's group."""
    return np.cumsum(starts, dtype=np.int64) - 1


def marked(length: int, rows: IntArray) -> BoolArray:
    """A mask of this length that is true at these rows."""
    mask = np.zeros(length, dtype=np.bool_)
    mask[rows] = True
    return mask


def least_by(groups: IntArray, values: IntArray, count: int, empty: int) -> IntArray:
    """The least value of each of ``count`` groups; ``empty`` for a group without values."""
    least = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(least, groups, values)
    least[least == np.iinfo(np.int64).max] = empty
    return least


def most_by(groups: IntArray, values: IntArray, count: int) -> IntArray:
    """The greatest value of each of ``count`` groups; -1 for a group without values. Values must not be negative."""
    most = np.full(count, -1, dtype=np.int64)
    np.maximum.at(most, groups, values)
    return most
