"""Signals: what the results of a transcript's calls confirm, in the same form for every harness. Pure.

In: events, a patch. Out: what a session did (commits, pull requests, tests, files, artifacts) as confirmed by
results; the agent's own statements don't count.
Start with `model` (the values) and `extract` (one pass over the events).
"""

from grading.signals.extract import extract
from grading.signals.final_state import TestState
from grading.signals.model import Commit, Effect, EffectKind, Signals, TestRun

VERSION = "signals/5"

__all__ = ["VERSION", "Commit", "Effect", "EffectKind", "Signals", "TestRun", "TestState", "extract"]
