"""Cursor: `parser` reads the transcripts of its agent."""
