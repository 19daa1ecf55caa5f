"""What a bandit believes: densities on an axis, before and after a correction, and what each belief rests on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.utils.safestring import SafeString

from bandit.core.moves import ArmMove
from grading.reward.explain import number
from grading.screens.charts.days import STACK
from grading.screens.charts.svg import area, line, open_path, rect, svg, text

RIDGE = (520, 58)
CURVES = (348, 148)
PROOF = (348, 12)
MOVE = (520, 24)
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
