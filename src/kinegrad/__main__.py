"""``python -m kinegrad`` is the command ``kinegrad``."""

from kinegrad.cli import main

main()
