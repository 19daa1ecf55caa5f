"""How numbers, sources and times are written, in one place: missing is a dash, grades are .32, money is $1.99."""

import datetime as dt
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from django import template
from django.urls import reverse
from django.utils import timezone
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from bandit.core.moves import ArmMove
from grading.models import Session
from grading.models.outcomes import LandingState
from grading.monitoring.rule import is_advisory, title_of
from grading.redaction import redact
from grading.reward.explain import number, weight
from grading.screens import glossary
from grading.screens.charts import posteriors
from grading.screens.charts.posteriors import thousandths
from grading.screens.moves import why
from grading.screens.session.outcomes import LANDING_MARKS
from grading.vocabulary import Reason
from grading.witness import Witness
from gradingsite.state import START, START_DEMO, site_command

register = template.Library()
register.filter("grade", number)
register.filter("weight", weight)
register.filter("why", why)
register.filter("rule_title", title_of)
register.filter(is_advisory)
register.simple_tag(site_command)
register.simple_tag(lambda: START, name="start_command")
register.simple_tag(lambda: START_DEMO, name="demo_command")

# Odds beyond which nobody wants the number.
MANY = 1_000_000
DASH = "–"
FLOOR_TITLE = "not graded yet (floor)"
CITATION = re.compile(r"\[[1-9]\d{0,8}(?:, ?[1-9]\d{0,8})*\]", re.ASCII)
NUMBER = re.compile(r"\d+", re.ASCII)
KILO, MINUTE, HOUR, DAY = 1000, 60, 3600, 86_400


register.filter("redacted", redact)


@register.filter
def mean3(value: float | None) -> str:
    return DASH if value is None else thousandths(value)


@register.filter
def amount(value: float | None) -> str:
    """A term of a sum: .50, and a plain 0 for nothing."""
    return "0" if value == 0 else number(value)


@register.filter
def signed(value: float | None) -> str:
    """A difference of two means: +.020, with a true minus."""
    return _signed(value, thousandths)


@register.filter
def signed2(value: float | None) -> str:
    """A difference of two grades: +.48, with a true minus."""
    return _signed(value, number)


@register.filter
def signed_units(value: float | None) -> str:
    """A part of a sum that is no grade and may pass 1: +1.58, with a true minus."""
    return _signed(value, lambda units: f"{units:.2f}".removeprefix("0"))


def _signed(value: float | None, write: Callable[[float], str]) -> str:
    if value is None:
        return DASH
    size = write(abs(value))
    is_negative = value < 0 and size != write(0.0)  # a value that rounds to 0 gets a plus
    return f"{'−' if is_negative else '+'}{size}"


@register.filter
def usd(value: float | None) -> str:
    """$1.99; under ten cents 6.9 ¢."""
    if value is None:
        return DASH
    if value == 0:
        return "$0"
    if 0 < value < 0.1:  # noqa: PLR2004 - ten cents
        return f"{100 * value:.1f} ¢"
    return f"${value:,.2f}"


@register.filter
def usd_column(value: float | None) -> str:
    """$1.99, and $0.07: for columns, whose numbers should have one unit."""
    if not value:
        return usd(value)
    return "<$0.01" if value < 0.005 else f"${value:,.2f}"  # noqa: PLR2004 - half a cent


@register.filter
def fine_usd(value: float | None) -> str:
    """A part of a price, with one digit more than `usd`, so that readers can check the sum: 0.83 ¢."""
    return f"{100 * value:.2f} ¢" if value is not None and value < 0.1 else usd(value)  # noqa: PLR2004 - ten cents


@register.filter
def plain(value: float | str | None) -> str:
    """A number as one types it: 5, .05; what was typed stays as it is."""
    if isinstance(value, str) or value is None:
        return value or ""
    return f"{value:.15g}".removeprefix("0") or "0"


