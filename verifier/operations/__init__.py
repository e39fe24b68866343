"""Histories of client operations, as Jepsen's kafka workload writes them: read, judged and written.

Owns the whole way from such a file to a verdict that rests on what clients saw and on nothing else. Shares the form of
the verdict with runs (``verifier.verdict``), and no check: a run has logs to decide by, these histories have none.
Everything here is numpy on one machine; no Spark is started.
"""
