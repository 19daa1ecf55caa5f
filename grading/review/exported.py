"""Exports for analysis: an act, a session or a blind pair as a flat record with unrounded numbers.

The fields are explained in `docs/exports.md`.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import Prefetch

from grading.models import Grade, ReviewAnswer, Session, SessionFacts
from grading.models.spending import TOKEN_COLUMNS, sum_tokens
from grading.review.acts import HistoryEntry

CHUNK = 500
ACT_FIELDS = (
    "at", "id", "kind", "person", "what", "reason", "agent", "session", "arm", "answer", "value", "blind_value",
    "revealed", "seconds", "reward_before", "reward_after", "source_before", "holds", "undoes", "undone_at",
    "undone_by", "bulk", "flags_cleared", "slice_probability", "place", "stratum", "settlement_seen", "judge_value",
    "judge_model", "judge_route", "judge_rubric", "judge_version", "evidence_sha256",
)  # fmt: skip
PAIR_FIELDS = (
    "at", "id", "agent", "session", "arm", "reviewer", "judge_value", "human_blind_value", "human_final_value",
    "revealed", "slice_probability", "place", "drawn_at", "stratum", "judge_model", "judge_route", "judge_rubric",
    "judge_version", "judged_at", "in_chain", "was_shown", "evidence_sha256",
)  # fmt: skip

# Columns of `SessionFacts`.
FACTS_FIELDS = (
    "harness_version", "reasoning_effort", "permission_mode", "minutes", "active_minutes", "user_turns",
    "interruptions", "refusals", "tool_calls", "known_calls", "failed_calls", "failed_share", "reads_before_edit",
    "unread_edits", "test_runs", "retries", "compactions", "claimed_without_green",
)  # fmt: skip
SESSION_FIELDS = (
    "ended_at", "agent", "session", "title", "arm", "harness", "model", "outcome", "is_sample", "seconds", "cost_usd",
    "reward", "source", "final", "weight", "reason", "flagged", "stale", "landed", "project", "task", *FACTS_FIELDS,
    "tokens", *TOKEN_COLUMNS, "cost_micro", "cost_unknown", "has_subscription", "reported_cost_usd",
)  # fmt: skip


def session_record(session: Session) -> dict[str, Any]:
    """A session's record, with the fields SESSION_FIELDS. The session's queryset must have annotated `is_stale`."""
    row: SessionFacts | None = getattr(session, "facts", None)
    facts = {name: getattr(row, name, None) for name in FACTS_FIELDS}
    landing = getattr(session, "landing", None)
    return {
        "ended_at": session.ended_at,
        "agent": session.agent.name,
        "session": session.external_id,
        "title": session.title or None,
        "arm": session.category.name if session.category else None,
        "harness": session.harness.name if session.harness else None,
        "model": session.model or None,
        "outcome": str(session.outcome),
        "is_sample": session.is_sample,
        "seconds": session.duration_seconds,
        "cost_usd": session.cost,
        "reward": session.reward_value,
        "source": session.reward_source or None,
        "final": session.reward_final,
        "weight": session.reward_weight,
        "reason": session.reward_reason or None,
        "flagged": session.open_flags > 0,
        "stale": vars(session)["is_stale"],
        "landed": landing.state if landing else None,
        "project": session.project.name if session.project else None,
        "task": session.task or None,
        **{name: None if value == "" else value for name, value in facts.items()},
        "tokens": session.tokens,
        **(sum_tokens(session.usage.all()) or dict.fromkeys(TOKEN_COLUMNS)),
        "cost_micro": session.cost_micro,
        "cost_unknown": session.cost_unknown or None,
        "has_subscription": session.agent.has_subscription,
        "reported_cost_usd": session.cost_usd,
    }


def act_record(act: HistoryEntry) -> dict[str, Any]:
    """An act's record, with the fields ACT_FIELDS. The fields about an answer are None for other acts."""
    record: dict[str, Any] = dict.fromkeys(ACT_FIELDS)
    record |= {
        "at": act.at,
        "id": f"{act.kind}-{act.pk}",
        "kind": str(act.kind),
        "person": act.who,
        "what": act.what,
        "reason": act.why,
        "reward_before": act.reward.get("before"),
        "reward_after": act.reward.get("after"),
        "source_before": act.reward.get("source_before"),
    }
    record |= _session_columns(act.session)
    if act.answer is None:
        return record
    row = act.answer
    undoing: ReviewAnswer | None = getattr(row, "undone_by", None)
    return record | {
        "answer": str(row.answer),
        "value": row.value,
        "blind_value": row.blind_value,
        "revealed": row.revealed,
        "seconds": row.seconds,
        "holds": row.grade_id is not None and undoing is None,
        "undoes": f"answer-{row.undoes_id}" if row.undoes_id else None,
        "undone_at": undoing.created_at if undoing else None,
        "undone_by": undoing.reviewer.get_username() if undoing else None,
        "bulk": row.bulk or None,
        "flags_cleared": " ".join((row.effects or {}).get("flags_cleared", [])) or None,
        "settlement_seen": row.settlement.revision if row.settlement else None,
        **_context_columns(row),
    }


def act_record_with_effects(act: HistoryEntry) -> dict[str, Any]:
    """An act's record, and as nested `effects` everything that the act changed."""
    return {**act_record(act), "effects": dict(act.effects)}


def pair_records() -> Iterator[dict[str, Any]]:
    """A record for each pair of a blind answer and a verdict on the same session of the random slice, oldest first.

    The fields are PAIR_FIELDS. Verdicts that came after the answer are included, because the person had not seen them
    either.
    """
    first_readings = Grade.objects.verdicts().first_readings()
    verdicts = Prefetch("session__grades", first_readings.defer("evidence").order_by("pk"), to_attr="judged")
    related = ("session__agent", "session__category", "session__review_item", "reviewer", "judge")
    answers = ReviewAnswer.objects.blind().select_related(*related)
    for row in answers.prefetch_related(verdicts).order_by("pk").iterator(chunk_size=CHUNK):
        for verdict in row.session.judged:  # type: ignore[attr-defined] # prefetched above
            yield {
                "at": row.created_at,
                "id": f"answer-{row.pk}",
                **_session_columns(row.session),
                "reviewer": row.reviewer.get_username(),
                "human_blind_value": row.blind_value,
                "human_final_value": row.value,
                "revealed": row.revealed,
                **_context_columns(row),
                "drawn_at": row.session.review_item.drawn_at,
                **_verdict_columns(verdict),
                "judged_at": verdict.created_at,
                "in_chain": not verdict.parallel,
                "was_shown": verdict.pk == row.judge_id,
            }


def _session_columns(session: Session | None) -> dict[str, Any]:
    if session is None:
        return {}
    arm = session.category.name if session.category else None
    return {"agent": session.agent.name, "session": session.external_id, "arm": arm}


def _context_columns(row: ReviewAnswer) -> dict[str, Any]:
    """The columns about the judge's answer, the evidence, and why the session was in the queue."""
    return {
        "slice_probability": row.slice_probability,
        "place": row.place or None,
        "stratum": row.stratum,
        "evidence_sha256": row.evidence_sha256 or None,
        **(_verdict_columns(row.judge) if row.judge else {}),
    }


def _verdict_columns(judge: Grade) -> dict[str, Any]:
    return {
        "judge_value": judge.value,
        "judge_model": judge.model,
        "judge_route": judge.route,
        "judge_rubric": judge.rubric,
        "judge_version": judge.version,
    }
