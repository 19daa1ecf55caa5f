"""gptme's terminal output, as its evals store it, turned into the messages of a `conversation.jsonl`.

While it waits, the terminal shows "Thinking...", and wipes the line after the reply. Then comes the tool's own output,
and then gptme's message with the result. Records have no time of their own; `origin` is what distinguishes equal ones.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from grading.formats.lines import LineTally, decode_text
from grading.formats.values import usd_or_none

BANNER: Final = "--- Start of generation ---"
PAST_MESSAGES: Final = "--- ^^^ past messages ^^^ ---"
SPEAKER: Final = re.compile(r"^(?:> )?(User|Assistant|System): ?", re.MULTILINE)
WAITING: Final = "Thinking..."
WIPED: Final = re.compile(r"[\r ]{60,}")
WIPE: Final = "\x00\n"
CLOSING: Final = re.compile(r"^\[\d\d:\d\d:\d\d\] |^--- Finished generation ---", re.MULTILINE)
# A thought's tags are printed twice, once as they stream.
TWICE: Final = re.compile(r"</?think(?:ing)?>?[ \r]{2,}(?=</?think)")
THOUGHT_OPEN, THOUGHT_CLOSE = re.compile(r"<think(?:ing)?>"), re.compile(r"</think(?:ing)?>")
BUDGET: Final = re.compile(r"<(?:budget|system_info)")
# The terminal removes git's brackets as its own markup. The tool's own output before it still has them.
GIT_LINE: Final = re.compile(r"^\[[^\[\]\n]{1,100} [0-9a-f]{7,40}\](?P<subject>.{1,200})$", re.MULTILINE)
MODEL: Final = re.compile(r"Using model: (\S{1,200})")
# Long paths are wrapped into indented lines.
LOGDIR: Final = re.compile(
    r"Using logdir:?\s{1,80}(\S{1,200}(?:\n {5,20}\S{1,200}){0,5}?)(?=\n {5,20}Using|\nSkipped|\n-)"
)
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d(?=-)")
TIME: Final = re.compile(r"^\[(\d\d:\d\d:\d\d)\]", re.MULTILINE)
END: Final = re.compile(r"\[(\d\d:\d\d:\d\d)\] Session: \$(\d{1,6}\.\d{1,6})")
MAX_PREAMBLE: Final = 4_000


def is_terminal_output(head: bytes) -> bool:
    """Whether a file begins like the terminal output of a session."""
    text = head[:MAX_PREAMBLE].decode(errors="replace")
    return text.lstrip().startswith(BANNER) or ("Using logdir" in text and PAST_MESSAGES in text)


def read_terminal_output(
    stream: BinaryIO, tally: LineTally, *, max_size: int
) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yields (a unique text, message) for each message; the first record describes the session, and so does the last.

    What comes after `max_size` bytes is skipped and noted.
    """
    data = stream.read(max_size)
    if stream.read(1):
        tally.oversized += 1
        tally.problems.note(f"what comes after {max_size} bytes was skipped")
    text = decode_text(data, tally).replace("\x00", "\ufffd")
    plain_text = WIPED.sub(WIPE, TWICE.sub("", text.replace("\r\n", "\n")))
    preamble, *parts = SPEAKER.split(plain_text)
    session = _read_preamble(text[:MAX_PREAMBLE])
    origin = session.get("logdir") or preamble
    tally.lines += 1
    yield b"preamble", {"terminal": session}
    output = ""
    for index in range(0, len(parts) - 1, 2):
        message, output = _read_message(parts[index], parts[index + 1], output)
        if message:
            tally.lines += 1
            yield b"%d" % index, message | {"origin": f"{origin}/{index}"}
    if ends := END.findall(text[-MAX_PREAMBLE:]):
        time, cost = ends[-1]
        tally.lines += 1
        yield b"end", {"terminal": {"cost": usd_or_none(float(cost)), "timestamp": _time(session, time)}}


def _read_preamble(preamble: str) -> dict[str, Any]:
    """The session's model, log folder and start, as far as the first lines show them."""
    session: dict[str, Any] = {}
    if match := MODEL.search(preamble):
        session["model"] = match[1]
    if match := LOGDIR.search(re.sub(r"[ \t]+$", "", preamble, flags=re.MULTILINE)):
        session["logdir"] = re.sub(r"\n *", "", match[1])
    if match := TIME.search(preamble):
        session["timestamp"] = _time(session, match[1])
    return session


def _time(session: dict[str, Any], time: str) -> str:
    """A time of day as a time, on the date in the log folder's name; "" without one."""
    date = DATE.search(session.get("logdir", "").rpartition("/")[2])
    return f"{date[0]}T{time}" if date else ""


def _read_message(speaker: str, part: str, output: str) -> tuple[dict[str, Any], str]:
    """(the message, empty if it has no text; the tool's own output that follows it).

    `part` is what the speaker's name is followed by, and `output` the tool's own output before it.
    """
    text, _wipe, after = part.partition(WIPE)
    text = CLOSING.split(text, maxsplit=1)[0].strip()
    if speaker == "Assistant":
        reply = _put_thoughts_first(text.removeprefix(WAITING).strip())
        # Versions of 2024 don't wipe after a reply: the tool's own output is at the end of what follows its last call.
        next_output = after or text.rpartition("```")[2]
        return ({"role": "assistant", "content": reply} if reply else {}), next_output
    if BUDGET.match(text):
        return {}, output
    return {"role": speaker.lower(), "content": _restore_brackets(text, output)}, output


def _put_thoughts_first(reply: str) -> str:
    """A reply with its thoughts at its beginning, where the parser looks for them: calls between them did run."""
    thoughts: list[str] = []
    others: list[str] = []
    start = 0
    while (opened := THOUGHT_OPEN.search(reply, start)) and (closed := THOUGHT_CLOSE.search(reply, opened.end())):
        others.append(reply[start : opened.start()])
        thoughts.append(reply[opened.start() : closed.end()])
        start = closed.end()
    others.append(reply[start:])
    return "\n\n".join(filter(None, map(str.strip, [*thoughts, *others])))


def _restore_brackets(text: str, output: str) -> str:
    """The text with git's lines as the tool's own output has them."""
    for match in reversed(list(GIT_LINE.finditer(output))):
        subject = rf"^{re.escape(match['subject'])}$"
        if subject_line := re.search(subject, text, re.MULTILINE):
            text = text[: subject_line.start()] + match[0] + text[subject_line.end() :]
    return text
