"""The phases of a drill: which faults, with how many sessions, in which order."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from benchmarks.drill import faults, programs, waiting
from benchmarks.drill.scene import Scene, Script, keep_workers_busy
from benchmarks.drill.site import WORKERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A named fault. `sessions` is a multiple of the usual number, one `every` so many seconds; `kills` is a share.

    `is_out`: the judge is out for everybody, so an order is promised, and an alarm if `alarms`. `probes` are expected
    meanwhile. A quick drill leaves out what is `not_in_quick`: those faults take time, or are in the last phase too.
    `rule` is the alarm that notifies people of the fault, and `sign` what every page shows meanwhile on SQLite, if not
    what `run.SIGNS` names. Both are empty if there is nothing to notice.
    """

    name: str
    scripts: tuple[Callable[[Scene], Script], ...] = ()
    sessions: float = 1
    every: float = 0.3
    kills: float = 0
    is_out: bool = False
    alarms: bool = True
    probes: bool = False
    not_in_quick: bool = False
    rule: str = ""
    sign: str = ""


USERS = (programs.keep_uploading, programs.keep_correcting)
KILLS = tuple(partial(faults.kills, worker=worker) for worker in WORKERS)
ALL_AT_ONCE = (
    *KILLS,
    faults.broker_flushed,
    faults.broker_stopped,
    faults.duplicates,
    faults.one_after_another,
    keep_workers_busy,
)


def outage(name: str, script: Callable[[Scene], Script], **options: object) -> Phase:
    return Phase(name=name, scripts=(script,), is_out=True, **options)


def fault(name: str, *scripts: Callable[[Scene], Script], **options: object) -> Phase:
    return Phase(name=name, scripts=scripts, **options)


PHASES = (
    Phase(name="none"),
    outage("quota gone, reset named (400)", faults.quota_gone, sessions=5, every=0.1, rule="A2"),
    outage("credit gone, no reset (400)", faults.credit_gone, probes=True, not_in_quick=True, rule="A2"),
    outage("key refused (401)", faults.key_refused, probes=True, rule="A2"),
    fault("key refused, mended elsewhere", waiting.key_mended, not_in_quick=True, rule="A2"),
    fault("service hangs for 40 min", waiting.service_hangs, not_in_quick=True, rule="A2"),
    fault("evidence away and back", waiting.evidence_away, sessions=0, not_in_quick=True, rule="A44"),
    fault("sessions that kill their reader", waiting.poison, sessions=0, not_in_quick=True, rule="A44"),
    fault("clock an hour fast and slow", waiting.clock_jumps, not_in_quick=True),
    outage("paused by an operator", faults.paused, alarms=False),
    fault("overloaded (529)", faults.overloaded),
    fault("rate limited (429)", faults.rate_limited),
    fault("replies after their lease", faults.late_reply, sessions=0),
    fault("workers killed (-9)", keep_workers_busy, *KILLS, sessions=0, kills=0.8),
    fault("broker flushed", faults.broker_flushed, not_in_quick=True),
    fault("broker killed, started later", programs.broker_away, not_in_quick=True, rule="A46"),
    fault("scheduler killed, started later", programs.scheduler_away, not_in_quick=True, rule="A46"),
    fault("everything delivered again", faults.duplicates, not_in_quick=True),
    fault("four people at one session", programs.four_people_correcting, sessions=0),
    fault("web killed (-9), people correcting", programs.web_killed, *USERS, sessions=0),
    fault("PostgreSQL killed (-9), people correcting", programs.database_killed, *USERS, sessions=0),
    fault("supervisor killed (-9), people correcting", programs.all_killed, *USERS, sessions=0, not_in_quick=True),
    fault("disk full and back", programs.disk_full, sessions=0, sign="Nothing can be saved"),
    fault("truncated blob", programs.truncated, sessions=0),
    fault("power cut", programs.power_cut, sessions=0, not_in_quick=True),
    fault("workers and scheduler frozen", programs.frozen, sessions=0.5, not_in_quick=True, rule="A46"),
    fault("all of it at once", *ALL_AT_ONCE, sessions=2, kills=0.2),
)
