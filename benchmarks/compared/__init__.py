"""Simulated sites for `benchmarks/insight.py`, as rows of the site's own tables."""
