"""Evidence text made safe to send: no secrets, nothing invisible, every line quoted, bounded in length (L9)."""

import re
import unicodedata
from functools import lru_cache

# A text longer than this is cut in the middle before anything else looks at it, so that no regex meets a 50 MB line.
SCAN_LIMIT = 65_536
QUOTE = "  | "

_SUSPECT = re.compile(r"[^\t\n\x20-\x7e]")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Variation selectors and blank-looking letters are of harmless categories, yet carry text that nobody sees.
_HIDDEN = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef\u034f\u115f\u1160\u2800\u3164\uffa0]")
_DELIMITER = re.compile(r"[<＜‹](?=\s*/?\s*evidence)", re.IGNORECASE)

_SECRETS = (
    (
        "private key",
        re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"),
    ),
    ("api key", re.compile(r"(?:\bsk-|sk-ant-)[A-Za-z0-9_-]{16,}")),
    ("github token", re.compile(r"\b(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})")),
    ("gitlab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{16,}")),
    ("slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("aws key", re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("google key", re.compile(r"\bAIza[A-Za-z0-9_-]{35}")),
    ("package token", re.compile(r"\b(?:pypi-[A-Za-z0-9_-]{16,}|npm_[A-Za-z0-9]{30,})")),
    ("web token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*")),
    ("bearer token", re.compile(r"(?<=[Bb]earer )[A-Za-z0-9._~+/-]{16,}=*")),
    ("password", re.compile(r"(?<=://)[^\s/:@]{0,80}:[^\s/@]{1,200}(?=@)")),
    (
        "secret",
        re.compile(
            r"""(?<=[\w-])?(?:api[_-]?key|access[_-]?key|auth[_-]?token|secret|passw(?:or)?d)["']?\s{0,3}[=:]\s{0,3}"""
            r"""["']?(?!\[redacted)[^\s"',;]{8,}""",
            re.IGNORECASE,
        ),
    ),
)


def redact(text: str) -> str:
    """Replace what looks like a key by `[redacted <kind>]`.

    A small table of well-known shapes, for now; a kept library takes its place with the quota work.
    """
    for kind, pattern in _SECRETS:
        text = pattern.sub(f"[redacted {kind}]", text)
    return text


def visible(text: str) -> str:
    r"""Write control, bidirectional, zero-width and unassigned characters as `\u{200b}`; tabs and newlines stay."""
    return _SUSPECT.sub(lambda match: _shown(match[0]), text.replace("\r\n", "\n"))


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    hidden = unicodedata.category(char) in _HIDDEN_CATEGORIES or _HIDDEN.match(char)
    return f"\\u{{{ord(char):x}}}" if hidden else char


def neutral(text: str) -> str:
    """Break what looks like the evidence delimiter, in any case and spacing."""
    return _DELIMITER.sub("«", text)


def clip(text: str, limit: int) -> str:
    """At most about `limit` characters: the head and the tail, and between them how many were left out."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    head = limit - tail
    return f"{text[:head]} … [{len(text) - limit} characters left out] … {text[len(text) - tail :]}"


def clean(text: str, limit: int) -> str:
    """Untrusted text, safe and at most about `limit` characters (`limit` ≤ SCAN_LIMIT / 2; newlines kept)."""
    bounded = clip(redact(clip(text, SCAN_LIMIT)), limit)
    # Clipped twice: an invisible character takes up to ten visible ones.
    return neutral(clip(visible(bounded), limit))


def inline(text: str, limit: int = 200) -> str:
    """Untrusted text on one line: newlines become visible too."""
    return clean(text, limit).replace("\n", "\\n").replace("\t", " ")


def quoted(text: str, limit: int) -> str:
    """Untrusted text with every line behind a bar, so that no line of it can pass for one of ours.

    The result is at most about a third longer than `limit`, however many lines the text has.
    """
    lines = clean(text.strip("\n"), limit).split("\n")
    most = limit // 20 + 3
    if len(lines) > most:
        tail = most // 3
        head = most - tail
        lines = [*lines[:head], f"… [{len(lines) - most} lines left out] …", *lines[len(lines) - tail :]]
    return "\n".join(QUOTE + line for line in lines)
