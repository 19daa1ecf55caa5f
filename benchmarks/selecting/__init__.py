"""The parts of `benchmarks/bandit.py`."""
