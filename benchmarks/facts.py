"""Does the site know what real sessions ran with and cost? Real logs of Claude Code and Codex, through the intake.

The logs are those of GRADING_DATA_DIR, else of `../shared/data` beside the checkout, of which the manifest says that
they are real; else the few in the repository. Each is submitted to a new site as a session of its own, and the figures
are read from the columns that pages, the API and exports show: how many sessions have the harness's version, and how
many have a model. A log that could not be read counts as a session without either, and is named.

`priced`: the share of the sessions with a cost among those with tokens of a priced model, by an independent count of
the raw records. `cost_error_p95`: how far a cost is from that count, relative to it, at the 95th percentile.
`double_counted`: how often the sessions of an agent cost more in all after a copy of a log of Claude Code came in under
another session id and with other record ids.

    python benchmarks/facts.py [--quick | --smoke]
"""

import csv
import io
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

HARNESSES = ("claude-code", "codex")
MAX_BYTES = {Size.FULL: None, Size.QUICK: 1024 * 1024, Size.SMOKE: 60_000}
SMOKE_SESSIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class RealLog:
    """A log, and the harness that wrote it."""

    path: Path
    harness: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFacts:
    """What the site knows of the session of a log."""

    log: RealLog
    version: str
    models: Sequence[str]
    cost_micro: int | None = None


def main() -> None:
    parser = scratch.parser(
        __doc__, quick="only logs of at most 1 MiB", smoke=f"{SMOKE_SESSIONS} logs of at most 60 kB"
    )
    logs = real_logs(parser.parse_args().size)
    with tempfile.TemporaryDirectory() as state:
        scratch.site(state)
        known = [submit(log, f"{number:03d} {log.path.stem}"[:200]) for number, log in enumerate(logs)]
        copies = [submit_copy(log, number) for number, log in enumerate(logs) if log.harness == "claude-code"]
    for each in known:
        missing = [name for name, value in (("version", each.version), ("model", each.models)) if not value]
        if missing:
            print(f"no {' and no '.join(missing)}: {each.log.path.name}")
    rows = []
    for harness in HARNESSES:
        own = [each for each in known if each.log.harness == harness]
        versions, models = sum(bool(each.version) for each in own), sum(bool(each.models) for each in own)
        rows.append([harness, len(own), versions, models])
    print(scratch.table(["harness", "sessions", "with a version", "with a model"], rows))
    print(json.dumps({**figures(known), **cost_figures(known), "double_counted": sum(map(bool, copies))}))


def figures(known: Sequence[KnownFacts]) -> dict[str, float | None]:
    """The number of sessions, and the shares of them with a version and with a model."""
    count = len(known)
    versions, models = sum(bool(each.version) for each in known), sum(bool(each.models) for each in known)
    return {
        "sessions": count,
        "with_version": round(versions / count, 4) if count else None,
        "with_model": round(models / count, 4) if count else None,
    }


def cost_figures(known: Sequence[KnownFacts]) -> dict[str, float | None]:
    """The share of the sessions with a cost among those that an independent count can price, and the error of it."""
    from tests.spending.raw_count import count_tokens_and_dollars

    errors, count = [], 0
    for each in known:
        _tokens, dollars = count_tokens_and_dollars(each.log.path, each.log.harness)
        if not dollars:
            continue
        count += 1
        if each.cost_micro is None:
            print(f"no cost, expected ${dollars:.4f}: {each.log.path.name}")
        else:
            errors.append(abs(each.cost_micro / 1e6 - dollars) / dollars)
    errors.sort()
    return {
        "priced": round(len(errors) / count, 4) if count else None,
        "cost_error_p95": round(errors[math.ceil(0.95 * len(errors)) - 1], 6) if errors else None,
    }


def real_logs(size: Size) -> list[RealLog]:
    """The real logs by name, without the largest in a smaller run. Prints which there are."""
    folder = scratch.data_folder() / "transcripts"
    manifest = folder / "MANIFEST.csv"
    if manifest.is_file():
        with manifest.open(newline="") as stream:
            real = [row for row in csv.DictReader(stream) if row["real"].startswith("yes")]
        print(f"real logs in {manifest}, by kind: {dict(Counter(row['kind'] for row in real))}")
        logs = [RealLog(path=folder / row["file"], harness=row["kind"]) for row in real if row["kind"] in HARNESSES]
    else:
        print(f"{manifest} is not there: only the logs in the repository are read. Set GRADING_DATA_DIR to read all.")
        bundled = sorted((scratch.ROOT / "tests" / "data" / "transcripts").glob("*.jsonl"))
        logs = [
            RealLog(path=path, harness=harness)
            for harness in HARNESSES
            for path in bundled
            if path.name.startswith(harness)
        ]
    limit = MAX_BYTES[size]
    logs = [log for log in logs if limit is None or log.path.stat().st_size <= limit]
    if size is Size.SMOKE:
        logs = logs[:: max(len(logs) // SMOKE_SESSIONS, 1)]
    print(f"read here: {dict(Counter(log.harness for log in logs))}")
    return logs


def submit(log: RealLog, name: str) -> KnownFacts:
    """Submit a log under its own session's id, or else under this name, and read the session's facts."""
    from grading import formats, intake
    from grading.models import Agent, SessionFacts

    with log.path.open("rb") as stream:
        try:
            reader = formats.read(stream, log.path.name)
            for _event in reader:
                pass
            session_id = reader.header.session_id or name
        except (formats.EmptyTranscript, formats.UnknownFormat):
            session_id = name
    agent, _created = Agent.objects.get_or_create(name=f"agent of {name}"[:100])
    metadata = intake.SubmittedSession(session_id=session_id[:200])
    with log.path.open("rb") as stream:
        receipt = intake.submit(agent=agent, metadata=metadata, transcript=stream, alarms=False)
    cost = receipt.session.cost_micro
    row = SessionFacts.objects.filter(session=receipt.session).first()
    if row is None:
        return KnownFacts(log=log, version="", models=(), cost_micro=cost)
    return KnownFacts(log=log, version=row.harness_version, models=tuple(row.model_calls), cost_micro=cost)


def submit_copy(log: RealLog, number: int) -> int:
    """Submit a copy of a log whose session and record ids were replaced. Returns by how many microdollars the costs of
    its agent's sessions grew.
    """
    from django.db.models import Sum

    from grading import intake
    from grading.models import Session

    original = Session.objects.get(agent__name__startswith=f"agent of {number:03d} ")
    copied = log.path.read_bytes().replace(b'"uuid":"', b'"uuid":"c').replace(b'"parentUuid":"', b'"parentUuid":"c')
    name = f"copy-{original.external_id}"[:200]
    copied = copied.replace(original.external_id.encode(), name.encode())
    sessions = Session.objects.filter(agent=original.agent)
    before = sessions.aggregate(total=Sum("cost_micro", default=0))["total"]
    intake.submit(
        agent=original.agent,
        metadata=intake.SubmittedSession(session_id=name),
        transcript=io.BytesIO(copied),
        alarms=False,
    )
    after: int = sessions.aggregate(total=Sum("cost_micro", default=0))["total"]
    return after - before


if __name__ == "__main__":
    main()
