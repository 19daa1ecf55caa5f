"""People's actions on an arm, each with its message, and the confirmation pages of some."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any

from django.utils import timezone

from bandit import arms, merging
from bandit.core.moves import moves
from bandit.models import Arm, BanditKind
from bandit.reading import posterior_of
from grading.intake import naming
from grading.plain import counted, primary_key
from grading.screens.moves import words as describe_move

# Acts without parameters: the function, and the rest of the message "<arm> …".
SIMPLE_ACTS: dict[str, tuple[Callable[..., Any], str]] = {
    "pause": (arms.pause, "is paused: it is not chosen until it is resumed"),
    "resume": (arms.resume, "may be chosen again"),
    "retire": (arms.retire, "is retired; its record is kept"),
    "return": (arms.bring_back, "is back, with its record"),
    "try": (arms.put_on_probation, "is on probation"),
    "pass": (arms.end_probation, "is no longer on probation"),
}
# Acts on a break of the arm's level. True confirms the break, False removes it.
BREAKS = {"keep": True, "take_back": False}
ACTS = (*SIMPLE_ACTS, *BREAKS, "rename", "alias", "unalias", "merge", "part")
# Acts with a confirmation page.
CONFIRMED = ("merge", "retire", "part")


def perform(act: str, arm: Arm, post: Mapping[str, str], *, by: str, why: str) -> str:
    """Perform one of ACTS on an arm. Returns the message; raises ValueError with the reason if it can't be done."""
    if act in SIMPLE_ACTS:
        change, outcome = SIMPLE_ACTS[act]
        change(arm, by=by, why=why)
        return f"{arm} {outcome}."
    if act in BREAKS:
        try:
            day = date.fromisoformat(post.get("day", ""))
        except ValueError:
            raise ValueError("enter the day of the break, such as 2026-03-31; nothing was changed") from None
        decision = arms.decide_break(arm, day, is_confirmed=BREAKS[act], by=by, why=why)
        counts = "no longer counts, regardless of its rewards" if decision.kept else "counts again"
        return f"What {arm} earned before {decision.day:%-d %B %Y} {counts}."
    if act == "rename":
        return f"The arm is now called {arms.rename(arm, post.get('title', ''), by=by, why=why)}."
    if act == "alias":
        added = arms.add_alias(arm, post.get("alias", ""), by=by, why=why)
        return f"{added.alias} is now an alias of {arm}."
    if act == "unalias":
        arms.remove_alias(arm, post.get("alias", ""), by=by, why=why)
        return f"{post.get('alias', '')} is no longer an alias. Its earlier sessions stay with {arm}."
    if act == "merge":
        into = _merge_target(arm, post)
        merged = merging.merge(arm, into, by=by, why=why)
        return (
            f"{arm} was merged into {into}: {counted(merged.rewards, 'reward')} moved{_dropped(merged.doubles, into)}."
        )
    if act == "part":
        split = naming.unmerge(arm, by=by, why=why)
        resettled = (
            f"; {len(split.to_settle)} that had changed in the meantime were settled again" if split.to_settle else ""
        )
        return f"{arm} is a separate arm again: {counted(split.rewards, 'reward')} came back{resettled}."
    raise ValueError(f"Nothing was changed: expected one of {', '.join(ACTS)}.")


def _merge_target(arm: Arm, params: Mapping[str, str]) -> Arm:
    """The arm of the same bandit whose primary key is the parameter `into`. Raises ValueError if there is none."""
    other = arm.bandit.arms.filter(pk=primary_key(params.get("into", ""))).first()
    if other is None:
        raise ValueError(f"choose the arm to merge {arm} into; nothing was changed")
    return other


def preview_act(act: str, arm: Arm, params: Mapping[str, str]) -> dict[str, Any]:
    """The confirmation page's context for one of CONFIRMED. Raises ValueError with the reason if it can't be done."""
    if act == "merge":
        into = _merge_target(arm, params)
        preview = merging.preview_merge(arm, into, timezone.now())
        arm_moves = [move for move in moves(arm.bandit.name, preview.before, preview.after) if move.arm != arm.name]
        moving = f"{counted(preview.merged.rewards, 'reward')} move{'s' if preview.merged.rewards == 1 else ''}"
        chooses = arm.bandit.kind == BanditKind.CHOICE
        own = next(describe_move(move, title=str(into), shares=chooses) for move in arm_moves if move.arm == into.name)
        pairs: list[str] = []
        # Harness × model pairs keep their own rewards until they are merged too.
        if arm.bandit.name in {"harness", naming.BANDIT} and "/" not in arm.name:
            pair_arms = Arm.objects.in_bandit("harness").filter(merged_into=None, name__contains="/")
            pairs = [name for name in pair_arms.values_list("name", flat=True) if arm.name in name.split("/", 1)]
        return {
            "do": "merge",
            "into": into,
            "heading": f"Merge {arm} into {into}",
            "effect": f"{moving}{_dropped(preview.merged.doubles, into)}; {own}. {arm} and all its names become "
            f"aliases of {into}. Nothing is deleted: if you split them again, the same rewards come back.",
            "moves": arm_moves if arm.bandit.kind != BanditKind.NAMES else [],
            "chooses": chooses,
            "pairs": pairs,
            "button": f"Merge {arm} into {into}: {moving}",
        }
    if act == "retire":
        share = posterior_of(arm.bandit.name, timezone.now()).next_100(arm.name)
        chosen = ""
        if share:
            count = "Less than 1" if share < 1 else f"About {share:.0f}"
            verb = "moves" if share <= 1 else "move"
            chosen = f"{count} of the next 100 sessions {verb} from {arm} to other arms. "
        return {
            "do": "retire",
            "heading": f"Retire {arm}",
            "effect": f"{chosen}The arm is no longer chosen. Its record and the rewards of later sessions are kept, "
            "and you can bring it back.",
            "button": f"Retire {arm}",
        }
    if arm.merged_into is None:
        raise ValueError(f"{arm} is not merged into another arm; there is nothing to split")
    return {
        "do": "part",
        "heading": f"Split {arm} from {arm.merged_into}",
        "effect": f"{arm} gets its rewards back unchanged. Sessions whose grade has changed in the meantime are "
        f"settled again. Sessions submitted as {arm.merged_into} stay there.",
        "button": f"Split {arm} from {arm.merged_into}",
    }


def _dropped(count: int, into: Arm) -> str:
    return f"; {count} more are dropped because {into} already has a reward of the same session" if count else ""
