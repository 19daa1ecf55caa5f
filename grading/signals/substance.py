"""The text of a file without its markup, how much of it there is, and a hash by which equal texts are recognised."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MAX_TEXT = 10_000
PHRASE_WORDS = 5
# Longer words are counted as this long: encoded bytes are not text.
MAX_WORD = 30
FENCE = re.compile(r"\s{0,8}(?:`{3,}|~{3,})")
URL = re.compile(r"\b(?:https?://|www\.)[^\s)>\]]+")
TARGET = re.compile(r"\]\([^()\s]{0,2000}\)")
TAG = re.compile(r"<[/!?A-Za-z][^<>]{0,2000}>")
ENTITY = re.compile(r"&#?[A-Za-z0-9]{1,10};")
# Chinese and Japanese have no spaces between words, so each of their characters counts as a word.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:['’][^\W_]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The measures of a text without markup.

    `characters` counts the characters of its words and one space between each two, without repeated phrases of five
    words. `distinct_characters` counts those of its distinct words of at most `MAX_WORD` characters. Texts that differ
    only in case, spaces, punctuation, numbers and forms of a character (NFKC) have the same `text_hash`; None: no text.
    """

    characters: int
    distinct_characters: int = 0
    text_hash: int | None = None


def read_lines(lines: Sequence[str]) -> Text:
    """Measure the text of a file with these lines, up to `MAX_TEXT` characters.

    Front matter, the marks of code blocks, targets of links, URLs, tags, entities and numbers are not text.

    >>> read_lines(["# Notes", "", "| --- |", "<br>", "[one](https://a.test) `two`"]).characters
    13
    """
    text = "\n".join(_without_front_matter(lines))[:MAX_TEXT]
    text = "\n".join(line for line in text.split("\n") if not FENCE.match(line))
    for markup in (TARGET, URL, TAG, ENTITY):
        text = markup.sub(" ", text)
    tokens = _tokens(text)
    phrases: set[str] = set()
    characters = 0
    for index, token in enumerate(tokens):
        phrase = " ".join(tokens[max(0, index - PHRASE_WORDS + 1) : index + 1])  # that ends at the token
        if phrase not in phrases:
            characters += min(len(token), MAX_WORD) + 1
        phrases.add(phrase)
    return Text(
        characters=max(0, characters - 1),  # no space after the last word
        distinct_characters=sum(len(token) for token in set(tokens) if len(token) <= MAX_WORD),
        text_hash=_hash(_tokens(unicodedata.normalize("NFKC", text))) if tokens else None,
    )


def read_row(line: str) -> Text:
    """Measure one row of a table. Rows that differ only in case, spaces, punctuation and numbers are equal.

    >>> read_row("| 1 | Idea: offline maps | 8 |") == read_row("|12|idea - Offline Maps|")
    True
    """
    normalised = unicodedata.normalize("NFKC", line)
    # No file has the hash of a row.
    return Text(characters=len(" ".join(_row_tokens(line))), text_hash=_hash(_row_tokens(normalised), prefix="row: "))


def _without_front_matter(lines: Sequence[str]) -> Sequence[str]:
    """The lines after the front matter; if it has no end, those after its first line."""
    if not lines or lines[0].strip() != "---":
        return lines
    for index in range(1, len(lines)):
        if lines[index].strip() in ("---", "..."):
            return lines[index + 1 :]
    return lines[1:]


def _tokens(text: str) -> list[str]:
    """The words of a text in lower case, without numbers."""
    return [word.casefold() for word in WORD.findall(text) if not word.isdecimal()]


def _row_tokens(line: str) -> list[str]:
    """The words of a row without single letters, which number rows."""
    return [token for token in _tokens(line) if len(token) > 1 or not token.isascii()]


def _hash(tokens: Iterable[str], prefix: str = "") -> int:
    """A hash of the letters and digits of these tokens, in [0, 2⁶³) so that every database can store it."""
    text = prefix + "".join(filter(str.isalnum, "".join(tokens)))
    return int.from_bytes(hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()) >> 1
