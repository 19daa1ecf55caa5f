"""What a bandit believes: densities on an axis, before and after a correction, and what each belief rests on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.utils.safestring import SafeString

from bandit.core.moves import ArmMove
from grading.reward.explain import number
from grading.screens.charts.days import STACK
from grading.screens.charts.svg import area, level, line, open_path, rect, svg, text

RIDGE = (520, 58)
CURVES = (348, 148)
PROOF = (348, 12)
MOVE = (520, 24)
COMPARED = 220
STEPS = (430, 176)
POINTS = 160
# A ridge ends where its density is less than this share of its peak.
VISIBLE = 0.002


@dataclass(frozen=True, slots=True, kw_only=True)
class Beta:
    """A posterior Beta(`alpha`, `beta`), both positive."""

    alpha: float
    beta: float

    @property
    def mean(self) -> float:
        return self.alpha / (self.alpha + self.beta)

    def density(self, x: float) -> float:
        """The density at x in (0, 1)."""
        norm = math.lgamma(self.alpha + self.beta) - math.lgamma(self.alpha) - math.lgamma(self.beta)
        return math.exp(norm + (self.alpha - 1) * math.log(x) + (self.beta - 1) * math.log1p(-x))


def ridges(
    posteriors: Mapping[str, Beta], others: Mapping[str, Beta] = MappingProxyType({}), css: str = ""
) -> dict[str, SafeString]:
    """One density a name on a shared 0–1 axis; height ∝ √peak, so that a weak arm stays visible.

    `others` are what some of them are compared with, drawn as dashed lines of the class `css`.
    """
    curves = {name: _curve(posterior, 0, 1) for name, posterior in posteriors.items()}
    dashed = {name: _curve(posterior, 0, 1) for name, posterior in others.items()}
    top = math.sqrt(max((_peak(curve) for curve in (*curves.values(), *dashed.values())), default=1))
    width, height = RIDGE
    base = height - 0.5
    grid = "".join(line("grid", x * width, 0, x * width, height) for x in (0, 0.25, 0.5, 0.75, 1))
    found = {}
    for name, curve in curves.items():
        mean, path = posteriors[name].mean, _scaled(curve, top)
        label, beside = f"{name}: mean {thousandths(mean)}", ""
        if name in dashed:
            label += f", beside {thousandths(others[name].mean)}"
            beside = open_path(css, _scaled(dashed[name], top))
        tick = line("is-mean", mean * width, _height_at(path, mean * width) - 2, mean * width, base)
        found[name] = svg(width, height, grid + area("is", path, base) + beside + tick, label, stretch=True)
    return found


def _peak(curve: Sequence[tuple[float, float]]) -> float:
    return max(y for _, y in curve)


def _scaled(curve: Sequence[tuple[float, float]], top: float) -> list[tuple[float, float]]:
    """The visible part of a curve in a ridge's pixels; `top` is the square root of the highest peak of all."""
    width, height = RIDGE
    peak = _peak(curve)
    scale = (height - 12) / (top * math.sqrt(peak))
    return [(x * width, height - 0.5 - y * scale) for x, y in curve if y > VISIBLE * peak]


