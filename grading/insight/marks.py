"""What happened when: new versions, models and instruction files, rubrics, judges, policies and outages.

A version, model, instruction file or judge is new if it has not been seen before. The first version or model of a new
harness, the first text of a file and the first judge of the site are no marks. Something new becomes a mark with its
MIN_SESSIONS-th session, so that one odd session, or one that claims an odd version, is no mark.
"""

import datetime as dt
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from django.db.models import Count, F, Min, Q, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from bandit.models import Arm, PolicyVersion
from grading.days import midnight
from grading.insight.core.results import MarkKind, Span, TimeMark
from grading.insight.loading import sessions_during
from grading.models import JudgePolicy, QuotaTransition, RubricActivation, Session
from grading.models.quota import CLOSED_STATES

MIN_SESSIONS = 5
# Shorter outages have no mark.
MIN_OUTAGE = dt.timedelta(hours=1)
# An outage that began this long before the span is not looked for.
MAX_OUTAGE = dt.timedelta(days=30)
# The most marks of each kind; the newest are kept.
MAX_PER_KIND = 20


def load_marks(span: Span) -> tuple[TimeMark, ...]:
    """The marks in the span, the oldest first; of each kind only the latest MAX_PER_KIND. Some queries read all
    sessions of the span.
    """
    marks_by_kind = (
        _new_values(span, MarkKind.VERSION, "facts__harness_version"),
        _new_values(span, MarkKind.MODEL, "model"),
        _instructions(span),
        _judges(span),
        _rubrics(span),
        _policies(span),
        _outages(span),
    )
    marks = [mark for of_kind in marks_by_kind for mark in sorted(of_kind, key=_sort_key)[-MAX_PER_KIND:]]
    return tuple(sorted(marks, key=_sort_key))


def _sort_key(mark: TimeMark) -> tuple[dt.datetime, str]:
    return mark.at, mark.key


def _mark(kind: MarkKind, at: dt.datetime, label: str, key: object, **fields: Any) -> TimeMark:
    return TimeMark(kind=kind, at=at, day=timezone.localdate(at), label=label, key=f"{kind}:{key}", **fields)


def _new_values(span: Span, kind: MarkKind, path: str) -> Iterator[TimeMark]:
    """New versions or models of each harness; `path` is the lookup of that value from a session.

    The first value of a harness that is new itself is no mark. A merged harness is the one that it was merged into.
    """
    rows = sessions_during(span).exclude(**{path: ""}).filter(**{f"{path}__isnull": False}, harness__isnull=False)
    values = rows.annotate(value=F(path)).values_list("harness", "value")
    first_uses = list(values.annotate(first=Min("ended_at"), number=Count("pk")).order_by("first"))
    arms = Arm.objects.select_related("merged_into").in_bulk({harness for harness, *_ in first_uses})
    # In order of time: when each harness was first used, and each of its values.
    first_by_harness: dict[Arm, dt.datetime] = {}
    first_by_value: dict[tuple[Arm, str], dt.datetime] = {}
    session_counts: Counter[tuple[Arm, str]] = Counter()
    for harness, value, first, number in first_uses:
        arm = arms[harness].current
        first_by_harness.setdefault(arm, first)
        first_by_value.setdefault((arm, value), first)
        session_counts[arm, value] += number
    earlier = Session.objects.filter(ended_at__lt=midnight(span.first))
    keys_of = {arm: Arm.objects.filter(Q(pk=arm.pk) | Q(merged_into=arm)).values("pk") for arm in first_by_harness}
    earlier_of = {arm: earlier.filter(harness__in=keys) for arm, keys in keys_of.items()}
    has_earlier_sessions = {arm: rows.exists() for arm, rows in earlier_of.items()}
    used_often = [key for key in first_by_value if session_counts[key] >= MIN_SESSIONS]
    for arm, value in used_often[-MAX_PER_KIND * 2 :]:  # the latest: each may take a query
        first = first_by_value[arm, value]
        begins_harness = first == first_by_harness[arm] and not has_earlier_sessions[arm]
        if not begins_harness and not earlier_of[arm].filter(**{path: value}).exists():
            label = f"{arm} {value}" if kind is MarkKind.VERSION else f"{value} with {arm}"
            yield _mark(kind, first, label, f"{arm.name}:{value}", harness=arm.name, value=value)


