"""The facts that advice is given on, and where each piece of it leads."""

import datetime as dt
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Count
from django.urls import reverse
from django.utils.http import urlencode

from bandit.core.advice import AdviceKind, ArmFacts, BanditFacts, advise, jump
from bandit.eligibility import SUPPLY_DECISIONS, arms_without_work
from bandit.models import Arm, Selection
from grading.reward.calibrating import UNJUDGED
from grading.screens.bandit.decisions import DecisionLog
from grading.screens.bandit.travel import Belief, Moments

# The bandits by whose arms the list of sessions is filtered.
FILTERS = ("category", "harness")


def pieces(
    belief: Belief, arms: Mapping[str, Arm], log: DecisionLog, at: Moments, pairs: int | None
) -> list[dict[str, Any]]:
    """What the bandit's numbers say is wrong with it, each with a link to where it is done; empty where nothing is. One
    query, or two.
    """
    bandit = belief.bandit.name
    policy = reverse("admin:policy", args=[bandit])
    places = {
        AdviceKind.UNFINISHED: ("The decisions", "#decisions"),
        AdviceKind.SUPPLY: ("The decisions", "#decisions"),
        AdviceKind.FROZEN: ("The policy", policy),
        AdviceKind.FLAT: ("Calibration", reverse("admin:calibration")),
        AdviceKind.UNCALIBRATED: ("Review", reverse("admin:review")),
        AdviceKind.JUDGE_MOVED: ("Calibration", reverse("admin:calibration")),
    }
    linked = []
    for advice in advise(facts(belief, arms, log, at, pairs)):
        first = next((arm for arm in arms.values() if advice.arms and str(arm) == advice.arms[0]), None)
        named = "" if first is None else first.name.partition("/")[0]
        link, url = places.get(advice.kind, ("Its rewards", ledger_of(first)))
        if named and advice.kind is AdviceKind.FALLBACK and bandit in FILTERS:
            link, url = f"Sessions of {named}", f"{reverse('admin:sessions')}?{urlencode({bandit: named})}"
        linked.append({"advice": advice, "link": link, "url": url})
    return linked


def facts(belief: Belief, arms: Mapping[str, Arm], log: DecisionLog, at: Moments, pairs: int | None) -> BanditFacts:
    """What the rules of advice look at. Arms that were merged into others are left out; of supply only now tells."""
    posterior, chances = belief.outlook.posterior, belief.outlook.chances
    bound = {} if at.is_past else arms_without_work(row.eligible for row in log.counted[:SUPPLY_DECISIONS])
    outlook_of = {name: arm for name, arm in belief.outlook.arms.items() if arms[name].merged_into_id is None}
    # Advice asks how often an arm was chosen only where it has no reward.
    without_rewards = [arms[name] for name in outlook_of if not belief.rewarded(name)]
    decisions = decisions_until(without_rewards, at.until)
    arm_facts = []
    for name, arm in outlook_of.items():
        fact = ArmFacts(
            name=str(arms[name]),
            live=name in chances,
            rewards=belief.rewarded(name),
            mean=arm.mean,
            observed_mean=belief.plain_means.get(name),
            evidence=sum(each.pseudo for each in arm.evidence),
            fallback=sum(each.pseudo for each in arm.evidence if each.source in UNJUDGED),
            jump=jump(arm, posterior.evidence_scale),
            chance=chances.get(name, 0.0),
            decisions=decisions[name],
            unfinished=log.unfinished(name),
            unsupplied=bound.get(name, 0),
        )
        arm_facts.append(fact)
    shifts = () if posterior.changes is None else posterior.changes.shifts
    return BanditFacts(arms=arm_facts, decisions=SUPPLY_DECISIONS, pairs=pairs, shifts=shifts)


def decisions_until(arms: Collection[Arm], until: dt.datetime) -> Counter[str]:
    """How many decisions chose each of these arms until then, by the arm's name."""
    selections = Selection.objects.filter(arm__in=[arm.pk for arm in arms], created__lte=until).order_by()
    return Counter(dict(selections.values_list("arm__name").annotate(n=Count("pk"))))


def ledger_of(arm: Arm | None) -> str:
    """The very entries that an arm's posterior is folded from."""
    query = "" if arm is None else f"?arm__id__exact={arm.pk}"
    return reverse("admin:bandit_ledgerentry_changelist") + query
