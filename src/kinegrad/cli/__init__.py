"""The command line: ``kinegrad info``, ``kinegrad inverse-dynamics``, ``kinegrad demo``, ``kinegrad reproduce``."""

from kinegrad.cli.program import app, main

__all__ = ["app", "main"]
