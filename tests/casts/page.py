"""A page as a reader meets it: where its template breaks its lines is nobody's business."""

import re

TAG = re.compile(r"<[a-z][^<>]*>")
OPENING = re.compile(r"(<[a-z][^<>]*>)\s*\n\s*")
CLOSING = re.compile(r"\s*\n\s*(</[a-z])")
BLOCK = re.compile(r"(</(?:article|dd|div|dl|dt|h\d|li|ol|p|section|table|tbody|td|tfoot|th|thead|tr|ul)>)\s*\n\s*")
SPACES = re.compile(r"\s+")


def flat(reply) -> str:
    """The page of a response in one line, without the line breaks between and just inside its elements."""
    html = TAG.sub(lambda tag: SPACES.sub(" ", tag[0]).replace(" >", ">"), reply.content.decode())
    html = BLOCK.sub(r"\1", CLOSING.sub(r"\1", OPENING.sub(r"\1", html)))
    return SPACES.sub(" ", html).strip()
