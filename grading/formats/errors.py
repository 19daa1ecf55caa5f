"""The errors that stop a transcript from being read. Lesser problems are counted and reported."""

from collections.abc import Iterable


class UnknownFormat(ValueError):
    """No supported format was detected in the first bytes of a transcript.

    The message says what was expected, what was there and what to do; `reason` is only the detector's part of it.
    `harness` is the name of the harness if it is known but its logs are not read yet, else "".
    """

    def __init__(
        self, reason: str, *, head: bytes = b"", filename: str = "", harness: str = "", formats: Iterable[str] = ()
    ) -> None:
        self.reason, self.harness = reason, harness
        name = f" {filename!r}" if filename else ""
        expected = f"one of {', '.join(formats)}" if formats else "the log of a supported harness"
        beginning = f", beginning with {head[:80]!r}" if head else ""
        super().__init__(
            f"unknown transcript format: expected {expected}; got{name} {reason}{beginning}. Submit "
            "the log file that the harness itself wrote, unchanged and as UTF-8; "
            "a harness not named here needs a format module first."
        )


class EmptyTranscript(ValueError):
    """A transcript without bytes, or of whitespace only: the session's log was never written."""

    def __init__(self, filename: str = "") -> None:
        name = f" {filename!r}" if filename else ""
        super().__init__(
            f"empty transcript: expected a session log, got the file{name} with nothing in it. Check that the hook "
            "was given the session's own log and that the harness had closed it; without one, submit no transcript."
        )
