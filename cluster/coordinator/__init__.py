"""Coordinators of transactions and groups, pure.

Brokers use ``location`` alone so far: where one is, which is nowhere, since neither is served. ``group`` decides for
groups, and waits for the shell that will call it.
"""
