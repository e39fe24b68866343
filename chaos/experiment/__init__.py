"""An experiment as a value: the options as given, and the typed configurations that result from them.

``asked`` declares each option once. The command line, ``repro``, ``run.json``, the cells of sweeps and the verifier's
settings are derived from it.
"""
