"""Signals: what the tool results of a transcript show, the same for every harness."""

from grading.signals.extract import extract
from grading.signals.model import Commit, Effect, EffectKind, Signals, TestRun, TokenTotals

VERSION = "signals/2"

__all__ = ["VERSION", "Commit", "Effect", "EffectKind", "Signals", "TestRun", "TokenTotals", "extract"]
