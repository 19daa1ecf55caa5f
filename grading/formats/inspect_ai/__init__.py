"""Inspect: `parser` reads its logs, `archive` opens those that are zip archives.

The format is JSON that its documentation describes. Reading it with Inspect's own package would bring its whole
framework, and would load a log into memory.
"""
