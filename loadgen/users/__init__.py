"""The Locust users: producers, readers and members, and their process. The only package that imports Locust and gevent.

Owns users, options and the life of a load process under one hub. Does not own what is recorded nor how.
"""
