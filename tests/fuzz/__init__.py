"""Fuzzers: bounded in ordinary runs, longer with ``KINEGRAD_FUZZ_CASES``."""
