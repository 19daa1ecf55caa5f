"""The pictures: numbers in, SVG out, nothing that a strict content policy would refuse."""

import datetime as dt
import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest

from grading.judging.core.forecast import Conditions, forecast
from grading.judging.outlook.forecast import QueueOutlook
from grading.screens.charts import bars, changes, posteriors, timelines, trends
from grading.screens.charts.bars import RewardDifference
from grading.screens.charts.changes import STEPS_PHONE, STEPS_WIDE, ChangeStep
from grading.screens.charts.posteriors import Beta
from grading.screens.charts.timelines import Bar, DayCost, Note, OutageSpan, TimelineSpan
from grading.screens.charts.trends import PHONE, WIDE, ChartSize, TrendDot, TrendMarker
from grading.screens.quota import figures

DAY = dt.date(2026, 3, 31)
DAYS = [DAY - dt.timedelta(days=back) for back in (1, 0)]


def parsed(svg: str) -> ET.Element:
    assert "style=" not in svg
    return ET.fromstring(svg)  # noqa: S314 - we drew it


def test_the_density_of_a_beta_integrates_to_one():
    beta = Beta(alpha=50.7, beta=36.3)
    assert sum(beta.density((i + 0.5) / 1000) for i in range(1000)) / 1000 == pytest.approx(1, abs=1e-6)
    assert beta.mean == pytest.approx(0.583, abs=5e-4)


@pytest.mark.parametrize("shape", [(1, 1), (0.5, 0.5), (1e-3, 1e-3), (1e4, 10), (3, 1e5)])
def test_any_posterior_can_be_drawn(shape):
    beta = Beta(alpha=shape[0], beta=shape[1])
    for svg in (posteriors.ridges({"arm": beta})["arm"], posteriors.before_after(beta, Beta(alpha=2, beta=3))):
        parsed(svg)
        assert "nan" not in svg
        assert "inf" not in svg


def test_a_weak_arm_stays_visible_beside_a_strong_one():
    drawn = posteriors.ridges({"weak": Beta(alpha=2, beta=2), "strong": Beta(alpha=900, beta=600)})

    def height(svg: str) -> float:
        ys = [float(y) for _, y in re.findall(r"(\d+\.\d),(-?\d+\.\d)", parsed(svg).find("path").get("d"))]
        return max(ys) - min(ys)

    assert height(drawn["weak"]) > 0.2 * height(drawn["strong"])


def test_before_and_after_are_labelled_with_their_means():
    svg = posteriors.before_after(Beta(alpha=50.7, beta=36.3), Beta(alpha=55.0, beta=36.2))
    texts = [text.text for text in parsed(svg).iter("text")]
    assert "now .583" in texts
    assert "after .603" in texts


def test_provisional_sessions_are_hatched_and_final_ones_are_not():
    counts = [Bar(day=DAY, source="judge", final=True, count=5)]
    assert "#hatch" not in timelines.by_day(counts, DAYS)
    counts.append(Bar(day=DAY, source="floor", final=False, count=2))
    svg = timelines.by_day(counts, DAYS)
    assert svg.count("url(#hatch)") == 1
    assert "31 Mar: 2 floor, provisional" in svg
    assert "7 sessions" in parsed(svg).get("aria-label")


@pytest.mark.parametrize("count", [0, 1, 7, 10, 11, 52, 344, 99_999])
def test_any_number_of_sessions_stays_inside_the_picture(count):
    counts = [Bar(day=DAY, source="judge", final=True, count=count)] if count else []
    boxes = parsed(timelines.by_day(counts, DAYS)).iter("rect")
    assert all(float(rect.get("y")) >= 0 for rect in boxes)


def test_an_evidence_bar_adds_up_and_shows_what_is_pending():
    svg = bars.proof({"judge": 30.0, "journal": 10.0}, 4, 50)
    widths = [float(rect.get("width")) for rect in parsed(svg).iter("rect")][1:3]
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.01)
    assert "url(#hatch-line)" in svg
    assert "no evidence yet" in bars.proof({}, 0, 0)


