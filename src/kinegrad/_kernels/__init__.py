"""Compiled algorithms: arrays in, arrays out, W states at a time.  Nothing here knows of models or errors.

compiler/   how Python becomes compiled code: options, tracing, the compiling thread, the cache
lanes/      the values that algorithms compute with: W numbers in a register, and duals of them
*.py        the algorithms

Read ``lanes/lane.py`` first (what a lane value is), then ``compiler/jit.py`` (the only compile options), then any
algorithm: each file opens with its derivation and a glossary of the book's symbols.
"""
