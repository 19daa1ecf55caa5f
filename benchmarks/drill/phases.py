"""Which faults, how many sessions, in which order."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.drill import faults, programs, waiting
from benchmarks.drill.scene import Scene, Script, busy
from benchmarks.drill.site import WORKERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A named fault. `many` sessions in multiples of the usual number, one `every` so many seconds; `kills` as a share.

    `is_out`: the judge is out for everybody, so an order is promised, and an alarm where `alarms`; meanwhile `probes`
    are expected. `alone` phases are left out of a quick drill: their faults are in the last phase too, or
    take their time. `rule` is the alarm by which people are told of the fault, and `sign` what is on every page
    meanwhile on SQLite, if not the rule's name; both are empty where there is nothing to notice.
    """

    name: str
    scripts: tuple[Callable[[Scene], Script], ...] = ()
    many: float = 1
    every: float = 0.3
    kills: float = 0
    is_out: bool = False
    alarms: bool = True
    probes: bool = False
    alone: bool = False
    rule: str = ""
    sign: str = ""


MEANWHILE = (programs.uploading, programs.correcting)
PROGRAMS = (
    Phase(name="four people at one session", scripts=(programs.disagreeing,), many=0),
    Phase(name="web killed (-9), people correcting", scripts=(programs.web_killed, *MEANWHILE), many=0),
    Phase(name="PostgreSQL killed (-9), people correcting", scripts=(programs.database_killed, *MEANWHILE), many=0),
    Phase(
        name="supervisor killed (-9), people correcting", scripts=(programs.all_killed, *MEANWHILE), many=0, alone=True
    ),
    Phase(name="disk full and back", scripts=(programs.disk_full,), many=0, sign="Nothing can be saved"),
    Phase(name="truncated blob", scripts=(programs.truncated,), many=0),
    Phase(name="power cut", scripts=(programs.power_cut,), many=0, alone=True),
    Phase(name="workers and scheduler frozen", scripts=(programs.frozen,), many=0.5, alone=True, rule="A46"),
)
KILLS = tuple(partial(faults.kills, worker=worker) for worker in WORKERS)
PHASES = (
    Phase(name="none"),
    Phase(
        name="quota gone, reset named (400)", scripts=(faults.quota_gone,), many=5, every=0.1, is_out=True, rule="A2"
    ),
    Phase(
        name="credit gone, no reset (400)",
        scripts=(faults.credit_gone,),
        is_out=True,
        probes=True,
        alone=True,
        rule="A2",
    ),
    Phase(name="key refused (401)", scripts=(faults.key_refused,), is_out=True, probes=True, rule="A2"),
    Phase(name="key refused, mended elsewhere", scripts=(waiting.key_mended,), alone=True, rule="A2"),
    Phase(name="service hangs for 40 min", scripts=(waiting.service_hangs,), alone=True, rule="A2"),
    Phase(name="evidence away and back", scripts=(waiting.evidence_away,), many=0, alone=True, rule="A44"),
    Phase(name="sessions that kill their reader", scripts=(waiting.poison,), many=0, alone=True, rule="A45"),
    Phase(name="clock an hour forth and back", scripts=(waiting.clock_jumps,), alone=True),
    Phase(name="paused by an operator", scripts=(faults.paused,), is_out=True, alarms=False),
    Phase(name="overloaded (529)", scripts=(faults.overloaded,)),
    Phase(name="rate limited (429)", scripts=(faults.rate_limited,)),
    Phase(name="replies after their lease", scripts=(faults.late_reply,), many=0),
    Phase(name="workers killed (-9)", scripts=(busy, *KILLS), many=0, kills=0.8),
    Phase(name="broker flushed", scripts=(faults.broker_flushed,), alone=True),
    Phase(name="broker killed, started later", scripts=(programs.broker_away,), alone=True, rule="A46"),
    Phase(name="scheduler killed, started later", scripts=(programs.scheduler_away,), alone=True, rule="A46"),
    Phase(name="everything delivered again", scripts=(faults.duplicates,), alone=True),
    *PROGRAMS,
    Phase(
        name="all of it at once",
        scripts=(
            *KILLS,
            faults.broker_flushed,
            faults.broker_stopped,
            faults.duplicates,
            faults.one_after_another,
            busy,
        ),
        many=2,
        kills=0.2,
    ),
)
