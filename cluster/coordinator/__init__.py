"""Coordinators of transactions and groups, pure. So far: where one is, which is nowhere, since neither is served."""
