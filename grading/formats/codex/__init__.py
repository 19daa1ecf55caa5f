"""Codex CLI: `parser` reads its logs, `calls` its tool calls and `code_mode` the scripts that make several calls."""
