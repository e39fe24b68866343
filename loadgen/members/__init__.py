"""Members of consumer groups in the load: the interface of their clients, and the adapters that implement it.

Owns the adapters and what of a member is recorded. Does not own how long a member lives (``loadgen.group_plan``) nor
its loop under Locust (``loadgen.users.member``).
"""
