"""Grade stored sessions again by the current rules, after showing what that would change."""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from tqdm import tqdm

from grading.evidence import material
from grading.intake import regrading
from grading.intake.regrading import Regraded, RewardSnapshot
from grading.models import Agent, Session
from grading.plain import visible_text
from grading.reward.explain import number
from grading.screens.moves import words

KINDS = 20


class Command(BaseCommand):
    help = (
        "Grade the stored sessions again by the current rules. First shows how many would change and which arms would "
        "move by how much; then asks. Old grades, settlements and ledger rows stay; the bandits end up as if the new "
        "grades had been there from the start. It may be interrupted and run again."
    )

    # The sessions without facts whose logs are gone.
    expired = 0

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--agent", help="only the sessions of one agent")
        parser.add_argument("--since", type=_day, metavar="YYYY-MM-DD", help="sessions that ended on that day or later")
        parser.add_argument("--preview", action="store_true", help="show what would change, and stop")
        parser.add_argument("--yes", action="store_true", help="show it and do it without asking")

    def handle(self, *_args: Any, agent: str | None, since: datetime | None, **options: Any) -> None:
        if options["preview"] and options["yes"]:
            raise CommandError("expected --preview or --yes, not both: --preview changes nothing, --yes asks nothing")
        matching = Session.objects.order_by("pk")
        if agent is not None:
            if not Agent.objects.filter(name=agent).exists():
                names = ", ".join(Agent.objects.order_by("name").values_list("name", flat=True)[:20]) or "there is none"
                raise CommandError(f"expected the name of an agent, got {agent!r}; known are {names}")
            matching = matching.filter(agent__name=agent)
        if since is not None:
            matching = matching.filter(ended_at__gte=since)
        sessions = list(matching.values_list("pk", flat=True))
        if not sessions:
            self.stdout.write("No session matches; there is nothing to grade.")
            return
        previews = self._each(sessions, regrading.preview, "Computing a preview, nothing is changed")
        self.stdout.write(visible_text(summary(previews), lines=True))
        for move in regrading.effects(previews, timezone.now()):
            self.stdout.write(visible_text(f"  {move.bandit}: mean of {words(move)}"))
        if not self.expired and not any(each.changed or each.ledger_rows or each.needs_facts for each in previews):
            self.stdout.write("Nothing would change.")
            return
        agreed = options["yes"]
        if not options["preview"] and not agreed and sys.stdin.isatty():
            agreed = input("Apply these changes? Type yes: ").strip().lower() == "yes"
        if not agreed:
            self.stdout.write("Nothing was changed. Run it again with --yes to apply these changes.")
            return
        done = self._each(sessions, regrading.regrade, "Grading")
        self.stdout.write(f"Graded {len(done):,} sessions again; {sum(each.changed for each in done):,} changed.")

    def _each(self, sessions: Iterable[int], work: Callable[[Session], Regraded], what: str) -> list[Regraded]:
        """The results of `work` for each session, with a progress bar. Sessions that fail are reported and skipped."""
        done: list[Regraded] = []
        skipped = 0
        for key in tqdm(sessions, desc=what, unit="session", disable=None):
            session = Session.objects.with_people().filter(pk=key).first()
            if session is None:  # erased meanwhile
                continue
            try:
                if material.describe_expired(material.judgeable(session)):
                    skipped += 1
                    self.expired += regrading.read_expired(session, is_preview=work is regrading.preview)
                    continue
                done.append(work(session))
            except Exception as error:  # noqa: BLE001 - a session may hold anything
                self.stderr.write(f"{visible_text(str(session))} could not be graded: {error!r}; it was not changed")
        if skipped:
            self.stdout.write(f"{skipped:,} sessions keep their grades: retention deleted their evidence.")
        return done


def summary(done: list[Regraded]) -> str:
    """How many sessions change, by what they were and would be, the most frequent first."""
    changed = [each for each in done if each.changed]
    lines = [f"{len(done):,} sessions: {len(changed):,} would change."]
    by_kind: dict[str, list[Regraded]] = defaultdict(list)
    for each in changed:
        by_kind[f"{_in_words(each.before)} → {_in_words(each.after)}"].append(each)
    for kind, sessions in sorted(by_kind.items(), key=lambda item: -len(item[1]))[:KINDS]:
        first = sessions[0]
        values = f"{number(first.before.learned)} → {number(first.after.learned)}"
        lines.append(f"{len(sessions):6,}  {kind}, for example {first.name}: {values}")
    if len(by_kind) > KINDS:
        lines.append(f"        and {len(by_kind) - KINDS} other kinds of change")
    needing = sum(each.needs_facts for each in done)
    if needing:
        lines.append(f"{needing:6,}  of them will have their logs read for facts, which change no reward")
    enqueued = sum(each.is_enqueued for each in done)
    if enqueued:
        lines.append(f"{enqueued:6,}  of them will be judged: they had no reward, and would have one now")
    return "\n".join(lines)


def _in_words(standing: RewardSnapshot) -> str:
    """A reward as text. Changes between the same texts are counted together."""
    if standing.value is None:
        return f"no reward ({standing.why})" if standing.why else "no reward"
    if standing.source == "floor":
        return f"not graded ({standing.why[:1].lower()}{standing.why[1:]})" if standing.why else "not graded"
    return f"{standing.source} at weight {standing.weight:g}"


def _day(text: str) -> datetime:
    """Midnight of a day like 2026-03-31 in the site's zone. Raises CommandError."""
    try:
        return timezone.make_aware(datetime.strptime(text, "%Y-%m-%d"))  # noqa: DTZ007 - made aware at once
    except ValueError as error:
        raise CommandError(f"expected a day like 2026-03-31, got {text!r}") from error
