"""``gapless runs``: what is in ``results/``, listed, compared, on a page, and pruned. Judges nothing."""
