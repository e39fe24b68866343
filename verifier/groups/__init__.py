"""What consumer groups did: what their members were handed and committed, beside the log that they read.

``rows`` joins the histories, ``logs`` says which records a log has for a member, ``positions`` which offsets a member
may resume at; ``group_checks`` asks the checks.
"""
