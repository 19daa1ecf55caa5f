"""Random numbers that nobody outside can predict and that a retry repeats: a keyed hash of what is drawn for."""

import hashlib
import hmac

from django.conf import settings

# So that what this key signs is never taken for anything else, nor for draws of another kind of hash.
LABEL = "gradingsite/chance/1"
BITS = 53


def chance(purpose: str, bandit: str, agent: str, id_: str) -> float:
    """A number in [0, 1), uniform over what may be asked: 53 bits of an HMAC-SHA-256 under the site's key.

    The same for the same four texts for as long as the key is, and different ones tell nothing of each other. Whoever
    draws stores what came of it, its chance and `key_id()`, and never draws for the same again.
    """
    # Each text behind its length in bytes: no two lists of texts are written alike, whatever they contain.
    texts = [text.encode("utf-8", "surrogatepass") for text in (LABEL, purpose, bandit, agent, id_)]
    asked = b"".join(len(text).to_bytes(8, "big") + text for text in texts)
    digest = hmac.digest(settings.CHANCE_KEY, asked, hashlib.sha256)
    return (int.from_bytes(digest[:8], "big") >> (64 - BITS)) / float(2**BITS)


def key_id() -> str:
    """The public name of the key in use: eight hex digits, which say nothing of the key."""
    return hmac.digest(settings.CHANCE_KEY, b"gradingsite/chance/name", hashlib.sha256).hex()[:8]