def test_text_is_escaped():
    assert "<b>" not in posteriors.ridges({"<b>": Beta(alpha=2, beta=2)})["<b>"]


def test_an_outage_has_its_length_on_the_timeline():
    end = dt.datetime(2026, 3, 31, tzinfo=dt.UTC)
    start = end - dt.timedelta(days=14)
    half = start + dt.timedelta(days=7)
    spans = [
        TimelineSpan(since=start, until=half, css="f-open", label="open"),
        TimelineSpan(since=half, until=half + dt.timedelta(days=3.5), css="f-exhausted", label="out"),
        TimelineSpan(since=half + dt.timedelta(days=3.5), until=end + dt.timedelta(days=9), css="", label="until then"),
    ]
    svg = timelines.timeline(spans, start, end)
    widths = {rect.get("class"): rect.get("width") for rect in parsed(svg).iter("rect")}
    assert widths == {"f-track": "100.00%", "f-open": "50.00%", "f-exhausted": "25.00%", "hatched": "25.00%"}


@pytest.mark.parametrize(("used", "limit", "width"), [(0, 50, None), (2, 50, "4.00"), (90, 50, "100.00"), (1, 0, None)])
def test_a_gauge_never_leaves_its_track_and_outlines_what_is_kept(used, limit, width):
    rects = list(parsed(bars.gauge(used, limit, 0.2, "requests")).iter("rect"))
    assert [rect.get("width") for rect in rects if rect.get("class") == "f-ink"] == ([f"{width}%"] if width else [])
    assert (rects[-1].get("class"), rects[-1].get("x"), rects[-1].get("width")) == ("kept", "80.00%", "20.00%")


def test_what_is_only_expected_is_hatched_above_what_is_known():
    day_costs = [DayCost(day=day, reported=1.0, expected=0.5 * (day == DAY), label=f"{day}") for day in DAYS]
    rects = list(parsed(timelines.costs(day_costs)).iter("rect"))
    assert [rect.get("class") for rect in rects] == ["f-ink", "f-ink", "hatched"]
    assert float(rects[2].get("y")) + float(rects[2].get("height")) == pytest.approx(float(rects[1].get("y")))
    assert float(rects[1].get("height")) == pytest.approx(2 * float(rects[2].get("height")))


@pytest.mark.parametrize("money", [0, 1e-6, 0.046, 1.99, 12_345])
def test_any_cost_stays_inside_the_picture(money):
    day_costs = [DayCost(day=DAY, reported=money, expected=money / 10, label="")]
    assert all(float(rect.get("y")) >= 0 for rect in parsed(timelines.costs(day_costs)).iter("rect"))


def test_the_backlog_draws_what_was_as_an_area_and_what_is_forecast_dashed():
    now = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
    past = [(now - dt.timedelta(hours=6), 0.0), (now, 23.0)]
    future = [(now, 23.0), (now + dt.timedelta(hours=5), 36.0)]
    svg = timelines.backlog(past, future, [Note(at=now, waiting=23, label="23 now", css="ink")])
    # As wide as without notes.
    assert parsed(svg).get("viewBox") == parsed(timelines.backlog(past, future)).get("viewBox")
    assert [path.get("class") for path in parsed(svg).iter("path")] == ["queue", "queue-line", "queue-forecast"]
    assert "Backlog: 23 now" in parsed(svg).get("aria-label")
    texts = [text.text for text in parsed(svg).iter("text")]
    assert {"0", "20", "40", "23 now", "14:00", "20:00", "00:00"} <= set(texts)


@pytest.mark.parametrize("hours", [0, 0.001, 1, 30, 700])
def test_a_backlog_of_any_length_can_be_drawn(hours):
    now = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
    past = [(now - dt.timedelta(hours=hours), 0.0), (now, 0.0)]
    labels = [text.text for text in parsed(timelines.backlog(past, [])).iter("text")]
    assert 3 <= len(labels) <= 12
    assert "nan" not in timelines.backlog(past, [])


