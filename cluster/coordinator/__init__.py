"""Coordinators of transactions and groups, pure.

Brokers use ``location`` alone so far: where one is, which is nowhere, since neither is served. ``group`` and
``transaction`` hold the decisions, and wait for the shell that will call them.
"""
