"""Droid: `parser` reads its sessions and its `stream-json`."""