def test_notes_of_the_backlog_cover_none_another():
    """All three are near one point: the last minutes of six hours."""
    now = dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC)
    soon = now + dt.timedelta(minutes=3)
    notes = [Note(at=at, waiting=3, label=label) for at, label in ((now, "3 now"), (soon, "3 when judging resumes"))]
    notes.append(Note(at=soon, waiting=0, label="0 at 20:00"))
    past, future = [(now - dt.timedelta(hours=6), 0.0), (now, 3.0)], [(now, 3.0), (soon, 3.0), (soon, 0.0)]
    texts = parsed(timelines.backlog(past, future, notes, size=timelines.PHONE_BACKLOG)).iter("text")
    heights = [float(text.get("y")) for text in texts if text.text in {note.label for note in notes}]
    assert len(heights) == 3
    assert all(abs(one - other) >= timelines.NOTE for one, other in combinations(heights, 2))


def test_a_note_of_the_backlog_finds_room_between_two_others():
    """The first two notes cover all rows but the lowest for the third, which belongs at the top."""
    now = dt.datetime(2026, 3, 31, 12, tzinfo=dt.UTC)
    later = now + dt.timedelta(hours=12)
    notes = [Note(at=now + dt.timedelta(hours=6), waiting=n, label=f"{n} sessions are waiting") for n in (70, 80, 100)]
    texts = parsed(timelines.backlog([(now, 0.0)], [(now, 0.0), (later, 100.0)], notes)).iter("text")
    heights = [float(text.get("y")) for text in texts if text.text in {note.label for note in notes}]
    assert len(heights) == 3
    assert all(abs(one - other) >= timelines.NOTE for one, other in combinations(heights, 2))


FORTNIGHT = [DAY - dt.timedelta(days=back) for back in range(13, -1, -1)]


def at(day: int, hour: int = 0) -> dt.datetime:
    return dt.datetime.combine(FORTNIGHT[day], dt.time(hour), tzinfo=dt.UTC)


def test_the_backlog_marks_when_judging_resumes_also_if_no_session_comes_in_between():
    """Then as many wait now as when it resumes, and only the time tells the two marks apart."""
    now, midnight = (dt.datetime(2026, 3, 31, 19, 40, tzinfo=dt.UTC), dt.datetime(2026, 4, 1, tzinfo=dt.UTC))
    outlook = QueueOutlook(
        waiting=23,
        sent=0,
        past=((now - dt.timedelta(hours=6), 0.0), (now, 23.0)),
        forecast=forecast(now, Conditions(waiting=23, arrivals=0, rate=90, opens_at=midnight)),
        pace=None,
        arrivals=0,
        each_usd=None,
        allowance=None,
    )
    texts = {text.text: float(text.get("x")) for text in parsed(figures.backlog_chart(outlook)).iter("text")}
    assert texts["23 now"] < texts["23 when judging resumes"]


def test_an_outage_is_red_on_its_hours_above_its_days_bar():
    counts = [Bar(day=day, source="judge", final=True, count=10) for day in FORTNIGHT]
    out = OutageSpan(since=at(-1, 6), until=at(-1, 18), label="quota exhausted for 12 h")
    svg = parsed(timelines.by_day(counts, FORTNIGHT, [out]))
    boxes = {rect.get("class"): rect for rect in svg.iter("rect")}
    bar, red = boxes["f-judge"], boxes["f-alarm"]
    assert float(red.get("width")) == pytest.approx(float(bar.get("width")) / 2, abs=0.1)
    assert float(red.get("x")) == pytest.approx(float(bar.get("x")) + float(bar.get("width")) / 4, abs=0.1)
    assert float(red.get("y")) < float(bar.get("y"))
    assert [each.text for each in svg.iter("text") if each.get("class") == "red"] == ["quota exhausted for 12 h"]


