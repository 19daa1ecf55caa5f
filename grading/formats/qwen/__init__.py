"""Qwen Code: `parser` reads its chats."""
