"""What people do to one arm: the words of each act, and of those that are asked about before they are done."""

from collections.abc import Callable, Mapping
from typing import Any

from django.utils import timezone

from bandit import arms, merging
from bandit.models import Arm, BanditKind
from bandit.selection import posterior_of
from grading.intake import naming
from grading.screens.scale.shifts import ArmShift, arm_shifts, effect

Done = Callable[[Arm, Mapping[str, str], str, str], str]


def _said(act: Callable[..., Any], words: str) -> Done:
    """An act without more to say than who and why."""

    def do(arm: Arm, post: Mapping[str, str], by: str, why: str) -> str:  # noqa: ARG001 - as the others
        act(arm, by=by, why=why)
        return f"{arm} {words}."

    return do


def _rename(arm: Arm, post: Mapping[str, str], by: str, why: str) -> str:
    return f"It is called {arms.rename(arm, post.get('title', ''), by=by, why=why)} now."


def _alias(arm: Arm, post: Mapping[str, str], by: str, why: str) -> str:
    made = arms.add_alias(arm, post.get("alias", ""), by=by, why=why)
    return f"{made.alias} means {arm} from now on."


def _unalias(arm: Arm, post: Mapping[str, str], by: str, why: str) -> str:
    arms.remove_alias(arm, post.get("alias", ""), by=by, why=why)
    return f"{post.get('alias', '')} is unknown from now on; what came under it stays with {arm}."


def _merge(arm: Arm, post: Mapping[str, str], by: str, why: str) -> str:
    into = _other(arm, post)
    done = merging.merge(arm, into, by=by, why=why)
    return f"{arm} is another name of {into} now: {rewards(done.moved)} moved{_doubles(done.kept, into)}."


def _part(arm: Arm, post: Mapping[str, str], by: str, why: str) -> str:  # noqa: ARG001 - as the others
    done = naming.unmerge(arm, by=by, why=why)
    again = f"; {len(done.again)} that had changed since were settled again" if done.again else ""
    return f"{arm} is an arm of its own again: {rewards(done.moved)} came back{again}."


ACTS: dict[str, Done] = {
    "pause": _said(arms.pause, "is paused: it is not chosen until it is resumed"),
    "resume": _said(arms.resume, "may be chosen again"),
    "retire": _said(arms.retire, "is retired; its record stays"),
    "return": _said(arms.bring_back, "is back, with its record"),
    "try": _said(arms.put_on_probation, "is on probation"),
    "pass": _said(arms.end_probation, "is not on probation any more"),
    "rename": _rename,
    "alias": _alias,
    "unalias": _unalias,
    "merge": _merge,
    "part": _part,
}


def _other(arm: Arm, said: Mapping[str, str]) -> Arm:
    into = said.get("into", "")
    found = arm.bandit.arms.filter(pk=int(into)).first() if into.isdecimal() and len(into) < 19 else None  # noqa: PLR2004 - 64 bits
    if found is None:
        raise ValueError(f"choose the arm that {arm} is to be merged into; nothing was changed")
    return found


# --- asked before it is done -----------------------------------------------------------------------------------------


def _ask_merge(arm: Arm, said: Mapping[str, str]) -> dict[str, Any]:
    into = _other(arm, said)
    seen = merging.preview_merge(arm, into, timezone.now())
    shifts = [row for row in arm_shifts(seen.before, seen.after) if row.arm != arm.name]
    told = f"{rewards(seen.merged.moved)} move{'s' if seen.merged.moved == 1 else ''}{_doubles(seen.merged.kept, into)}"
    return {
        "do": "merge",
        "into": into,
        "heading": f"Merge {arm} into {into}",
        "words": f"{told}; {_own(shifts, into)}. {arm} and all its names mean {into} from then on. Nothing is deleted: "
        f"parting the two brings the same rewards back.",
        "shifts": shifts if arm.bandit.kind != BanditKind.NAMES else [],
        "pairs": _pairs(arm),
        "button": f"Merge {arm} into {into}: {rewards(seen.merged.moved)} move{'s' if seen.merged.moved == 1 else ''}",
    }


def _ask_retire(arm: Arm, said: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    share = posterior_of(arm.bandit.name, timezone.now()).share_of_next_100(arm.name)
    chosen = f"About {share:.0f} of the next 100 that would be {arm} go to the others. " if share else ""
    return {
        "do": "retire",
        "heading": f"Retire {arm}",
        "words": f"{chosen}It is not chosen any more. Its record stays, rewards of sessions that still come are kept, "
        "and it can be brought back.",
        "button": f"Retire {arm}",
    }


def _ask_part(arm: Arm, said: Mapping[str, str]) -> dict[str, Any]:  # noqa: ARG001 - as the others
    if arm.merged_into is None:
        raise ValueError(f"{arm} is not merged into another arm; nothing to part")
    return {
        "do": "part",
        "heading": f"Part {arm} from {arm.merged_into}",
        "words": f"The rewards that came with {arm} go back to it as they were. Those whose grade was changed since "
        f"are settled again, and sessions that came as {arm.merged_into} stay there.",
        "button": f"Part {arm} from {arm.merged_into}",
    }


ASKED: dict[str, Callable[[Arm, Mapping[str, str]], dict[str, Any]]] = {
    "merge": _ask_merge,
    "retire": _ask_retire,
    "part": _ask_part,
}


def rewards(count: int) -> str:
    return f"{count} reward{'' if count == 1 else 's'}"


def _doubles(kept: int, into: Arm) -> str:
    return f", {kept} more only end because {into} has one of the same session" if kept else ""


def _own(shifts: list[ArmShift], into: Arm) -> str:
    return effect([row for row in shifts if row.arm == into.name]).replace("no arm moves", f"{into} does not move")


def _pairs(arm: Arm) -> list[str]:
    """Arms that are pairs with this one: harness × model pairs keep their own rewards until they are merged too."""
    if arm.bandit.name not in {"harness", naming.BANDIT} or "/" in arm.name:
        return []
    names = Arm.objects.of("harness").filter(merged_into=None, name__contains="/").values_list("name", flat=True)
    return [name for name in names if arm.name in name.split("/", 1)]