def test_an_outage_over_several_days_marks_each_and_is_named_once():
    out = OutageSpan(since=at(-3, 12), until=at(-1, 1), label="judge overloaded")
    svg = parsed(timelines.by_day([], FORTNIGHT, [out]))
    assert [rect.get("class") for rect in svg.iter("rect")].count("f-alarm") == 3
    assert [each.text for each in svg.iter("text")].count("judge overloaded") == 1


def test_words_of_outages_lie_on_no_bar_and_not_on_each_other():
    counts = [Bar(day=day, source="judge", final=True, count=10 + 5 * n) for n, day in enumerate(FORTNIGHT)]
    outages = [OutageSpan(since=at(-n, 6), until=at(-n, 9), label=f"outage {n}, since judged") for n in (3, 2, 1)]
    svg = parsed(timelines.by_day(counts, FORTNIGHT, outages))
    tops = [float(rect.get("y")) for rect in svg.iter("rect") if rect.get("class") == "f-judge"]
    heights = [float(each.get("y")) for each in svg.iter("text") if each.get("class") == "red"]
    assert len(set(heights)) == 3
    assert all(0 < y < min(tops) for y in heights)


def test_an_outage_before_the_first_day_is_not_drawn():
    early = dt.datetime.combine(FORTNIGHT[0] - dt.timedelta(days=3), dt.time(), tzinfo=dt.UTC)
    assert "f-alarm" not in timelines.by_day([], FORTNIGHT, [OutageSpan(since=early, until=early, label="x")])


# --- differences around 0


def test_an_axis_holds_every_difference_and_is_never_finer_than_a_tenth():
    wide = RewardDifference(mean=0.1, low=-0.05, high=0.23, is_causal=True)
    assert bars.reach([wide]) == 0.4
    assert bars.reach([]) == 0.1
    assert bars.reach([RewardDifference(mean=1.5, low=-3, high=4, is_causal=False)]) == 1


def test_a_causal_difference_is_filled_and_an_observational_one_hollow():
    for is_causal, kind in ((True, "causal"), (False, "observational")):
        drawn = bars.difference(RewardDifference(mean=-0.1, low=-0.2, high=0.0, is_causal=is_causal), 0.4)
        assert f'<circle class="{kind}" cx="37.50%"' in drawn
        assert f'aria-label="{kind}: -0.100, 90 % interval -0.200 to +0.000"' in drawn


def test_without_a_difference_there_is_the_axis_alone():
    assert "<circle" not in bars.difference(None, 0.2)
    assert 'aria-label="cannot tell"' in bars.difference(None, 0.2)


# --- trends and their parts


def dot(value: float | None, half: float | None = None, *, ago: int = 0, provisional: int = 0, url: str = "/s"):
    """A point of one day."""
    low, high = (None, None) if value is None or half is None else (value - half, value + half)
    day = DAY - dt.timedelta(days=ago)
    return TrendDot(
        first=day, last=day, value=value, low=low, high=high, provisional=provisional, label=f"{value}", url=url
    )


def trend(*dots, markers=(), strip=True, size=WIDE) -> str:
    known = [each for one in dots for each in (one.value, one.low, one.high) if each is not None]
    return trends.trend(
        dots,
        markers,
        trends.scale_of(known, least=0.08, most=1.0),
        "Reward",
        size=size,
        write_level=str,
        write_value=str,
        strip=strip,
    )


@pytest.mark.parametrize(
    ("values", "least", "levels"),
    [
        ([0.599, 0.619], 0.08, (0.55, 0.6, 0.65)),
        ([0.5, 0.5], 0.08, (0.45, 0.5, 0.55)),
        ([0.98, 1.0], 0.08, (0.94, 0.96, 0.98, 1.0)),
        ([], 0.08, (0.0, 0.02, 0.04)),
        ([0.0, 0.0], 0.0, (0.0, 0.0001)),
        ([120_000.0, 910_000.0], 0.0, (0.0, 500_000.0, 1_000_000.0)),
    ],
)
def test_a_scale_has_round_levels_around_its_values(values, least, levels):
    scale = trends.scale_of(values, least=least, most=1.0 if max(values, default=0) <= 1 else float("inf"))
    assert scale.levels[0] <= min(values, default=0)
    assert scale.levels[-1] >= max(values, default=0)
    assert scale.levels == levels


