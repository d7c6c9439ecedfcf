"""Slow, obvious NumPy formulations that the kernels are compared with."""
