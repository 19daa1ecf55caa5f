"""Remembering, in bounded memory, what a log has said already."""

from collections import OrderedDict


class RecentKeys:
    """The last `limit` keys seen: what comes again is a repeat."""

    def __init__(self, limit: int = 50_000) -> None:
        self._keys: OrderedDict[str | bytes, None] = OrderedDict()
        self._limit = limit

    def seen(self, key: str | bytes) -> bool:
        return key in self._keys

    def add(self, key: str | bytes) -> bool:
        """Remembers a key; returns whether it was there already."""
        if key in self._keys:
            self._keys.move_to_end(key)
            return True
        self._keys[key] = None
        if len(self._keys) > self._limit:
            self._keys.popitem(last=False)
        return False

    def discard(self, key: str | bytes) -> None:
        self._keys.pop(key, None)
