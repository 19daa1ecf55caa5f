"""Kimi Code: `parser` reads its `wire.jsonl`."""
