"""Antigravity: `parser` reads its steps."""
