"""A bounded set of keys, to recognise repeated records."""

from collections import OrderedDict


class RecentKeys:
    """The `limit` most recently added keys."""

    def __init__(self, limit: int = 50_000) -> None:
        self._keys: OrderedDict[str | bytes, None] = OrderedDict()
        self._limit = limit

    def __contains__(self, key: str | bytes) -> bool:
        return key in self._keys

    def check_and_add(self, key: str | bytes) -> bool:
        """Add a key, dropping the oldest beyond the limit; return whether it was there already."""
        if key in self._keys:
            self._keys.move_to_end(key)
            return True
        self._keys[key] = None
        if len(self._keys) > self._limit:
            self._keys.popitem(last=False)
        return False

    def discard(self, key: str | bytes) -> None:
        self._keys.pop(key, None)
