"""Requests to a forge: by `gh`, `glab` or `hub`, by its API, or by a tool server."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from grading.formats.values import text
from grading.signals.model import Check, EffectKind

PROGRAMS = frozenset({"gh", "glab", "hub"})
VERB_EFFECTS = {
    "pr create": EffectKind.PR_OPENED,
    "pr merge": EffectKind.PR_MERGED,
    "pr close": EffectKind.PR_CLOSED,
    "pr review": EffectKind.PR_REVIEWED,
    "pr comment": EffectKind.COMMENT,
    "mr create": EffectKind.PR_OPENED,
    "mr merge": EffectKind.PR_MERGED,
    "mr note": EffectKind.COMMENT,
    "issue create": EffectKind.ISSUE_OPENED,
    "issue close": EffectKind.ISSUE_CLOSED,
    "issue comment": EffectKind.COMMENT,
    "issue note": EffectKind.COMMENT,
}
CHECK_VERBS = frozenset({"pr checks", "run watch", "run view", "run list", "ci status"})
TARGET = re.compile(r"#?\d{1,9}|https?://\S{1,300}")
BODY_FLAGS = frozenset({"-b", "--body", "-m", "--message"})
BODY_ASSIGNMENT = re.compile(r"(?:--)?body=")
NUMBER_KEYS = ("pull_number", "pullNumber", "issue_number", "number")
API_PATHS = (
    (re.compile(r"pulls/\d+/merge/?$|merge_requests/\d+/merge/?$"), EffectKind.PR_MERGED),
    (re.compile(r"(?:pulls|merge_requests)/?$"), EffectKind.PR_OPENED),
    (re.compile(r"pulls/\d+/reviews/?$"), EffectKind.PR_REVIEWED),
    (re.compile(r"(?:comments(?:/\d+/replies)?|replies|notes)/?$"), EffectKind.COMMENT),
    (re.compile(r"issues/?$"), EffectKind.ISSUE_OPENED),
)
API_WRITES = re.compile(r"-[fF]$|-[fF]\w|--(?:raw-)?field|--input|(?:-X|--method)?=?(?:POST|PUT)$")
TOOL_NAMES = (
    (re.compile(r"create_(?:pull_request|merge_request|pr)$"), EffectKind.PR_OPENED),
    (re.compile(r"merge_(?:pull_request|merge_request|pr)$"), EffectKind.PR_MERGED),
    (re.compile(r"(?:create|submit)\w{0,40}_review$|review_write$"), EffectKind.PR_REVIEWED),
    (re.compile(r"(?:add|create|reply)\w{0,30}_comment$|comment_on_\w{1,20}$"), EffectKind.COMMENT),
    (re.compile(r"(?:create_issue|issue_write)$"), EffectKind.ISSUE_OPENED),
    (re.compile(r"close_issue$"), EffectKind.ISSUE_CLOSED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeRequest:
    """One request: what it changes, or what it queries.

    `target` is the number or URL that it names. `done_on_success`: an exit code of 0 means that it is done, or that the
    checks passed. `body`: the digest of the comment that it posts.
    """

    kind: EffectKind | Check
    target: str = ""
    done_on_success: bool = True
    body: str = ""


def parse_command(argv: tuple[str, ...], document: str | None = None) -> ForgeRequest | None:
    """The request of a forge's command line; None if it neither changes nor queries anything, such as a dry run or a
    page opened in a browser. `document` is the here-document that the command reads.
    """
    arguments = _without_repository(argv[1:])
    if {"--dry-run", "--web", "--help", "-w"} & set(arguments):
        return None
    verb = " ".join(arguments[:2])
    target = next((word.lstrip("#") for word in arguments[2:] if TARGET.fullmatch(word)), "")
    if verb in CHECK_VERBS:
        prints_log = any(word.startswith("--log") for word in arguments)
        done_on_success = "--exit-status" in arguments
        return None if prints_log else ForgeRequest(kind=Check.CI, target=target, done_on_success=done_on_success)
    if verb == "pr view":
        if any("statusCheckRollup" in word for word in arguments):
            return ForgeRequest(kind=Check.CI, target=target, done_on_success=False)
        return ForgeRequest(kind=Check.MERGE, target=target)
    if arguments[:1] == ["api"]:
        effect = _api_effect(arguments)
    elif arguments[:1] == ["pull-request"]:  # of hub
        effect = EffectKind.PR_OPENED
    else:
        effect = VERB_EFFECTS.get(verb)
    if effect is None:
        return None
    body = _find_body(arguments) or document or ""
    # A text with a shell variable isn't what is posted, so it has no digest.
    has_digest = effect is EffectKind.COMMENT and "$" not in body
    return ForgeRequest(
        kind=effect,
        target=target,
        # `glab mr merge` may only schedule the merge for when the pipeline has passed.
        done_on_success=argv[0].endswith("gh") and not {"--auto", "--disable-auto"} & set(arguments),
        body=_digest(body) if has_digest else "",
    )


def _without_repository(arguments: Sequence[str]) -> list[str]:
    """The arguments without the option that names a repository."""
    repository_options = ("-R", "--repo")
    return [
        word
        for previous, word in pairwise(("", *arguments))
        if word not in repository_options and previous not in repository_options and not word.startswith("--repo=")
    ]


def _find_body(arguments: Sequence[str]) -> str:
    """The text of a comment; "" without one. `--body=text` wins over `--body text`."""
    for word in arguments:
        if BODY_ASSIGNMENT.match(word):
            return word.partition("=")[2]
    return next((word for flag, word in pairwise(arguments) if flag in BODY_FLAGS), "")


def _api_effect(arguments: list[str]) -> EffectKind | None:
    """What a `gh api` request changes, by the first path that names a kind; None if it only reads or names none."""
    if not any(map(API_WRITES.match, arguments)):
        return None
    for word in arguments[1:]:
        path = word.split("?")[0]
        for pattern, kind in API_PATHS:
            if "/" in path and pattern.search(path):
                return kind
    return None


def parse_tool_call(name: str, arguments: Mapping[str, Any]) -> ForgeRequest | None:
    """The request of a tool server's call, from the tool's name and arguments; None if it changes nothing."""
    tool = re.split(r"__|\.|/", name[-200:])[-1].lower()
    effect = next((kind for pattern, kind in TOOL_NAMES if pattern.search(tool)), None)
    if effect is None:
        return None
    number = next((arguments[key] for key in NUMBER_KEYS if isinstance(arguments.get(key), int | str)), "")
    repository = "/".join(str(arguments[key]) for key in ("owner", "repo") if isinstance(arguments.get(key), str))
    body = text(arguments.get("body"))
    return ForgeRequest(
        kind=effect,
        target=f"{repository}#{number}"[:200] if number else "",
        body=_digest(body) if effect is EffectKind.COMMENT else "",
    )


def _digest(body: str) -> str:
    """A digest by which a comment posted twice is recognised, whatever its white space; "" for an empty one."""
    plain_body = " ".join(body.split())
    if not plain_body:
        return ""
    return hashlib.blake2b(plain_body.encode(errors="surrogatepass"), digest_size=12).hexdigest()
