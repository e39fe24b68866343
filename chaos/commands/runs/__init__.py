"""``gapless runs``: what lies in ``results/``, listed, compared, on a page, and pruned. Judges nothing."""
