"""Gemini CLI: `parser` reads its chats."""
