"""Which sessions belong to a fixed share of all: by a hash of their name, the same everywhere and for ever."""

import hashlib


def falls_into(share: float, name: str) -> bool:
    """Whether `name` is among the `share` in [0, 1] of all names: its SHA-256, read as a number in [0, 1), is below."""
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    return number < share * 2**64
