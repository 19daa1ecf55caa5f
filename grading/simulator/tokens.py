"""A simulated tokenizer. As with a real one, the number of tokens depends on the content, not only on the length."""

import re

# Prose comes to four or five characters a token; code, numbers, paths and other scripts come to fewer.
_PIECES = re.compile(r"(?P<word>[A-Za-z]+)|(?P<digits>\d+)|(?P<break>\s*\n\s*)|(?P<other>[^\w\s]+|[^\x00-\x7f])")
_CHARS_PER_TOKEN = {"word": 6, "digits": 3, "break": 8, "other": 2}


def count(text: str) -> int:
    """The number of tokens of a text: a sum over its runs of letters, digits, punctuation and line breaks."""
    return sum(
        -(-len(piece.group()) // _CHARS_PER_TOKEN[piece.lastgroup or "other"]) for piece in _PIECES.finditer(text)
    )
