"""What a call asks of a forge: by `gh`, `glab` or `hub`, by its API, or by a tool server."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from grading.signals.model import EffectKind

PROGRAMS = frozenset({"gh", "glab", "hub"})
VERBS = {
    "pull-request": EffectKind.PR_OPENED,
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
CHECKS = frozenset({"pr checks", "run watch", "run view", "run list", "ci status"})
BODIES = frozenset({"-b", "--body", "-m", "--message"})
NUMBERS = ("pull_number", "pullNumber", "issue_number", "number")
API = (
    (re.compile(r"pulls/\d+/merge/?$|merge_requests/\d+/merge/?$"), EffectKind.PR_MERGED),
    (re.compile(r"(?:pulls|merge_requests)/?$"), EffectKind.PR_OPENED),
    (re.compile(r"pulls/\d+/reviews/?$"), EffectKind.PR_REVIEWED),
    (re.compile(r"(?:comments(?:/\d+/replies)?|replies|notes)/?$"), EffectKind.COMMENT),
    (re.compile(r"issues/?$"), EffectKind.ISSUE_OPENED),
)
API_WRITES = re.compile(r"-[fF]$|-[fF]\w|--(?:raw-)?field|--input|(?:-X|--method)?=?(?:POST|PUT)$")
TOOLS = (
    (re.compile(r"create_(?:pull_request|merge_request|pr)$"), EffectKind.PR_OPENED),
    (re.compile(r"merge_(?:pull_request|merge_request|pr)$"), EffectKind.PR_MERGED),
    (re.compile(r"(?:create|submit)\w{0,40}_review$|review_write$"), EffectKind.PR_REVIEWED),
    (re.compile(r"(?:add|create|reply)\w{0,30}_comment$|comment_on_\w{1,20}$"), EffectKind.COMMENT),
    (re.compile(r"(?:create_issue|issue_write)$"), EffectKind.ISSUE_OPENED),
    (re.compile(r"close_issue$"), EffectKind.ISSUE_CLOSED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgeRequest:
    """One request. `effect` None: none that changes anything; `is_check`: it asks for the state of checks, `is_view`
    for a pull request's own.

    `target` is the number or address it names. `tells_by_status`: its success means that the thing is done. `body`: a
    digest of the comment that it posts.
    """

    effect: EffectKind | None = None
    is_check: bool = False
    is_view: bool = False
    target: str = ""
    tells_by_status: bool = True
    body: str = ""


def of_argv(argv: tuple[str, ...], document: str | None = None) -> ForgeRequest:
    """What a forge's command asks for; nothing for a dry run or a page opened in a browser."""
    words: list[str] = []
    rest = iter(argv[1:])
    for word in rest:
        if word in ("-R", "--repo"):
            next(rest, None)
        elif not word.startswith("--repo="):
            words.append(word)
    if {"--dry-run", "--web", "--help", "-w"} & set(words):
        return ForgeRequest()
    verb = " ".join(words[:2])
    target = next((word for word in words[2:] if re.fullmatch(r"#?\d{1,9}|https?://\S{1,300}", word)), "")
    if verb in CHECKS:
        is_log = any(word.startswith("--log") for word in words)
        return ForgeRequest(is_check=not is_log, target=target.lstrip("#"), tells_by_status="--exit-status" in words)
    if verb == "pr view" and any("statusCheckRollup" in word for word in words):
        return ForgeRequest(is_check=True, target=target.lstrip("#"), tells_by_status=False)
    if verb == "pr view":
        return ForgeRequest(is_view=True, target=target.lstrip("#"))
    if words[:1] == ["api"]:
        paths = [path for path in (word.split("?")[0] for word in words[1:]) if "/" in path]
        kinds = (kind for path in paths for pattern, kind in API if pattern.search(path))
        effect = next(kinds, None) if any(map(API_WRITES.match, words)) else None
    else:
        effect = VERBS.get(words[0] if words[:1] == ["pull-request"] else verb)
    body = next((word for flag, word in pairwise(words) if flag in BODIES), "")
    body = next((word.partition("=")[2] for word in words if re.match(r"(?:--)?body=", word)), body) or document or ""
    is_comment = effect is EffectKind.COMMENT and "$" not in body
    return ForgeRequest(
        effect=effect,
        target=target.lstrip("#"),
        # glab may only set a merge request to merge when its pipeline has passed.
        tells_by_status=not {"--auto", "--disable-auto"} & set(words) and argv[0].endswith("gh"),
        body=_digest(body) if is_comment else "",
    )


def of_tool(name: str, arguments: Mapping[str, Any]) -> ForgeRequest:
    """What a tool server's call asks for, by its name; the target by the numbers in its arguments."""
    last = re.split(r"__|\.|/", name[-200:])[-1].lower()
    effect = next((kind for pattern, kind in TOOLS if pattern.search(last)), None)
    number = next((arguments[key] for key in NUMBERS if isinstance(arguments.get(key), int | str)), "")
    where = "/".join(str(arguments[key]) for key in ("owner", "repo") if isinstance(arguments.get(key), str))
    body = arguments.get("body")
    is_comment = effect is EffectKind.COMMENT and isinstance(body, str)
    return ForgeRequest(
        effect=effect,
        target=f"{where}#{number}"[:200] if number else "",
        body=_digest(str(body)) if is_comment else "",
    )


def _digest(body: str) -> str:
    """What makes two comments the same one posted twice; empty for none."""
    words = " ".join(body.split())
    return hashlib.blake2b(words.encode(errors="surrogatepass"), digest_size=12).hexdigest() if words else ""
