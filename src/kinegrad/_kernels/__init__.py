"""Compiled algorithms: arrays in, arrays out, W states at a time.  Nothing here knows of models or errors.

Read ``lanes.py`` first (what a lane value is), then ``jit.py`` (the only compile options), then any algorithm:
each file opens with its derivation and a glossary of the book's symbols.
"""
