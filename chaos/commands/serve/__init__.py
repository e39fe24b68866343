"""``gapless serve``: runs and sweeps of ``results/`` as local pages, listed and compared. It changes nothing."""
