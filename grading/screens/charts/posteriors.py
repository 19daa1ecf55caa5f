"""Posteriors: densities on an axis, means before and after a correction, and an arm's share by number of sessions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from django.utils.safestring import SafeString

from bandit.core.moves import ArmMove
from grading.plain import counted
from grading.reward.explain import number
from grading.screens.charts.svg import Axis, Point, area, circle, level, line, open_path, svg, text

RIDGE = (520, 58)
CURVES = (348, 148)
CLIMB = (348, 132)
MOVE = (520, 24)
COMPARED = 220
STEPS, PHONE_STEPS = (430, 176), (324, 176)
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


def thousandths(value: float) -> str:
    """A posterior's mean with three digits and no leading zero."""
    return f"{value:.3f}".removeprefix("0")


# --- ridges and moves on a 0–1 axis


def ridges(
    posteriors: Mapping[str, Beta], others: Mapping[str, Beta] = MappingProxyType({}), css: str = ""
) -> dict[str, SafeString]:
    """One density for each name on a shared 0–1 axis; height ∝ √peak, so that a weak arm stays visible.

    `others` are what some of them are compared with, drawn as dashed lines of the class `css`.
    """
    curves = {name: _curve(posterior, 0, 1) for name, posterior in posteriors.items()}
    dashed = {name: _curve(posterior, 0, 1) for name, posterior in others.items()}
    top = math.sqrt(max((_peak(curve) for curve in (*curves.values(), *dashed.values())), default=1))
    width, height = RIDGE
    base = height - 0.5

    def scale(curve: Sequence[Point]) -> list[Point]:
        """The visible part of a curve in pixels."""
        peak = _peak(curve)
        pixels_per_density = (height - 12) / (top * math.sqrt(peak))
        return [(x * width, base - density * pixels_per_density) for x, density in curve if density > VISIBLE * peak]

    pictures = {}
    for name, curve in curves.items():
        mean, path = posteriors[name].mean, scale(curve)
        marks, label = [_quarters(width, height), area("is", path, base)], f"{name}: mean {thousandths(mean)}"
        if name in dashed:
            label += f", beside {thousandths(others[name].mean)}"
            marks.append(open_path(css, scale(dashed[name])))
        marks.append(line("is-mean", mean * width, _height_at(path, mean * width) - 2, mean * width, base))
        pictures[name] = svg(width, height, marks, label, stretch=True)
    return pictures


def move(arm: ArmMove) -> SafeString:
    """An arm's mean on a 0–1 axis, before a correction (thin) and after it (thick, in the colour of people)."""
    width, height = MOVE
    before, after, middle = arm.mean_before, arm.mean_after, height / 2
    marks = [
        _quarters(width, height),
        line("will-mean", before * width, middle, after * width, middle),
        line("was-mean solid", before * width, 4, before * width, height - 4),
        line("will-mean thick", after * width, 3, after * width, height - 3),
    ]
    label = f"{arm.arm}: mean {thousandths(before)} before, {thousandths(after)} after"
    return svg(width, height, marks, label, stretch=True)


def _quarters(width: float, height: float) -> str:
    return "".join(line("grid", x * width, 0, x * width, height) for x in (0, 0.25, 0.5, 0.75, 1))


# --- curves on an axis as wide as they need


