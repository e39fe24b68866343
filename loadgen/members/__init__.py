"""Members of consumer groups under the load: what is asked of a client, and the clients that give it.

Owns the adapters and what of a member is recorded. Does not own how long a member lives (``loadgen.group_plan``) nor
its loop under Locust (``loadgen.users.member``).
"""
