"""The evidence fuzzer: copies of a valid run in which one thing was tampered with, judged by the real verifier."""