@dataclass(frozen=True, slots=True)
class Curves:
    """Curves of densities in pixels, with the axis below them."""

    x: Axis
    base: float
    paths: list[list[Point]]
    axis: str

    @classmethod
    def from_posteriors(cls, posteriors: Sequence[Beta], width: float, base: float, top: float) -> "Curves":
        """The axis covers the tenths that contain four standard deviations of each posterior."""
        spreads = [math.sqrt(p.mean * (1 - p.mean) / (p.alpha + p.beta + 1)) for p in posteriors]
        low = min(p.mean - 4 * spread for p, spread in zip(posteriors, spreads, strict=True))
        high = max(p.mean + 4 * spread for p, spread in zip(posteriors, spreads, strict=True))
        x = Axis(max(0.0, math.floor(low * 10) / 10), min(1.0, math.ceil(high * 10) / 10), 0, width)
        curves = [_curve(posterior, x.low, x.high) for posterior in posteriors]
        y = Axis(0, max(map(_peak, curves)), base, top)
        marks = [line("axis", 0, base + 0.5, width, base + 0.5)]
        for tenth in range(round(x.low * 10) + 1, round(x.high * 10)):
            at = x.at(tenth / 10)
            marks += [line("grid", at, 18, at, base), text(at, base + 14, number(tenth / 10).rstrip("0"), "middle")]
        paths = [[(x.at(value), y.at(density)) for value, density in curve] for curve in curves]
        return cls(x=x, base=base, paths=paths, axis="".join(marks))

    def mean_line(self, css: str, posterior: Beta, path: Sequence[Point]) -> str:
        at = self.x.at(posterior.mean)
        return line(css, at, _height_at(path, at), at, self.base)


def before_after(before: Beta | None, after: Beta) -> SafeString:
    """The posterior as it is (dashed) and as it would be (filled, in the colour of people), with their means.

    Without `before` the picture depends on `after` alone, so that it doesn't disclose the other one.
    """
    width, height = CURVES
    curves = Curves.from_posteriors([after] if before is None else [after, before], width, height - 18, 18)
    path, at = curves.paths[0], curves.x.at(after.mean)
    marks = [curves.axis, area("will", path, curves.base)]
    then, is_lower = f"after {thousandths(after.mean)}", False
    label = f"Mean {then}"
    if before is not None:
        # Both labels are above the curves, that of the lower mean before it, so that they never overlap.
        current = curves.x.at(before.mean)
        is_lower = at < current
        now = f"now {thousandths(before.mean)}"
        marks += [
            open_path("was", curves.paths[1]),
            curves.mean_line("was-mean", before, curves.paths[1]),
            _beside(current, 12, now, is_before=not is_lower),
        ]
        label = f"Mean {now}, {then}"
    marks += [curves.mean_line("will-mean", after, path), _beside(at, 12, then, is_before=is_lower, css="human")]
    return svg(width, height, marks, label)


def compared(before: Beta, here: Beta, other: Beta, names: tuple[str, str], width: int) -> SafeString:
    """Two posteriors (filled and dotted, with their `names`) that began as the same one (dashed), with their means."""
    height = COMPARED
    curves = Curves.from_posteriors([before, here, other], width, height - 18, 34)
    before_path, here_path, other_path = curves.paths
    marks = [
        curves.axis,
        open_path("was", before_path),
        area("here", here_path, curves.base),
        open_path("floors", other_path),
        curves.mean_line("was-mean", before, before_path),
        curves.mean_line("here-mean", here, here_path),
        curves.mean_line("floors-mean", other, other_path),
    ]
    labels = [f"{thousandths(each.mean)} {name}" for each, name in zip((here, other), names, strict=True)]
    is_lower = curves.x.at(here.mean) < curves.x.at(other.mean)
    marks += [
        _beside(curves.x.at(here.mean), 12, labels[0], is_before=is_lower, css="here"),
        _beside(curves.x.at(other.mean), 28, labels[1], is_before=not is_lower, css="floors"),
    ]
    return svg(width, height, marks, f"Before {thousandths(before.mean)}; {'; '.join(labels)}")


def beliefs(posteriors: Mapping[str, Beta], name: str) -> SafeString:
    """An arm's posteriors on one axis, each a line whose CSS class is its key."""
    width, height = CURVES
    curves = Curves.from_posteriors(list(posteriors.values()), width, height - 18, 18)
    marks, means = [curves.axis], []
    for (css, posterior), path in zip(posteriors.items(), curves.paths, strict=True):
        marks += [open_path(f"belief {css}", path), curves.mean_line(f"belief {css}", posterior, path)]
        means.append(f"{css} {thousandths(posterior.mean)}")
    return svg(width, height, marks, f"{name}: mean {', '.join(means)}")


