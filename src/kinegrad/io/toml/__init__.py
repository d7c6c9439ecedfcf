"""kinegrad's own files: models that a person can write, and that come back to the last bit."""

from kinegrad.io.toml.document import read, write

__all__ = ["read", "write"]
