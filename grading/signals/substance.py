"""The text of a file without its markup, and how much of it is a copy of another text."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import dropwhile

MAX_TEXT = 10_000
SHINGLE_WORDS = 5
SKETCH_SIZE = 128
# With this share of its shingles in another text, a text is a copy.
MIN_COPY_SHARE = 0.8
# With this share of their words in common, one of two short texts is a copy.
MIN_SHARED_WORDS = 0.7
# Fewer shingles in the range that both sketches cover are too few to compare.
MIN_COMPARED = 8
# Longer words are counted as this long: encoded bytes are not text.
MAX_WORD = 30
FENCE = re.compile(r"\s{0,8}(?:`{3,}|~{3,})")
URL = re.compile(r"\b(?:https?://|www\.)[^\s)>\]]+")
TARGET = re.compile(r"\]\([^()\s]{0,2000}\)")
TAG = re.compile(r"<[/!?A-Za-z][^<>]{0,2000}>")
ENTITY = re.compile(r"&#?[A-Za-z0-9]{1,10};")
# Chinese and Japanese have no spaces between words, so each of their characters counts as a word.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:['’][^\W_]+)*")

Sketch = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The measures of a text without markup.

    `characters` counts the characters of its words and one space between each two, without repeated phrases. `sketch`
    has the smallest `SKETCH_SIZE` distinct hashes of its shingles (five words in a row), ascending. `vocabulary` are
    its distinct words of at most `MAX_WORD` characters.
    """

    characters: int
    sketch: Sketch
    vocabulary: frozenset[str] = frozenset()

    @property
    def distinct_characters(self) -> int:
        """How many characters its distinct words have."""
        return sum(map(len, self.vocabulary))

    def is_like(self, other: "Text") -> bool:
        """Whether most words of two short texts are the same. Texts from one template may share few shingles."""
        shared, total = self.vocabulary & other.vocabulary, self.vocabulary | other.vocabulary
        return len(shared) >= MIN_SHARED_WORDS * len(total) > 0


def read_lines(lines: Sequence[str]) -> Text:
    """Measure the text of a file with these lines, up to `MAX_TEXT` characters.

    Front matter, the marks of code blocks, targets of links, URLs, tags, entities and numbers are not text.

    >>> read_lines(["# Notes", "", "| --- |", "<br>", "[one](https://a.test) `two`"]).characters
    13
    """
    if lines and lines[0].strip() == "---":  # skip the front matter, or only its first line if it has no end
        rest = list(dropwhile(lambda line: line.strip() not in ("---", "..."), lines[1:]))
        lines = rest[1:] if rest else lines[1:]
    text = "\n".join(lines)[:MAX_TEXT]
    text = "\n".join(line for line in text.split("\n") if not FENCE.match(line))
    for markup in (TARGET, URL, TAG, ENTITY):
        text = markup.sub(" ", text)
    tokens = [word.casefold() for word in WORD.findall(text)]
    tokens = [token for token in tokens if not token.isdecimal()]
    phrases: set[str] = set()  # the shingle that ends at each token; the first ones are shorter
    shingles: set[str] = set()
    characters = 0
    for index, token in enumerate(tokens):
        phrase = " ".join(tokens[max(0, index - SHINGLE_WORDS + 1) : index + 1])
        if phrase not in phrases:
            characters += min(len(token), MAX_WORD) + 1
        phrases.add(phrase)
        if index >= SHINGLE_WORDS - 1 or index == len(tokens) - 1:
            shingles.add(phrase)
    vocabulary = frozenset(token for token in tokens if len(token) <= MAX_WORD)
    return Text(characters=max(0, characters - 1), sketch=_sketch(shingles), vocabulary=vocabulary)


def read_row(line: str) -> Text:
    """Measure one row of a table. Rows that differ only in case, spaces, punctuation and numbers are equal.

    >>> read_row("| 1 | Idea: offline maps | 8 |") == read_row("|12|idea - Offline Maps|")
    True
    """
    tokens = [word.casefold() for word in WORD.findall(line) if not word.isdecimal()]
    text = " ".join(token for token in tokens if len(token) > 1 or not token.isascii())
    return Text(characters=len(text), sketch=_sketch({f"row: {text}"}))


def is_copy(ours: Sketch, theirs: Sketch) -> bool:
    """Whether at least 80 % of our text's shingles are in theirs: an excerpt is a copy, a text a third longer is not.

    Full sketches are compared up to the smaller of their last hashes, which makes the share an estimate (± .04).
    """
    last_hashes = [sketch[-1] for sketch in (ours, theirs) if len(sketch) == SKETCH_SIZE]
    compared = [shingle for shingle in ours if shingle <= min(last_hashes)] if last_hashes else ours
    if len(compared) < (MIN_COMPARED if last_hashes else 1):
        return False
    return len(set(theirs).intersection(compared)) >= MIN_COPY_SHARE * len(compared)


def _sketch(shingles: set[str]) -> Sketch:
    """The smallest hashes of the shingles, each in [0, 2⁶³) so that every database can store it as an integer."""
    hashes: list[int] = []
    for shingle in shingles:
        digest = hashlib.blake2b(shingle.encode(errors="surrogatepass"), digest_size=8).digest()
        hashes.append(int.from_bytes(digest) >> 1)
    return tuple(sorted(hashes)[:SKETCH_SIZE])