@register.filter
def price(value: float | None) -> str:
    """A price per million tokens: $2, $0.10, $2.50."""
    if value is None:
        return DASH
    if float(value).is_integer():
        return f"${value:g}"
    return f"${value:.2f}" if round(value, 2) == value else f"${value:.3g}"


@register.filter
def short_number(value: float | None) -> str:
    """18.4 k, 2.31 M for token counts."""
    if value is None:
        return DASH
    if value >= KILO * KILO:
        return f"{value / KILO / KILO:.2f} M"
    return f"{value / KILO:.1f} k" if value >= KILO else f"{value:g}"


@register.filter
def thousands(value: float | None) -> str:
    """18,400: whole, with commas."""
    return DASH if value is None else f"{value:,.0f}"


@register.filter
def percent(value: float | None) -> str:
    return DASH if value is None else f"{value:.1f}"


@register.filter
def duration(seconds: float | None) -> str:
    """34 min, 7 h 36 min, 2 d."""
    if seconds is None:
        return DASH
    if seconds < MINUTE:
        return f"{seconds:.0f} s"
    if seconds < HOUR:
        return f"{seconds / MINUTE:.0f} min"
    if seconds < DAY:
        hours, minutes = divmod(round(seconds / MINUTE), 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{seconds / DAY:.0f} d"


@register.filter
def age(moment: dt.datetime | None) -> str:
    return DASH if moment is None else duration(max((timezone.now() - moment).total_seconds(), 0))


@register.filter
def age_short(moment: dt.datetime | None) -> str:
    """How long ago, in one unit: 34 min, 7 h, 2 d."""
    if moment is None:
        return DASH
    seconds = max((timezone.now() - moment).total_seconds(), 0)
    return f"{seconds // HOUR:.0f} h" if HOUR <= seconds < DAY else duration(seconds)


@register.filter
def moment_short(at: dt.datetime | None) -> str:
    """12:04 today, else 31 Mar: for a narrow column."""
    if at is None:
        return DASH
    local = timezone.localtime(at)
    return f"{local:%H:%M}" if local.date() == timezone.localdate() else f"{local:%-d %b}"


@register.filter
def stamp(moment: dt.datetime | None) -> str:
    """31 Mar, 09:47; the year only where it isn't this one."""
    if moment is None:
        return DASH
    local = timezone.localtime(moment)
    return f"{local:%-d %b, %H:%M}" if local.year == timezone.localdate().year else f"{local:%-d %b %Y, %H:%M}"


@register.filter
def moment(at: dt.datetime | None) -> str:
    """12:04 today, else 31 Mar, 12:04."""
    if at is None:
        return DASH
    local = timezone.localtime(at)
    return f"{local:%H:%M}" if local.date() == timezone.localdate() else stamp(at)


@register.filter
def clock(at: dt.datetime | None) -> str:
    """12:04:30, for a moment that is seconds away."""
    return DASH if at is None else f"{timezone.localtime(at):%H:%M:%S}"


@register.filter
def zone(at: dt.datetime | None) -> str:
    """The abbreviation of the site's zone at that time: UTC, CEST."""
    return "" if at is None else f"{timezone.localtime(at):%Z}"


@register.filter
def wall(at: dt.datetime | None) -> str:
    """2026-03-31T09:47, for a field that holds a moment."""
    return "" if at is None else f"{timezone.localtime(at):%Y-%m-%dT%H:%M}"


@register.filter
def words(reason: str) -> str:
    """A reason in words."""
    return Reason(reason).words


@register.filter
def cited(text: str | None, address: str = "") -> SafeString:
    """Text, escaped, in which [118] links to event 118, at #e118.

    `address` is the query that shows an event without script: `{{ text|cited:"?event" }}` links to ?event=118#e118.
    """

    def linked(match: re.Match[str]) -> str:
        number = match[0]
        query = f"{escape(address)}={number}" if address else ""
        return f'<a class="cite" href="{query}#e{number}">{number}</a>'

    # In [97, 118], each number becomes a link.
    return SafeString(CITATION.sub(lambda citation: NUMBER.sub(linked, citation[0]), escape(text or "")))


@register.simple_tag
def place(number: int, numbers: Collection[int] | None) -> str:
    """The place of a number among `numbers` in their order, as "2 of 4"; empty if it is not among them."""
    if not numbers or number not in numbers:
        return ""
    return f"{sorted(numbers).index(number) + 1} of {len(numbers)}"


@register.simple_tag
def icon(name: str, label: str = "") -> SafeString:
    """A source's shape in its colour. A screen reader reads `label`; without one, the shape is decoration."""
    named = format_html('role="img" aria-label="{}"', label) if label else SafeString('aria-hidden="true"')
    return format_html('<svg class="ic c-{}" {}><use href="#i-{}"/></svg>', name, named, name)


# By witness: the word beside its mark, and what it means.
WITNESS_WORDS: dict[str, tuple[str, str]] = {
    Witness.CLAIMED: ("claimed", "The agent says so itself"),
    Witness.HOOK: ("seen by the hook", "The hook on the agent’s machine reported it"),
    Witness.OBSERVED: ("observed", "The agent’s runner reported it"),
    Witness.VERIFIED: ("verified", "The site looked it up"),
}


@register.simple_tag
def witness(value: str, place: str = "") -> SafeString:
    """Who vouches for something: a mark with its word. `place`: where it was seen. A dash if nobody is known."""
    if value not in WITNESS_WORDS:
        return format_html('<span class="wit claimed" title="{}">{}</span>', place, place or "–")
    word, title = WITNESS_WORDS[value]
    title = f"{title}: {place}" if place else title
    mark = '<span class="wit {}" title="{}"><svg aria-hidden="true"><use href="#w-{}"/></svg>{}</span>'
    return format_html(mark, value, title, value, word)


@register.simple_tag
def landed(state: str) -> SafeString:
    """What became of a session's commits: a mark with its word. A dash if that is unknown."""
    if state not in LANDING_MARKS:
        return SafeString('<span class="none">–</span>')
    mark = '<span class="wit {0}"><svg aria-hidden="true"><use href="#w-{0}"/></svg>{1}</span>'
    return format_html(mark, LANDING_MARKS[state], LandingState(state).words)


@register.simple_tag
def chip(value: float | None, source: str | None, final: bool | None) -> SafeString:  # noqa: FBT001 - for templates
    """The grade chip: hatched while it can still change; a dash where there is no grade (floor) or no reward."""
    if not source:
        return SafeString('<span class="chip c-none none" title="no reward">–</span>')
    if value is None or source == "floor":
        title = FLOOR_TITLE if source == "floor" else "no reward: excluded"
        return format_html('<span class="chip c-none none" title="{}">–</span>', title)
    css, title = ("", "final") if final else ("prov", "provisional")
    return format_html('<span class="chip c-{} {}" title="{}">{}</span>', source, css, title, number(value))


@register.simple_tag
def graded(value: float | None, source: str | None, final: bool | None) -> SafeString:  # noqa: FBT001 - for templates
    """The grade chip, and beside it the shape of the source."""
    return chip(value, source, final) + icon(source or "none", source or "")


@register.simple_tag
def reward(session: Session) -> SafeString:
    """The grade chip and source of a session's reward."""
    return graded(session.reward_value, session.reward_source, session.reward_final)


@register.simple_tag
def term(text: str, name: str = "") -> SafeString:
    """`{% term "Rewards" %}`: a link from a term to its glossary entry, which opens in place; plain text if the
    glossary has no such term. `name` is the term if `text` writes it differently.
    """
    entry = glossary.find(name or text)
    if entry is None:
        return format_html("{}", text)
    return format_html(
        '<a class="term" href="{}#{}" data-term="{}: {}." title="{}">{}</a>',
        reverse("admin:words"), entry.anchor, entry.word, entry.meaning, entry.meaning, text,
    )  # fmt: skip


@register.inclusion_tag("shared/_table_head.html")
def table_head(*titles: str) -> dict[str, Any]:
    """`{% table_head "Arm" ">Mean" %}`: a title that begins with > is aligned right, like the numbers below; a title
    that is in the glossary links to its entry.
    """
    return {"columns": [(title.removeprefix(">"), title.startswith(">")) for title in titles]}


@register.inclusion_tag("shared/_moves.html", takes_context=True)
def moves(
    context: Mapping[str, Any],
    arms: Iterable[ArmMove],
    before: str = "Now",
    after: str = "After",
    *,
    shares: bool = True,
    notes: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """A table of arms before and after, under these two heads. `shares` is False for bandits that choose nothing.

    `notes`: a warning below some arms, by their names.
    """
    rows = [(move, posteriors.move(move), (notes or {}).get(move.arm)) for move in arms]
    return {"rows": rows, "before": before, "after": after, "shares": shares, "common": context["common"]}


@register.inclusion_tag("shared/_crumbs.html")
def crumbs(view: str, *args: object, label: object, here: object) -> dict[str, Any]:
    """`{% crumbs "admin:quota" label="Quota" here="costs" %}`: a link back to a view, and the name of this page."""
    return {"url": reverse(view, args=args), "label": label, "here": here}


@register.filter
def lead(sentence: str | None) -> str:
    """The first sentence of an explanation: "Reward .60, final."."""
    head, stop, _rest = (sentence or "").partition(". ")
    return head + stop.rstrip()


@register.filter
def rest(sentence: str | None) -> str:
    """What follows the first sentence."""
    return (sentence or "").partition(". ")[2]


@register.filter
def share_of_one(value: float | None) -> str:
    """A share in [0, 1] as a percentage: 97 %. A share below 1 % has one significant digit: 0.5 %."""
    if value is None:
        return DASH
    return f"{100 * value:.1g} %" if 0 < value < 0.01 else f"{100 * value:.0f} %"  # noqa: PLR2004 - one per cent


@register.filter
def odds(value: float) -> str:
    """The odds, how many to 1, at which somebody may bet: .4, 2.5, 800, over 1,000,000."""
    if value >= MANY:
        return f"over {MANY:,}"
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}".removeprefix("0")  # noqa: PLR2004 - two digits


@register.filter
def per_hundred(value: float | None) -> str:
    """A share in [0, 1] as a width in a drawing that is 100 wide. Values outside of [0, 1] are cut."""
    return "0" if value is None else f"{100 * min(max(value, 0.0), 1.0):g}"


@register.simple_tag(takes_context=True)
def arm_title(context: Mapping[str, Any], move: ArmMove) -> str:
    """The name of a move's arm for people: its title, if it has one."""
    titles: Mapping[tuple[str, str], str] = context["common"].arm_titles
    return titles.get((move.bandit, move.arm), move.arm)


@register.filter
def of_100(value: float | None) -> str:
    """An expected number of the next hundred decisions, rounded to a whole number, or <1."""
    if value is None:
        return DASH
    return "<1" if 0 < value < 1 else f"{value:.0f}"


@register.filter
def probability(value: float | None) -> str:
    """A probability with two digits, which is neither 0 nor 1 unless it is exactly that: .69, <.01, >.99."""
    if value is not None and 0 < value < 0.005:  # noqa: PLR2004 - what would be shown as 0
        return "<.01"
    if value is not None and 0.995 <= value < 1:  # noqa: PLR2004 - what would be shown as 1
        return ">.99"
    return number(value)


@register.filter
def signed_count(value: int | None) -> str:
    return DASH if value is None else f"{'−' if value < 0 else '+'}{abs(value)}"


@register.simple_tag
def problem_at(problems: Mapping[str, str], section: str, index: int, field: str) -> str:
    """What is wrong with one field of a row of a form."""
    return problems.get(f"{section}-{index}-{field}", "")
