"""The two errors that stop a transcript from being read. All lesser problems are counted and reported."""


class UnknownFormat(ValueError):
    """No supported format was detected in the first bytes of a transcript.

    The message says what was expected, what was there and what to do; `reason` is only the detector's part of it.
    """

    def __init__(self, reason: str, *, expected: tuple[str, ...], head: bytes, filename: str = "") -> None:
        self.reason = reason
        self.expected = expected
        name = f" {filename!r}" if filename else ""
        super().__init__(
            f"unknown transcript format: expected one of {', '.join(expected)}; got{name} {reason}, beginning with "
            f"{head[:80]!r}. Submit the log file that the harness itself wrote, unchanged and as UTF-8; "
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
