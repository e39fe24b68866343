"""What the load's web interface shows of the run: the Chaos tab of Locust's own, and a page beside it.

Owns what is shown and how it looks. Does not own what the run does (``verifier.evidence.live``) nor the joining to
Locust (``loadgen.users.web``); knows neither Locust nor gevent.
"""
