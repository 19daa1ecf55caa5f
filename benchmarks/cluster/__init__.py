"""A site on several hosts, for `benchmarks/hosts.py`: what they share (`servers`), and themselves and who uses them
(`site`).
"""
