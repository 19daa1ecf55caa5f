"""Playing the phases one after the other on a site that is up."""

import time
from contextlib import closing
from dataclasses import dataclass
from random import Random

from django.conf import settings
from django.db import connection
from django.utils import timezone

from benchmarks.drill import checks, findings, noticing
from benchmarks.drill.findings import Played
from benchmarks.drill.listener import Listener
from benchmarks.drill.phases import PHASES, Phase
from benchmarks.drill.report import Report
from benchmarks.drill.scene import Scene, Script, play, sessions
from benchmarks.drill.site import Site
from benchmarks.drill.stream import Stream
from grading.judging import taking_up
from grading.models import JudgeJob
from grading.models.judging import JobState

TELL_EVERY = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much of it: sessions in a usual phase, kills in all, and of the phases those whose names have one of `only`.

    An empty queue is waited for so long (`patience`, seconds).
    """

    sessions: int
    kills: int
    seed: int
    quick: bool
    patience: float = 180
    only: tuple[str, ...] = ()

    def plays(self, phase: Phase) -> bool:
        if self.only:
            return any(part in phase.name for part in self.only)
        return not (self.quick and phase.alone)


class Drill:
    """One run on a site that is up. `token` is an agent's."""

    def __init__(self, site: Site, plan: Plan, token: str) -> None:
        self.site, self.plan, self.token = site, plan, token
        self.rng = Random(plan.seed)
        self.begun = time.monotonic()
        self.listener = Listener(int(settings.NOTIFY_WEBHOOK.rpartition(":")[2].strip("/")))

    def run(self) -> Report:
        """Play all phases; the report on them."""
        phases = [phase for phase in PHASES if self.plan.plays(phase)]
        with closing(self.listener):
            played = [self.play(number, phase) for number, phase in enumerate(phases)]
        self.say("asking the database what became of them")
        made = findings.report(played, checks.seen_by_judge(self.site.calls(after=0)))
        made.broken += [f"{name} fell by itself" for name in sorted(set(self.site.fell))]
        made.figures["fell_with_broker"] = self.site.fell_with_broker
        made.figures["seconds"] = round(time.monotonic() - self.begun, 1)
        return made

    def play(self, number: int, phase: Phase) -> Played:
        stream = Stream(self.site.web, self.token, number)
        share = round(self.plan.kills * phase.kills)
        scene = Scene(
            site=self.site,
            stream=stream,
            rng=self.rng,
            quick=self.plan.quick,
            kills=share,
            by_hand=bool(share),
            kills_left=share,
            listener=self.listener,
            rule=phase.rule,
        )
        # A database server writes for itself: no limit on the web server's files keeps it from saving.
        sign = (phase.sign if connection.vendor == "sqlite" else "") or phase.rule
        scene.need(not sign or noticing.over(scene, sign), "an earlier fault is still on every page")
        began = timezone.now()
        scripts = [script(scene) for script in phase.scripts]
        scripts += [sessions(scene, round(self.plan.sessions * phase.many), phase.every), self.tell(scene)]
        scripts += [noticing.looking(scene, sign)] * bool(sign)
        play(scripts, self.site)
        self.drain(scene)
        scene.broken += noticing.unnoticed(scene, sign) if sign else []
        stream.close()
        ended = timezone.now()
        seconds = (ended - began).total_seconds()
        told = [
            f"{len(stream.accepted)} sessions in {seconds:.1f} s",
            *scene.remarks,
            *map("BROKEN: {}".format, scene.broken),
        ]
        self.say(f"{phase.name}: {'; '.join(told)}")
        return Played(phase=phase, scene=scene, began=began, ended=ended)

    def drain(self, scene: Scene) -> None:
        """Wait until no job is open; what is still open when patience ends is lost.

        Where workers are killed, three may have been over the same session, which is put aside: somebody has it tried
        again, as often as that takes on a machine so slow that reading outlasts a lease.
        """
        deadline = time.monotonic() + self.plan.patience
        told = time.monotonic()
        while (left := JudgeJob.objects.open().count()) and time.monotonic() < deadline:
            self.site.revive()
            time.sleep(0.1)
            is_over = not JudgeJob.objects.open().exclude(state=JobState.PARKED).exists()
            if scene.by_hand and is_over and (n := taking_up.try_now(by=None)):
                scene.remarks.append(f"{n} put aside, then tried by hand")
            if time.monotonic() - told > TELL_EVERY:
                told = time.monotonic()
                self.say(f"… {left} jobs to go")

    def tell(self, scene: Scene) -> Script:
        while scene.kills_left:
            yield TELL_EVERY
            self.say(f"… {scene.kills_left} kills to go")

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.begun:6.1f} s  {text}", flush=True)