def _instructions(span: Span) -> Iterator[TimeMark]:
    """Changes of an instruction file: of a project, or of an agent's home folder."""
    rows = sessions_during(span).filter(facts__instruction_files__isnull=False)
    texts = rows.annotate(files=Cast("facts__instruction_files", TextField()))
    groups = texts.values_list("project__name", "agent__name", "files")
    # By (project, agent, name) of a file: when each of its texts, by hash, was first seen, and in how many sessions.
    first_seen: dict[tuple[str, str, str], dict[str, dt.datetime]] = defaultdict(dict)
    session_counts: Counter[tuple[tuple[str, str, str], str]] = Counter()
    for project, agent, files, first, number in groups.annotate(first=Min("ended_at"), number=Count("pk")):
        for name, digest in _named_hashes(files):
            file = ("", agent, name) if name.startswith("~") else (project or "", "", name)
            first_seen[file][digest] = min(first, first_seen[file].get(digest, first))
            session_counts[file, digest] += number
    for file, digests in first_seen.items():
        project, agent, name = file
        if not (project or agent):
            continue
        # The first text of the span may be an old one.
        for digest, first in sorted(digests.items(), key=itemgetter(1))[1:]:
            if session_counts[file, digest] >= MIN_SESSIONS:
                label = f"{name} of {project or agent} changed"
                key = f"{project or agent}:{name}:{digest[:12]}"
                yield _mark(MarkKind.INSTRUCTIONS, first, label, key, project=project, agent=agent)


def _named_hashes(files: str) -> Iterator[tuple[str, str]]:
    """The name and the hash of each instruction file, from the JSON of a session's facts."""
    entries = json.loads(files)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") and entry.get("hmac"):
            yield str(entry["name"]), str(entry["hmac"])


def _judges(span: Span) -> Iterator[TimeMark]:
    """Models that began to judge in the span: all except the model that judged last before the span."""
    judged = sessions_during(span).filter(verdict__isnull=False).values_list("verdict__model")
    first_uses = list(judged.annotate(first=Min("ended_at"), number=Count("pk")).order_by("first"))
    before = Session.objects.filter(ended_at__lt=midnight(span.first), verdict__isnull=False)
    earlier_model = before.order_by("-ended_at").values_list("verdict__model", flat=True).first()
    if earlier_model is None and first_uses:  # the first judge of the site is no change
        earlier_model, _first, _number = first_uses[0]
    for model, first, number in first_uses:
        if model != earlier_model and number >= MIN_SESSIONS:
            yield _mark(MarkKind.JUDGE, first, f"judge {model}", model, value=model)


def _rubrics(span: Span) -> Iterator[TimeMark]:
    """Activations of rubrics, except the first for each kind of work."""
    rows = RubricActivation.objects.filter(at__lt=_end(span)).select_related("rubric").order_by("at", "pk")
    kinds = set[str]()
    for row in rows:
        if row.rubric.kind in kinds and row.at >= midnight(span.first):
            yield _mark(MarkKind.RUBRIC, row.at, f"rubric {row.rubric}", row.pk, value=row.rubric.sha256)
        kinds.add(row.rubric.kind)


def _policies(span: Span) -> Iterator[TimeMark]:
    """Changes of the policies of bandits and of the judge, except their first versions."""
    moments = {"created_at__gte": midnight(span.first), "created_at__lt": _end(span)}
    for version in PolicyVersion.objects.filter(**moments, version__gt=1).select_related("bandit"):
        label = f"policy {version.version} of the {version.bandit.name} bandit"
        yield _mark(MarkKind.POLICY, version.created_at, label, f"{version.bandit.name}:{version.version}")
    first = JudgePolicy.objects.order_by("pk").first()
    for row in JudgePolicy.objects.filter(**moments):
        if row != first:
            yield _mark(MarkKind.POLICY, row.created_at, "the judge’s policy", f"judge:{row.pk}")


def _outages(span: Span) -> Iterator[TimeMark]:
    """Periods of at least MIN_OUTAGE in which a judge could not be called. An outage that goes on has no end."""
    since = midnight(span.first) - MAX_OUTAGE
    rows = QuotaTransition.objects.filter(at__gte=since, at__lt=_end(span)).select_related("quota")
    by_quota: dict[int, list[QuotaTransition]] = defaultdict(list)
    for row in rows.order_by("quota", "at", "pk"):
        by_quota[row.quota_id].append(row)
    for transitions in by_quota.values():
        yield from _closed_times(transitions, span)


def _closed_times(transitions: Iterable[QuotaTransition], span: Span) -> Iterator[TimeMark]:
    """The outages of one quota: from a transition to a closed state until the next one to an open state."""
    began: QuotaTransition | None = None
    for row in transitions:
        is_closed = row.state in CLOSED_STATES
        if is_closed and began is None:
            began = row
        elif not is_closed and began is not None:
            if row.at - began.at >= MIN_OUTAGE and row.at >= midnight(span.first):
                yield _outage(began, row.at)
            began = None
    if began is not None and min(_end(span), timezone.now()) - began.at >= MIN_OUTAGE:
        yield _outage(began, None)


def _outage(began: QuotaTransition, until: dt.datetime | None) -> TimeMark:
    return _mark(MarkKind.OUTAGE, began.at, f"{began.quota.model} out", began.pk, until=until)


def _end(span: Span) -> dt.datetime:
    return midnight(span.last + dt.timedelta(days=1))
