"""Reading a submission from a request: parts of bounded size, streamed to disk, every fault said in words."""

import io
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler, SkipFile, TemporaryFileUploadHandler
from django.http import HttpRequest
from django.http.multipartparser import MultiPartParserError
from django.http.request import UnreadablePostError

from grading.intake.submission import Problem, SubmittedSession, read_metadata, too_large

EVIDENCE_PARTS = ("transcript", "journal", "patch", "facts")
PARTS = ("metadata", *EVIDENCE_PARTS)
# What the parts' headers and the metadata may add to the evidence.
SLACK = 1 << 20


class UploadRefused(Exception):
    """The request cannot be read at all; nothing of it was stored. Carries the status and the problem to reply with."""

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(str(problem))
        self.status = status
        self.problem = problem


@dataclass(slots=True, kw_only=True)
class UploadedParts:
    """The parts of one request: validated metadata (None: refused), evidence by part, and what was wrong."""

    metadata: SubmittedSession | None = None
    files: dict[str, IO[bytes]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class Bounded(FileUploadHandler):
    """Gives up a file as soon as it passes the site's limit, and goes on with the other parts."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self.oversized: list[str] = []

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        if start + len(raw_data) > settings.EVIDENCE_MAX_BYTES:
            self.oversized.append(str(self.field_name))
            raise SkipFile
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Leaves the file to the next handler."""
        del file_size


class UnnamedFileUploadHandler(TemporaryFileUploadHandler):
    """Streams a part to a file that has no name, so that nothing is left of it however the process ends."""

    file: "UploadedFile[bytes]"  # type: ignore[assignment]  # Django's own has a name

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        FileUploadHandler.new_file(self, *args, **kwargs)
        file = TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 - Django closes it with the request
        self.file = UploadedFile(file, self.file_name, self.content_type, 0, self.charset, self.content_type_extra)

    def upload_interrupted(self) -> None:
        """Closes the file, which removes it."""
        if hasattr(self, "file"):
            self.file.close()


def size(request: HttpRequest) -> int:
    """How many bytes the parts have. Raises UploadRefused where the headers say already that they cannot be read."""
    if request.content_type != "multipart/form-data":
        problem = _problem("body", "not_multipart", "multipart/form-data", request.content_type or "no content type")
        raise UploadRefused(415, problem)
    return length(request, len(EVIDENCE_PARTS) * settings.EVIDENCE_MAX_BYTES + SLACK)


def length(request: HttpRequest, limit: int | None) -> int:
    """How many bytes the body has. Raises UploadRefused where that is unknown, or more than `limit`."""
    if "CONTENT_LENGTH" not in request.META or request.headers.get("Transfer-Encoding"):
        problem = _problem("body", "length_required", "a Content-Length", "a body of unknown length")
        raise UploadRefused(411, replace(problem, todo="send files, not pipes: curl -F transcript=@session.jsonl"))
    announced = int(request.META["CONTENT_LENGTH"] or 0)
    if limit is not None and announced > limit:
        raise UploadRefused(413, too_large("body", limit))
    return announced


def read(request: HttpRequest) -> UploadedParts:
    """The parts of a multipart request of known `size`. Raises UploadRefused where it cannot be read at all."""
    bounded = Bounded(request)
    request.upload_handlers.insert(0, bounded)
    try:
        # Parts may be sent as text instead of as files.
        parts: dict[str, IO[bytes]] = {
            name: io.BytesIO(str(value).encode(errors="replace")) for name, value in request.POST.items()
        }
        parts |= {name: file for name, file in request.FILES.items() if isinstance(name, str)}  # type: ignore[misc]  # IO-like
    except RequestDataTooBig as error:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0
        raise UploadRefused(413, too_large("fields that are not files", limit)) from error
    except (MultiPartParserError, SuspiciousOperation, UnreadablePostError) as error:
        raise UploadRefused(400, _problem("body", "unreadable", "a complete multipart body", str(error))) from error
    submission = UploadedParts(problems=[too_large(name, settings.EVIDENCE_MAX_BYTES) for name in bounded.oversized])
    # Parts that nobody would look at: misspelt, or sent twice.
    for name in sorted({str(name) for name in (*request.POST, *request.FILES)}):
        if name not in PARTS:
            expected = f"parts named {', '.join(PARTS)}"
            submission.problems.append(_problem(name[:80], "unknown_part", expected, repr(name[:80])))
        elif len(request.POST.getlist(name)) + len(request.FILES.getlist(name)) > 1:
            repeated = "several; the last one was taken"
            submission.problems.append(_problem(name, "repeated_part", f"one part named {name}", repeated))
    submission.files = {name: parts[name] for name in EVIDENCE_PARTS if name in parts}
    submission.metadata, refused = read_metadata(parts.get("metadata"))
    submission.problems += refused
    return submission


def _problem(part: str, code: str, expected: str, got: str) -> Problem:
    return Problem(part=part, code=code, expected=expected, got=got, todo="correct it and send it again")
