"""Random numbers for decisions: a keyed hash, which nobody outside can predict and a retry repeats."""

import hashlib
import hmac

from django.conf import settings

# Separates these draws from everything else that is signed with the key.
LABEL = "gradingsite/chance/1"
BITS = 53
MAX_ID_LENGTH = 200


def chance(purpose: str, bandit: str, agent: str, id_: str) -> float:
    """A uniform number in [0, 1): 53 bits of an HMAC-SHA-256 of these texts under the site's key.

    The same texts give the same number as long as the key is the same. The caller stores the outcome, its chance and
    `key_id()`, and never draws for the same texts again.
    """
    # Each text follows its length in bytes, so that different lists of texts are never encoded alike.
    texts = [text.encode("utf-8", "surrogatepass") for text in (LABEL, purpose, bandit, agent, id_)]
    message = b"".join(len(text).to_bytes(8, "big") + text for text in texts)
    digest = hmac.digest(settings.CHANCE_KEY, message, hashlib.sha256)
    return (int.from_bytes(digest[:8], "big") >> (64 - BITS)) / float(2**BITS)


def key_id() -> str:
    """The public name of the current key: eight hex digits that reveal nothing of it."""
    return hmac.digest(settings.CHANCE_KEY, b"gradingsite/chance/name", hashlib.sha256).hex()[:8]


def require_decision_id(decision_id: str) -> None:
    """Raise ValueError for an id that is blank, over 200 characters long or not printable."""
    if not decision_id.strip() or not decision_id.isprintable() or len(decision_id) > MAX_ID_LENGTH:
        raise ValueError(
            f"a decision needs an id of the caller's own, so that a retry gets the same answer: 1 to {MAX_ID_LENGTH} "
            f"printable characters; got {decision_id[:50]!r}, {len(decision_id)} long"
        )
