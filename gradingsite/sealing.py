"""Encrypts texts that only this site can read, with a key derived from SECRET_KEY and a purpose."""

import base64
import hashlib
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet


class CannotBeRead(ValueError):
    """The text was encrypted with another SECRET_KEY, or changed. It has to be entered again."""


def seal(text: str, *, purpose: str) -> str:
    return keys(purpose).encrypt(text.encode()).decode()


def unseal(sealed: str, *, purpose: str) -> str:
    """Decrypt a text from `seal` with the same purpose. Raises CannotBeRead."""
    from cryptography.fernet import InvalidToken

    try:
        return keys(purpose).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise CannotBeRead("sealed with another SECRET_KEY, or changed since") from None


def keys(purpose: str) -> "MultiFernet":
    """The keys for a purpose: of SECRET_KEY, and of SECRET_KEY_FALLBACKS for texts from before it was changed."""
    from cryptography.fernet import Fernet, MultiFernet

    secrets = [str(settings.SECRET_KEY), *map(str, settings.SECRET_KEY_FALLBACKS)]
    digests = [hashlib.sha256(f"{purpose}/{secret}".encode()).digest() for secret in secrets]
    return MultiFernet([Fernet(base64.urlsafe_b64encode(digest)) for digest in digests])