def _beside(x: float, y: float, label: str, *, is_before: bool, css: str = "") -> str:
    return text(x - 4, y, label, "end", css) if is_before else text(x + 4, y, label, "start", css)


def _curve(posterior: Beta, low: float, high: float) -> list[Point]:
    """POINTS points (value, density) between two values in [0, 1]."""
    xs = [low + (high - low) * (i + 0.5) / POINTS for i in range(POINTS)]
    return [(x, posterior.density(min(max(x, 1e-6), 1 - 1e-6))) for x in xs]


def _peak(curve: Sequence[Point]) -> float:
    return max(y for _, y in curve)


def _height_at(path: Sequence[Point], x: float) -> float:
    """The y of the path's point that is nearest to x."""
    return min(path, key=lambda point: abs(point[0] - x))[1]


# --- series


def by_step(means: Sequence[tuple[float, float]], steps: int, *, size: tuple[int, int] = STEPS) -> SafeString:
    """The mean after each finished step, of this site (a line) and of a site that learns floors (dotted). `means` has
    the pair for each of the finished steps, at least one.
    """
    width, height = size
    values = [value for pair in means for value in pair]
    low, high = math.floor(min(values) * 20) / 20, math.ceil(max(values) * 20) / 20
    x = Axis(-0.5, steps - 0.5, 44, width)
    y = Axis(low, low + max(high - low, 0.05), height - 20, 14)
    ticks = [low + n * 0.05 for n in range(round((high - low) * 20) + 1)]
    marks = [level(thousandths(tick)[:3], y.at(tick), x.start, width, is_axis=tick == low) for tick in ticks]
    marks += [text(x.at(step), y.start + 15, str(step + 1), "middle") for step in range(steps)]
    here = [(x.at(step), y.at(mean)) for step, (mean, _) in enumerate(means)]
    other = [(x.at(step), y.at(mean)) for step, (_, mean) in enumerate(means)]
    marks += [open_path("floors", other), open_path("here-line", here)]
    marks += [circle("floors-dot", point) for point in other]
    marks += [circle("here-dot", point) for point in here]
    last = means[-1]
    marks.append(text(here[-1][0], here[-1][1] - 8, thousandths(last[0]), "middle", "here"))
    if last[0] != last[1]:
        marks.append(text(other[-1][0], other[-1][1] - 8, thousandths(last[1]), "middle", "floors"))
    label = f"After step {len(means)}: {thousandths(last[0])}, and {thousandths(last[1])} where floors are learned"
    return svg(width, height, marks, label)


def climb(points: Sequence[tuple[int, float]]) -> SafeString:
    """An arm's expected number of the next 100 decisions by the number of sessions that count. `points` are
    (sessions, expected number), with ascending sessions from 0.
    """
    width, height = CLIMB
    sessions, top = points[-1][0], max(10.0, *(share for _, share in points))
    x, y = Axis(0, max(sessions, 1), 28, width - 8), Axis(0, top, height - 20, 16)
    path: list[Point] = []
    for count, share in points:
        if path:  # a horizontal line, then a step
            path.append((x.at(count), path[-1][1]))
        path.append((x.at(count), y.at(share)))
    marks = []
    for share in (0.0, top):
        marks.append(line("grid", x.start, y.at(share), x.end, y.at(share)))
        marks.append(text(x.start - 6, y.at(share) + 4, f"{share:.0f}", "end"))
    marks += [
        area("climb", path, y.start),
        text(x.start, y.start + 15, "0"),
        text(x.end, y.start + 15, counted(sessions, "session"), "end"),
    ]
    first, last = points[0][1], points[-1][1]
    label = f"From {first:.0f} of the next 100 without these sessions to {last:.0f} with all {sessions}"
    return svg(width, height, marks, label)
