"""Plays the phases one after the other on a site that is up."""

import time
from argparse import Namespace
from contextlib import closing
from random import Random

from django.conf import settings
from django.db import connection
from django.utils import timezone

from benchmarks.drill import checks, findings, noticing
from benchmarks.drill.findings import PlayedPhase, Report
from benchmarks.drill.phases import PHASES, Phase
from benchmarks.drill.scene import Listener, Scene, Script, Stream, play, send_sessions
from benchmarks.drill.site import Site
from grading.judging import sweeper
from grading.models import JudgeJob
from grading.models.judging import JobState

PROGRESS_SECONDS = 5
# What the top of every page says while an alarm of the rule is open: the judge's line, or the alarm's title.
SIGNS = {
    "A2": "judge-banner",
    "A44": "Verdicts are stuck",
    "A46": "A part of the site has stopped responding",
}


class Drill:
    """One run on a site that is up. `options` are those of the command line, `token` is an agent's."""

    def __init__(self, site: Site, options: Namespace, token: str) -> None:
        self.site, self.options, self.token = site, options, token
        self.rng = Random(options.seed)
        self.started = time.monotonic()
        self.listener = Listener(int(settings.NOTIFY_WEBHOOK.rpartition(":")[2].strip("/")))

    def run(self) -> Report:
        """Play all chosen phases and report on them."""
        phases = [phase for phase in PHASES if self.is_chosen(phase)]
        with closing(self.listener):
            played = [self.play(number, phase) for number, phase in enumerate(phases)]
        self.say("asking the database what became of them")
        report = findings.report(played, checks.recorded_by_judge(self.site.judge_calls()))
        report.broken += [f"{name} ended by itself" for name in sorted(set(self.site.crashed))]
        report.figures["fell_with_broker"] = self.site.crashed_with_broker
        report.figures["seconds"] = round(time.monotonic() - self.started, 1)
        return report

    def is_chosen(self, phase: Phase) -> bool:
        if self.options.phase:
            return any(part in phase.name for part in self.options.phase)
        return not (self.options.quick and phase.not_in_quick)

    def play(self, number: int, phase: Phase) -> PlayedPhase:
        stream = Stream(self.site.web, self.token, number)
        kills = round(self.options.kills * phase.kills)
        scene = Scene(
            site=self.site,
            stream=stream,
            rng=self.rng,
            quick=self.options.quick,
            kills=kills,
            by_hand=bool(kills),
            kills_left=kills,
            listener=self.listener,
            rule=phase.rule,
        )
        # A database server writes by itself: no limit on the web server's files keeps it from saving.
        sign = (phase.sign if connection.vendor == "sqlite" else "") or SIGNS.get(phase.rule, "")
        scene.need(not sign or noticing.disappears(scene, sign), "an earlier fault is still on every page")
        started_at = timezone.now()
        scripts = [script(scene) for script in phase.scripts]
        scripts.append(send_sessions(scene, round(self.options.sessions * phase.sessions), phase.every))
        scripts.append(self.report_kills(scene))
        if sign:
            scripts.append(noticing.watch_pages(scene, sign))
        play(scripts, self.site)
        self.drain(scene)
        if sign:
            scene.broken += noticing.unnoticed(scene, sign)
        stream.close()
        ended_at = timezone.now()
        seconds = (ended_at - started_at).total_seconds()
        results = [f"{len(stream.accepted)} sessions in {seconds:.1f} s", *scene.remarks]
        results += [f"BROKEN: {promise}" for promise in scene.broken]
        self.say(f"{phase.name}: {'; '.join(results)}")
        return PlayedPhase(phase=phase, scene=scene, started_at=started_at, ended_at=ended_at)

    def drain(self, scene: Scene) -> None:
        """Wait until no job is open, for `options.patience` seconds at most.

        If workers are killed, three may have died over the same session, which is then put aside. A person tries it
        again, as often as that takes on a machine so slow that reading outlasts a lease.
        """
        deadline = time.monotonic() + self.options.patience
        reported = time.monotonic()
        while (count := JudgeJob.objects.open().count()) and time.monotonic() < deadline:
            self.site.revive()
            time.sleep(0.1)
            is_over = not JudgeJob.objects.open().exclude(state=JobState.PARKED).exists()
            if scene.by_hand and is_over and (retried := sweeper.try_now(by=None)):
                scene.remarks.append(f"{retried} put aside, then tried by hand")
            if time.monotonic() - reported > PROGRESS_SECONDS:
                reported = time.monotonic()
                self.say(f"… {count} jobs to go")

    def report_kills(self, scene: Scene) -> Script:
        while scene.kills_left:
            yield PROGRESS_SECONDS
            self.say(f"… {scene.kills_left} kills to go")

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.started:6.1f} s  {text}", flush=True)
