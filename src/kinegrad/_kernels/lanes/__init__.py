"""Lane values, W numbers in one register, and all that algorithms do with them; ``lane.py`` is where to begin."""
