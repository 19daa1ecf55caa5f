"""What a call asks of a forge: by `gh`, `glab` or `hub`, by its API, or by a tool server."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grading.core.signals.model import EffectKind

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
CHECKS = frozenset({"pr checks", "run watch", "run view", "ci status"})
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
    (re.compile(r"(?:create|submit)\w{0,20}_review$|review_write$"), EffectKind.PR_REVIEWED),
    (re.compile(r"(?:add|create|reply)\w{0,30}_comment$|comment_on_\w{1,20}$"), EffectKind.COMMENT),
    (re.compile(r"(?:create_issue|issue_write)$"), EffectKind.ISSUE_OPENED),
    (re.compile(r"close_issue$"), EffectKind.ISSUE_CLOSED),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request. `effect` None: none that changes anything; `is_check`: it asks for the state of checks.

    `target` is the number or address it names. `tells_by_status`: its success means that the thing is done.
    """

    effect: EffectKind | None = None
    is_check: bool = False
    target: str = ""
    tells_by_status: bool = True


def of_argv(argv: tuple[str, ...]) -> Request:
    """What a forge's command asks for; nothing for a dry run or a page opened in a browser."""
    words = _without_repository(argv[1:])
    if {"--dry-run", "--web", "--help", "-w"} & set(words):
        return Request()
    verb = " ".join(words[:2])
    target = next((word for word in words[2:] if re.fullmatch(r"#?\d{1,9}|https?://\S{1,300}", word)), "")
    if verb in CHECKS:
        return Request(is_check=True, tells_by_status="--exit-status" in words)
    effect = _api(words) if words[:1] == ["api"] else VERBS.get(words[0] if words[:1] == ["pull-request"] else verb)
    return Request(effect=effect, target=target.lstrip("#"), tells_by_status="--auto" not in words)


def of_tool(name: str, arguments: Mapping[str, Any]) -> Request:
    """What a tool server's call asks for, by its name; the target by the numbers in its arguments."""
    last = re.split(r"__|\.|/", name[-200:])[-1].lower()
    effect = next((kind for pattern, kind in TOOLS if pattern.search(last)), None)
    number = next((arguments[key] for key in NUMBERS if isinstance(arguments.get(key), int | str)), "")
    where = "/".join(str(arguments[key]) for key in ("owner", "repo") if isinstance(arguments.get(key), str))
    return Request(effect=effect, target=f"{where}#{number}"[:200] if number else "")


def _without_repository(words: tuple[str, ...]) -> list[str]:
    kept = []
    skip = False
    for word in words:
        if skip or word.startswith("--repo="):
            skip = False
        elif word in ("-R", "--repo"):
            skip = True
        else:
            kept.append(word)
    return kept


def _api(words: list[str]) -> EffectKind | None:
    if not any(API_WRITES.match(word) for word in words):
        return None
    for word in words[1:]:
        path = word.split("?")[0]
        for pattern, kind in API:
            if "/" in path and pattern.search(path):
                return kind
    return None
