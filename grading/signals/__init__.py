"""Signals: what the results of a transcript's calls show, the same for every harness. Pure.

In: events, a patch. Out: what a session did (commits, pull requests, tests, files, artifacts), as far as results
show it, and nothing that was only said.
Start with `model` (the values) and `extract` (one pass over the events).
"""

from grading.signals.extract import extract
from grading.signals.model import Commit, Effect, EffectKind, Signals, TestRun, TokenTotals

VERSION = "signals/2"

__all__ = ["VERSION", "Commit", "Effect", "EffectKind", "Signals", "TestRun", "TokenTotals", "extract"]
