"""What a file says once its markup is taken away, and how much of that another file had said already."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile

MAX_TEXT = 10_000
SHINGLE = 5
KEPT = 128
COPY = 0.8
# Of the words of two short texts, so many in common make one a copy.
LIKE = 0.7
# Fewer shingles than this that both sketches cover say nothing about two texts.
COMPARABLE = 8
# A word is not longer than this: a blob of encoded bytes is no text.
MAX_WORD = 30
FENCE = re.compile(r"\s{0,8}(?:`{3,}|~{3,})")
URL = re.compile(r"\b(?:https?://|www\.)[^\s)>\]]+")
TARGET = re.compile(r"\]\([^()\s]{0,2000}\)")
TAG = re.compile(r"<[/!?A-Za-z][^<>]{0,2000}>")
ENTITY = re.compile(r"&#?[A-Za-z0-9]{1,10};")
# Chinese and Japanese have no spaces between words, so that each of their characters is taken for one.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:['’][^\W_]+)*")

Sketch = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """`characters`: letters of a text's words with a space between any two, without markup and without what it says
    again. `sketch`: its smallest `KEPT` distinct hashes of five words in a row, ascending; all, where there are fewer.
    """

    characters: int
    sketch: Sketch
    words: frozenset[str] = frozenset()
    """Its different words, without those that are too long to be any."""

    @property
    def distinct(self) -> int:
        """How many characters its different words have."""
        return sum(map(len, self.words))

    def is_like(self, other: "Text") -> bool:
        """Whether most words of the two are the same: what a template gives, where short texts share few phrases."""
        return len(self.words & other.words) >= LIKE * len(self.words | other.words) > 0


def read(lines: Sequence[str]) -> Text:
    """The text of a file of these lines; of its first 10,000 characters, which bounds the work.

    >>> read(["# Notes", "", "| --- |", "<br>", "[one](https://a.test) `two`"]).characters
    13
    """
    if lines and lines[0].strip() == "---":  # the front matter goes to its end, where it has one
        rest = list(dropwhile(lambda line: line.strip() not in ("---", "..."), lines[1:]))
        lines = rest[1:] if rest else lines[1:]
    text = "\n".join(lines)[:MAX_TEXT]
    text = "\n".join(line for line in text.split("\n") if not FENCE.match(line))
    for markup in (TARGET, URL, TAG, ENTITY):
        text = markup.sub(" ", text)
    words = [word.casefold() for word in WORD.findall(text)]
    seen: set[str] = set()
    shingles: set[str] = set()
    characters = 0
    told = [word for word in words if not word.isdecimal()]
    for at, word in enumerate(told):
        shingle = " ".join(told[max(0, at - SHINGLE + 1) : at + 1])
        if shingle not in seen:
            characters += min(len(word), MAX_WORD) + 1
        seen.add(shingle)
        if at >= SHINGLE - 1 or at == len(told) - 1:
            shingles.add(shingle)
    different = frozenset(word for word in told if len(word) <= MAX_WORD)
    return Text(characters=max(0, characters - 1), sketch=_sketch(shingles), words=different)


def read_row(line: str) -> Text:
    """The text of one row of a table. Two that differ in case, spaces, punctuation and numbers only are the same.

    >>> read_row("| 1 | Idea: offline maps | 8 |") == read_row("|12|idea - Offline Maps|")
    True
    """
    words = [word.casefold() for word in WORD.findall(line) if not word.isdecimal()]
    text = " ".join(word for word in words if len(word) > 1 or not word.isascii())
    return Text(characters=len(text), sketch=_sketch({f"row: {text}"}))


def is_copy(ours: Sketch, theirs: Sketch) -> bool:
    """Whether at least 80 % of what our text says, theirs says too: an excerpt is a copy, more by a third is not.

    Sketches of longer texts are compared as far as both reach, which makes the share an estimate (± .04).
    """
    cut = [sketch[-1] for sketch in (ours, theirs) if len(sketch) == KEPT]
    compared = [shingle for shingle in ours if shingle <= min(cut)] if cut else ours
    if len(compared) < (COMPARABLE if cut else 1):
        return False
    return len(set(theirs).intersection(compared)) >= COPY * len(compared)


def _sketch(shingles: set[str]) -> Sketch:
    """The smallest hashes, each in [0, 2⁶³), which every database keeps as an integer."""
    hashes: list[int] = []
    for shingle in shingles:
        digest = hashlib.blake2b(shingle.encode(errors="surrogatepass"), digest_size=8).digest()
        hashes.append(int.from_bytes(digest) >> 1)
    return tuple(sorted(hashes)[:KEPT])
