"""Fetch (API key 1), versions 4-12: the hand-written codec in one place. Owns nothing but the names."""

from __future__ import annotations

from cluster.protocol.fetch_request import (
    FetchPartition,
    FetchRequest,
    build_request,
    build_request_body,
    parse_request,
)
from cluster.protocol.fetch_response import FetchResponse, FetchResult, build_response, parse_response

__all__ = [
    "FetchPartition",
    "FetchRequest",
    "FetchResponse",
    "FetchResult",
    "build_request",
    "build_request_body",
    "build_response",
    "parse_request",
    "parse_response",
]
