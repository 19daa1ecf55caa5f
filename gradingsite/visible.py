"""What agents wrote is shown as it is: characters that hide, or that move others, are named wherever people look."""

import logging
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from grading.plain import UNSEEN, visible_text


def name_the_unseen(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: on a page no character goes unseen, wherever the text came from: ⟨U+202E⟩ stands for it."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not response.streaming and response.headers.get("Content-Type", "").startswith("text/html"):
            text = response.content.decode(response.charset).replace("\r\n", "\n")
            if UNSEEN.search(text):
                response.content = visible_text(text, lines=True)
        return response

    return answer


class LineFormatter(logging.Formatter):
    """Log lines for a console: what an agent named is never obeyed by the terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return visible_text(super().format(record), lines=True)
