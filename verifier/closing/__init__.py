"""What closes the evidence of a run: its small files, each read whole, and the accounts of its histories.

``closing`` gathers it. Beside it are its readers: ``load_files`` (what load processes left), ``proxy_log``, ``paused``
(which processes a fault had stopped), ``strangers`` (files that were not declared) and ``wall_clock``. Owns neither the
accounts (``verifier.accounts``) nor any judgment: what follows is decided in ``verifier.completeness``.
"""
