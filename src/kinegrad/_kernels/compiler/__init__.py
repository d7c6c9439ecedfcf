"""How kernels are compiled: ``jit.py`` has the decorators, the rest is behind them and knows nothing of algorithms."""
