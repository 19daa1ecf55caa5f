"""Texts that only this site can read: encrypted with a key made of SECRET_KEY, another one for each purpose."""

import base64
import hashlib
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class CannotBeRead(ValueError):
    """The text was sealed with another SECRET_KEY, or changed since. What was sealed has to be entered again."""


def seal(text: str, *, purpose: str) -> str:
    return keys(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, *, purpose: str) -> str:
    """The text that `seal` was given for this purpose. Raises CannotBeRead."""
    from cryptography.fernet import InvalidToken

    try:
        return keys(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise CannotBeRead("sealed with another SECRET_KEY, or changed since") from None


def keys(purpose: str) -> "MultiFernet":
    """SECRET_KEY's, and those of SECRET_KEY_FALLBACKS for what was sealed before it was changed."""
    from cryptography.fernet import Fernet, MultiFernet

    used = [str(settings.SECRET_KEY), *map(str, settings.SECRET_KEY_FALLBACKS)]
    digests = [hashlib.sha256(f"{purpose}/{key}".encode()).digest() for key in used]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