def test_each_point_of_a_trend_is_a_link_and_an_unknown_one_is_a_gap():
    svg = trend(dot(0.4, 0.1, ago=3), dot(0.5, 0.1, ago=2), dot(None, ago=1), dot(0.6, 0.1))
    root = parsed(svg)
    assert root.get("role") == "group"
    assert [link.get("href") for link in root.iter("a")] == ["/s"] * 3
    # The two days before the gap have a line; the one after it has its interval alone.
    assert (len([*root.iter("polygon")]), svg.count('class="queue-line"')) == (2, 1)


def test_provisional_sessions_have_a_strip_of_their_own():
    assert trend(dot(0.4, provisional=3)).count("url(#hatch-line)") == 1
    assert "url(#hatch-line)" not in trend(dot(0.4, provisional=3), strip=False)


def test_marks_have_labels_that_cover_none_another():
    moments = [dt.datetime(2026, 3, 31, hour, tzinfo=dt.UTC) for hour in (1, 2, 3, 4, 5)]
    markers = [
        TrendMarker(at=at, label=f"version {letter}, a long label", letter=letter, is_outage=letter == "C")
        for letter, at in zip("ABCDE", moments, strict=True)
    ]
    root = parsed(trend(*(dot(0.5, ago=ago) for ago in (9, 1, 0)), markers=markers))
    heights = [text.get("y") for text in root.iter("text") if text.get("class") == "name"]
    # Three rows: the two labels that fit nowhere are left out, but their marks are drawn.
    assert (len(heights), len(set(heights)), len([*root.iter("g")])) == (3, 3, 5)
    narrow = parsed(trend(*(dot(0.5, ago=ago) for ago in (9, 1, 0)), markers=markers, size=PHONE))
    assert {text.text for text in narrow.iter("text") if text.get("class") == "name"} <= set("ABCDE")


def steps(*parts: tuple[float | None, bool], size: ChartSize = STEPS_WIDE) -> str:
    return changes.waterfall(
        0.5,
        0.52,
        [ChangeStep(name="part", value=value, label=str(value), is_sure=sure) for value, sure in parts],
        trends.scale_of([0.45, 0.6], least=0.08),
        size=size,
        write_level=str,
        write_value=str,
    )


@pytest.mark.parametrize(
    ("part", "rises", "falls", "hatched"),
    [((0.02, True), 1, 0, 0), ((-0.02, True), 0, 1, 0), ((0.02, False), 0, 1, 1), ((None, False), 0, 0, 0)],
)
def test_rises_are_filled_falls_outlined_and_what_cannot_be_told_apart_hatched(part, rises, falls, hatched):
    svg = steps(part)
    parsed(svg)
    assert [svg.count(each) for each in ('"f-rise"', '"f-fall"', "url(#hatch-line)")] == [rises, falls, hatched]


@pytest.mark.parametrize("size", [STEPS_WIDE, STEPS_PHONE])
def test_each_step_has_its_number_and_on_a_phone_its_name(size):
    texts = {text.text for text in parsed(steps((0.02, True), (None, False), size=size)).iter("text")}
    assert {"0.5", "0.02", "?", "0.52"} <= texts
    assert ({"before", "part", "after"} <= texts) == size.is_narrow


@pytest.mark.parametrize("values", [(), (None,), (0.5,), (None, 0.5, None)])
def test_any_group_has_a_small_trend(values):
    dots = [dot(value, 0.1, ago=len(values) - place) for place, value in enumerate(values)]
    svg = trends.spark(dots, trends.scale_of([0.5], least=0.08), 0.5, "code")
    parsed(svg)
    assert "nan" not in svg
