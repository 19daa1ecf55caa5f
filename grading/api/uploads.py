"""Reading the parts of a submission from a request. They are streamed to disk, up to a size limit."""

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
# Bytes that the parts' headers and the metadata may add to the evidence.
OVERHEAD = 1 << 20


class UploadRefused(Exception):
    """The request cannot be read at all, and nothing of it was stored. The reply has this status and problem."""

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(str(problem))
        self.status = status
        self.problem = problem


@dataclass(slots=True, kw_only=True)
class UploadedParts:
    """The parts of one request: valid metadata or None, the evidence by name of its part, and the problems."""

    metadata: SubmittedSession | None = None
    files: dict[str, IO[bytes]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


class SizeLimitHandler(FileUploadHandler):
    """Skips a file as soon as it exceeds the site's limit, and goes on with the other parts."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request)
        self.oversized: list[str] = []

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        if start + len(raw_data) > settings.EVIDENCE_MAX_BYTES:
            self.oversized.append(str(self.field_name))
            raise SkipFile
        return raw_data

    def file_complete(self, file_size: int) -> None:
        """Return None: the next handler returns the file."""
        del file_size


class UnnamedFileUploadHandler(TemporaryFileUploadHandler):
    """Streams a part to a file without a name, which disappears however the process ends."""

    file: "UploadedFile[bytes]"  # type: ignore[assignment]  # Django's own has a name

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        FileUploadHandler.new_file(self, *args, **kwargs)
        file = TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR)  # noqa: SIM115 - Django closes it with the request
        self.file = UploadedFile(file, self.file_name, self.content_type, 0, self.charset, self.content_type_extra)

    def upload_interrupted(self) -> None:
        """Close the file, which deletes it."""
        if hasattr(self, "file"):
            self.file.close()


def size(request: HttpRequest) -> int:
    """The number of bytes of a submission's body. Raises UploadRefused if the headers show that it can't be read."""
    if request.content_type != "multipart/form-data":
        problem = _problem("body", "not_multipart", "multipart/form-data", request.content_type or "no content type")
        raise UploadRefused(415, problem)
    return length(request, len(EVIDENCE_PARTS) * settings.EVIDENCE_MAX_BYTES + OVERHEAD)


def length(request: HttpRequest, limit: int | None) -> int:
    """The number of bytes of the body. Raises UploadRefused if that is unknown or more than `limit`."""
    if "CONTENT_LENGTH" not in request.META or request.headers.get("Transfer-Encoding"):
        problem = _problem("body", "length_required", "a Content-Length", "a body of unknown length")
        raise UploadRefused(411, replace(problem, todo="send files, not pipes: curl -F transcript=@session.jsonl"))
    announced = int(request.META["CONTENT_LENGTH"] or 0)
    if limit is not None and announced > limit:
        raise UploadRefused(413, too_large("body", limit))
    return announced


def read(request: HttpRequest) -> UploadedParts:
    """The parts of a multipart request whose `size` was checked. Raises UploadRefused if it can't be read at all."""
    size_limit = SizeLimitHandler(request)
    request.upload_handlers.insert(0, size_limit)
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
    submission = UploadedParts(problems=[too_large(name, settings.EVIDENCE_MAX_BYTES) for name in size_limit.oversized])
    # Parts that would be ignored: misspelt, or sent twice.
    for name in sorted({str(name) for name in (*request.POST, *request.FILES)}):
        if name not in PARTS:
            expected = f"parts named {', '.join(PARTS)}"
            submission.problems.append(_problem(name[:80], "unknown_part", expected, repr(name[:80])))
        elif len(request.POST.getlist(name)) + len(request.FILES.getlist(name)) > 1:
            repeated = "several; the last one was taken"
            submission.problems.append(_problem(name, "repeated_part", f"one part named {name}", repeated))
    submission.files = {name: parts[name] for name in EVIDENCE_PARTS if name in parts}
    submission.metadata, metadata_problems = read_metadata(parts.get("metadata"))
    submission.problems += metadata_problems
    return submission


def _problem(part: str, code: str, expected: str, got: str) -> Problem:
    return Problem(part=part, code=code, expected=expected, got=got, todo="correct it and send it again")
