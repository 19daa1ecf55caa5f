"""OpenHands: `parser` reads its event streams."""
