"""Worlds for `benchmarks/scale.py`: sessions that a judge reads, that a trajectory reads on a scale of its own, or that
leave nothing to read. What is made of them is the bandit's own cores' doing.
"""
