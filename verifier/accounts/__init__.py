"""The account of each history: what it holds, beside what it says it holds. Judges nothing.

``account`` has the shape and ``summing`` fills it, one part of the file at a time: ``columns`` has the sums over a
part's columns, ``belonging`` the sessions and transactions of its rows. What follows from an account is decided in
``verifier.completeness``.
"""