def before_after(before: Beta | None, after: Beta) -> SafeString:
    """The posterior as it is (dashed) and as it would be (filled, in the colour of people), means labelled.

    Without `before`, nothing in the picture tells of it: its window and its height are of `after` alone.
    """
    width, height = CURVES
    base, room = height - 18.0, height - 36.0
    low, high = _window(after) if before is None else _window(before, after)
    will = _curve(after, low, high)
    was = [] if before is None else _curve(before, low, high)
    peak = max(y for _, y in (*was, *will))

    def place(curve: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [((x - low) / (high - low) * width, base - y / peak * room) for x, y in curve]

    path, at = place(will), (after.mean - low) / (high - low) * width
    marks = [axis(low, high, width, base), area("will", path, base)]
    then, is_left = f"after {thousandths(after.mean)}", False
    label = f"Mean {then}"
    if before is not None:
        # Both means above the curves, the lower one to the left, so that they never overlap.
        dashed, held = place(was), (before.mean - low) / (high - low) * width
        is_left = at < held
        now = f"now {thousandths(before.mean)}"
        marks += [
            open_path("was", dashed),
            line("was-mean", held, _height_at(dashed, held), held, base),
            text(held + 4, 12, now, "start") if is_left else text(held - 4, 12, now, "end"),
        ]
        label = f"Mean {now}, {then}"
    marks += [
        line("will-mean", at, _height_at(path, at), at, base),
        text(at - 4, 12, then, "end", "human") if is_left else text(at + 4, 12, then, "start", "human"),
    ]
    return svg(width, height, "".join(marks), label)


def compared(before: Beta, here: Beta, other: Beta, names: tuple[str, str], width: int) -> SafeString:
    """Two beliefs (filled and dotted, with their `names`) that began as the same one (dashed), means labelled."""
    height = COMPARED
    base, room = height - 18.0, height - 52.0
    low, high = _window(before, here, other)
    curves = [_curve(each, low, high) for each in (before, here, other)]
    peak = max(_peak(curve) for curve in curves)
    placed = [[((x - low) / (high - low) * width, base - y / peak * room) for x, y in curve] for curve in curves]
    was, now, wrong = ((each.mean - low) / (high - low) * width for each in (before, here, other))
    marks = [
        axis(low, high, width, base),
        open_path("was", placed[0]),
        area("here", placed[1], base),
        open_path("floors", placed[2]),
        line("was-mean", was, _height_at(placed[0], was), was, base),
        line("here-mean", now, _height_at(placed[1], now), now, base),
        line("floors-mean", wrong, _height_at(placed[2], wrong), wrong, base),
    ]
    labels = [f"{thousandths(each.mean)} {name}" for each, name in zip((here, other), names, strict=True)]
    is_right = now >= wrong  # the lower mean's words to its left, above the curves, so that they never overlap
    marks += [
        text(now + (4 if is_right else -4), 12, labels[0], "start" if is_right else "end", "here"),
        text(wrong + (-4 if is_right else 4), 28, labels[1], "end" if is_right else "start", "floors"),
    ]
    return svg(width, height, "".join(marks), f"Before {thousandths(before.mean)}; {'; '.join(labels)}")


def by_step(means: Sequence[tuple[float, float]], steps: int) -> SafeString:
    """The means after each finished step: of the one belief (a line) and of the other (dotted)."""
    width, height = STEPS
    left, base, top = 44.0, height - 20.0, 14.0
    values = [value for pair in means for value in pair]
    low, high = math.floor(min(values) * 20) / 20, math.ceil(max(values) * 20) / 20

    def place(at: int, value: float) -> tuple[float, float]:
        return left + (at + 0.5) * (width - left) / steps, base - (value - low) / max(high - low, 0.05) * (base - top)

    ticks = [low + n * 0.05 for n in range(round((high - low) * 20) + 1)]
    marks = [level(thousandths(tick)[:3], place(0, tick)[1], left, width, axis=tick == low) for tick in ticks]
    marks += [text(place(at, low)[0], base + 15, str(at + 1), "middle") for at in range(steps)]
    here, other = ([place(at, pair[which]) for at, pair in enumerate(means)] for which in (0, 1))
    marks += [open_path("floors", other), open_path("here-line", here)]
    marks += [f'<circle class="floors-dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in other]
    marks += [f'<circle class="here-dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in here]
    last = means[-1]
    marks.append(text(here[-1][0], here[-1][1] - 8, thousandths(last[0]), "middle", "here"))
    if last[0] != last[1]:
        marks.append(text(other[-1][0], other[-1][1] - 8, thousandths(last[1]), "middle", "floors"))
    label = f"After step {len(means)}: {thousandths(last[0])}, and {thousandths(last[1])} where floors are learned"
    return svg(width, height, "".join(marks), label)


def beliefs(shown: Mapping[str, Beta], name: str) -> SafeString:
    """One posterior of an arm for each way to count something, each a line of the class it is under, on one axis."""
    width, height = CURVES
    base, room = height - 18.0, height - 36.0
    low, high = _window(*shown.values())
    curves = {css: _curve(belief, low, high) for css, belief in shown.items()}
    peak = max(y for curve in curves.values() for _, y in curve)
    marks, said = [axis(low, high, width, base)], []
    for css, curve in curves.items():
        mean = shown[css].mean
        path = [((x - low) / (high - low) * width, base - y / peak * room) for x, y in curve]
        at = (mean - low) / (high - low) * width
        marks += [open_path(f"belief {css}", path), line(f"belief {css}", at, _height_at(path, at), at, base)]
        said.append(f"{css} {thousandths(mean)}")
    return svg(width, height, "".join(marks), f"{name}: mean {', '.join(said)}")


def proof(evidence: Mapping[str, float], pending: float, full: float) -> SafeString:
    """How much of a posterior rests on what: pseudo-observations by source, pending ones hatched, of `full` in all."""
    width, height = PROOF
    marks, x = [f'<rect class="f-track" width="{width}" height="{height}" rx="2"/>'], 0.0
    for source in (*STACK, *sorted(evidence.keys() - set(STACK))):
        share = evidence.get(source, 0.0) / full * width if full else 0.0
        if share > 0:
            shown = max(share, 2.0)
            marks.append(rect(f"f-{source}", (x, 0, shown, height), f"{source} {evidence[source]:.1f}"))
            x += shown + 1
    if pending and full:
        share = min(max(pending / full * width, 3.0), width - x - 1)
        box = f'x="{x + 0.5:.1f}" y="0.5" width="{max(share - 1, 1):.1f}" height="{height - 1}"'
        marks.append(f'<rect fill="url(#hatch-line)" {box}/><rect class="outline" {box}/>')
    label = ", ".join(f"{source} {amount:.1f}" for source, amount in evidence.items()) or "no evidence yet"
    return svg(width, height, "".join(marks), f"{label}, {pending:g} pending")


def move(arm: ArmMove) -> SafeString:
    """An arm's mean on a 0–1 axis, before (thin) and after (thick, in the colour of people)."""
    width, height = MOVE
    before, after, middle = arm.mean_before, arm.mean_after, height / 2
    grid = "".join(line("grid", x * width, 0, x * width, height) for x in (0, 0.25, 0.5, 0.75, 1))
    marks = [
        line("will-mean", before * width, middle, after * width, middle),
        line("was-mean solid", before * width, 4, before * width, height - 4),
        line("will-mean thick", after * width, 3, after * width, height - 3),
    ]
    label = f"{arm.arm}: mean {thousandths(before)} before, {thousandths(after)} after"
    return svg(width, height, grid + "".join(marks), label, stretch=True)


def thousandths(value: float) -> str:
    """A posterior's mean as people read it: three digits, no leading zero."""
    return f"{value:.3f}".removeprefix("0")


def _curve(posterior: Beta, low: float, high: float) -> list[tuple[float, float]]:
    xs = [low + (high - low) * (i + 0.5) / POINTS for i in range(POINTS)]
    return [(x, posterior.density(min(max(x, 1e-6), 1 - 1e-6))) for x in xs]


def _window(*posteriors: Beta) -> tuple[float, float]:
    """The tenths that hold four standard deviations of each curve."""
    spreads = [math.sqrt(p.mean * (1 - p.mean) / (p.alpha + p.beta + 1)) for p in posteriors]
    low = min(p.mean - 4 * spread for p, spread in zip(posteriors, spreads, strict=True))
    high = max(p.mean + 4 * spread for p, spread in zip(posteriors, spreads, strict=True))
    return max(0.0, math.floor(low * 10) / 10), min(1.0, math.ceil(high * 10) / 10)


def _height_at(path: Sequence[tuple[float, float]], x: float) -> float:
    return min(path, key=lambda point: abs(point[0] - x))[1]


def axis(low: float, high: float, width: float, base: float) -> str:
    marks = [line("axis", 0, base + 0.5, width, base + 0.5)]
    for tenth in range(round(low * 10) + 1, round(high * 10)):
        x = (tenth / 10 - low) / (high - low) * width
        marks += [line("grid", x, 18, x, base), text(x, base + 14, number(tenth / 10).rstrip("0"), "middle")]
    return "".join(marks)
