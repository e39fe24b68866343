"""One experiment as a value: what was asked, and the typed configurations that this comes to.

``asked`` declares each option once. The command line, ``repro``, ``run.json``, the cells of sweeps and the verifier's
settings are made from it.
"""
