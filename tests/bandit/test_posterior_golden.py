"""What rewards make a bandit believe: the numbers of the posterior.

Nothing stored names a version of these: all history is folded anew by the formula of the day. So a change of a number
moves every arm of every site at once.
"""

from dataclasses import replace
from datetime import date, timedelta

import pytest

from bandit.core.calibration import FallbackCalibration, KindEstimate
from bandit.core.policy import Policy
from bandit.core.posterior import fold, plain_means
from bandit.core.table import RewardRow
from tests import golden

pytestmark = pytest.mark.pure

WHAT = "The posterior"
TODAY = date(2026, 3, 31)
PLAIN = Policy(weights={"judge": 1.0, "human": 1.0, "journal": 0.3}, evidence_scale=6.0, version="golden")
FREE = replace(PLAIN, evidence_scale=None)
CALIBRATION = FallbackCalibration(
    sources=("journal",),
    kinds=(
        KindEstimate(source="journal", shift=0.3, difference=-0.1, by_arm={"code": -0.15}, pairs={"code": 12}),
        KindEstimate(source="unscored", reason="nothing_observable", difference=-0.2, pairs={"news": 4}),
    ),
)


def of(arm, value, *, age=0, n=1, source="judge", spread=0.0, **more):
    """`n` rewards around `value`, half of them `spread` above it and half below."""
    q = n * round((value**2 + spread**2) * 1e12)
    day = TODAY - timedelta(days=age)
    return RewardRow(arm=arm, source=source, day=day, n=n, s=n * round(value * 1e6), q=q, **more)


BUSY = [
    *(of("code", 0.6 + age / 100, age=age, n=3, spread=0.1) for age in range(0, 30, 3)),
    *(of("news", 0.4, age=age, n=2, spread=0.2) for age in range(1, 60, 7)),
    of("code", 0.5, age=2, n=9, source="journal", spread=0.1),
    of("news", 0.2, age=5, n=4, source="human"),
    of("triage", 0.9, age=200, n=5),
]
MIXED = [
    *BUSY,
    of("news", 0.0, age=3, n=6, source="unscored", view="nothing_observable"),
    of("triage", 0.2, age=4, n=2, source="journal"),
    of("code", 0.0, age=3, n=6, source="unscored", view="format_blind"),
]
COSTLY = [
    of("code", 0.8, n=4, age=1, cost=8_000_000, costed=4),
    of("news", 0.8, n=4, age=1, cost=1_000_000, costed=2),
    of("triage", 0.8, n=4, age=1),
]
MANY = [of("code", 0.9, age=age, n=5) for age in (0, 1, 1, 4, 9)] + [of("news", 0.4, age=3, n=2)]
TABLE = {
    # case: α, β and long-run mean of code, news and triage; the mean of all, the evidence scale
    "nothing": ((6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (0.5, 6.0)),
    "one reward": ((12.0, 6.0, 0.6), (6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (0.5, 6.0)),
    "one of yesterday": (
        (12.640045005, 5.165145666, 0.666324372),
        (7.196921326, 4.803078674, 0.599743444),
        (7.196921326, 4.803078674, 0.599743444),
        (0.599743444, 6.0),
    ),
    "one of a half-life ago": (
        (10.313803891, 4.686196109, 0.659483658),
        (7.136200903, 4.863799097, 0.594683409),
        (7.136200903, 4.863799097, 0.594683409),
        (0.594683409, 6.0),
    ),
    "one of tomorrow": ((6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (0.5, 6.0)),
    "a journal": ((7.909565217, 5.890434783, 0.539130435), (6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (0.5, 6.0)),
    "a source without weight": ((6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (0.5, 6.0)),
    "much": (
        (101.342092516, 45.821587306, 0.704503612),
        (28.341541715, 53.25154492, 0.381171185),
        (9.08275911, 2.957994766, 0.753840052),
        (0.584682802, 6.0),
    ),
    "much, with a scale of its own": (
        (69.829436972, 31.544592268, 0.700770379),
        (20.395636573, 37.621270987, 0.389992076),
        (8.669768716, 3.357178893, 0.720459656),
        (0.583063171, 3.967368868),
    ),
    "a weaker prior": (
        (95.726317534, 43.437362288, 0.709567091),
        (25.24009075, 48.352995886, 0.368150814),
        (3.356615382, 0.684138493, 0.829984224),
        (0.586887335, 6.0),
    ),
    "shorter half-lives": (
        (59.430442861, 32.306199981, 0.685974661),
        (16.112602484, 32.210473513, 0.375750405),
        (6.902752908, 5.097247167, 0.575229403),
        (0.567237503, 6.0),
    ),
    "a cap on journals": (
        (94.949359558, 39.049212836, 0.720322008),
        (28.345846583, 53.247240052, 0.381529924),
        (9.104769691, 2.935984185, 0.755674267),
        (0.588639834, 6.0),
    ),
    "a cap on all evidence": (
        (64.732180848, 7.267819152, 0.894348404),
        (11.709241665, 11.159442307, 0.613480673),
        (9.894111736, 2.105888264, 0.824509311),
        (0.824509311, 6.0),
    ),
    "a cap that holds it all": (
        (133.70036334, 14.93095054, 0.894348404),
        (11.709241665, 11.159442307, 0.613480673),
        (9.894111736, 2.105888264, 0.824509311),
        (0.824509311, 6.0),
    ),
    "a cap on all evidence, with a scale of its own": (
        (28.631581314, 3.368418686, 0.885965109),
        (10.179993716, 7.25434827, 0.667188077),
        (9.590971882, 2.409028118, 0.799247657),
        (0.799247657, 3.0),
    ),
    "a price": (
        (21.304010964, 13.91675172, 0.614296113),
        (25.985584052, 9.235178632, 0.71416767),
        (22.864535327, 12.356227358, 0.647586632),
        (0.642778447, 6.0),
    ),
    "little salience": ((16.873846154, 6.526153846, 0.646153846), (6.0, 6.0, 0.5), (6.0, 6.0, 0.5), (0.5, 6.0)),
    "offsets": (
        (98.10786634, 49.055813482, 0.687736555),
        (28.330448417, 53.262638218, 0.380246744),
        (9.026039608, 3.014714268, 0.749113427),
        (0.574485848, 6.0),
    ),
    "calibrated": (
        (89.107533403, 42.891038991, 0.689960316),
        (23.905726423, 57.687360212, 0.34065472),
        (8.808065699, 3.232688176, 0.731287239),
        (0.589232289, 6.0),
    ),
    "calibrated, with a scale of its own": (
        (61.683916279, 29.662517113, 0.686513453),
        (17.32156619, 40.69534137, 0.351452744),
        (8.457662671, 3.569284939, 0.703007848),
        (0.587435805, 3.967368868),
    ),
    "forgotten": (
        (7.226136404, 4.773863596, 0.602178034),
        (6.676661336, 5.323338664, 0.556388445),
        (6.676661336, 5.323338664, 0.556388445),
        (0.556388445, 6.0),
    ),
}
EVIDENCE = {
    # case: of each arm its sources: rewards, pseudo-observations, mean, what one counts, whether they are estimated
    "much": {
        "code": (("journal", 9, 15.165107428, 0.5, 0.3, False), ("judge", 30, 119.998572394, 0.735, 1.0, False)),
        "news": (("human", 4, 20.348735805, 0.2, 1.0, False), ("judge", 18, 49.24435083, 0.4, 1.0, False)),
        "triage": (("judge", 5, 0.040753876, 0.9, 1.0, False),),
    },
    "a cap on journals": {
        "code": (("journal", 9, 2.0, 0.5, 0.039564507, False), ("judge", 30, 119.998572394, 0.735, 1.0, False)),
        "news": (("human", 4, 20.348735805, 0.2, 1.0, False), ("judge", 18, 49.24435083, 0.4, 1.0, False)),
        "triage": (("judge", 5, 0.040753876, 0.9, 1.0, False),),
    },
    "a cap on all evidence": {
        "code": (("judge", 25, 60.0, 0.9, 0.439137986, False),),
        "news": (("judge", 2, 10.868683971, 0.4, 1.0, False),),
    },
    "calibrated": {
        "code": (("journal", 9, 0.0, 0.585, 0.0, True), ("judge", 30, 119.998572394, 0.735, 1.0, False)),
        "news": (
            ("human", 4, 20.348735805, 0.2, 1.0, False),
            ("judge", 18, 49.24435083, 0.4, 1.0, False),
            ("unscored", 6, 0.0, 0.163636364, 0.0, True),
        ),
        "triage": (("journal", 2, 0.0, 0.8, 0.0, True), ("judge", 5, 0.040753876, 0.9, 1.0, False)),
    },
    "one of tomorrow": {},
    "a source without weight": {"code": (("floor", 1, 0.0, 0.8, 0.0, False),)},
    "forgotten": {"code": (("judge", 1, 0.0, 0.8, 0.0, False),)},
}
MEANS = {
    "nothing": {},
    "one reward": {"code": 0.8},
    "a cap on journals": {"code": 0.7203125, "news": 0.363636364, "triage": 0.9},
    "much": {"code": 0.71559633, "news": 0.363636364, "triage": 0.9},
    "a price": {"code": 0.6, "news": 0.75, "triage": 0.65},
    "calibrated": {"code": 0.700384615, "news": 0.320779221, "triage": 0.871428571},
    "a source without weight": {},
    "offsets": {"code": 0.699082569, "news": 0.363636364, "triage": 0.9},
}
CASES = {
    "nothing": ([], PLAIN),
    "one reward": ([of("code", 0.8)], PLAIN),
    "one of yesterday": ([of("code", 0.8, age=1)], PLAIN),
    "one of a half-life ago": ([of("code", 0.8, age=21)], PLAIN),
    "one of tomorrow": ([of("code", 0.8, age=-1)], PLAIN),
    "a journal": ([of("code", 0.8, source="journal")], PLAIN),
    "a source without weight": ([of("code", 0.8, source="floor")], PLAIN),
    "much": (BUSY, PLAIN),
    "much, with a scale of its own": (BUSY, FREE),
    "a weaker prior": (BUSY, replace(PLAIN, prior_strength=4.0)),
    "shorter half-lives": (BUSY, replace(PLAIN, half_life=7.0, long_run_half_life=30.0)),
    "a cap on journals": (BUSY, replace(PLAIN, caps={"journal": 2.0})),
    "a cap on all evidence": (MANY, replace(PLAIN, evidence_cap=60.0)),
    "a cap that holds it all": (MANY, replace(PLAIN, evidence_cap=600.0)),
    "a cap on all evidence, with a scale of its own": (MANY, replace(FREE, evidence_cap=20.0)),
    "a price": (COSTLY, replace(PLAIN, cost_weight=0.1)),
    "little salience": ([of("code", 0.8, n=4, salience=25)], PLAIN),
    "offsets": (BUSY, replace(PLAIN, offsets={("code", "journal", ""): -0.2})),
    "calibrated": (MIXED, replace(PLAIN, calibration=CALIBRATION)),
    "calibrated, with a scale of its own": (MIXED, replace(FREE, calibration=CALIBRATION)),
    "forgotten": ([of("code", 0.8, age=200)], replace(PLAIN, half_life=0.1)),
}
ARMS = ("code", "news", "triage")


def folded(case):
    rows, policy = CASES[case]
    return fold(rows, arms=ARMS, policy=policy, today=TODAY)


def rounded(value):
    return None if value is None else round(float(value), 9)


def beliefs(case):
    """Of each arm α, β and the long-run mean; and for all the mean and the evidence scale."""
    found = folded(case)
    arms = [
        tuple(rounded(each) for each in row) for row in zip(found.alpha, found.beta, found.long_run_mean, strict=True)
    ]
    return (*arms, (rounded(found.mean), rounded(found.evidence_scale)))


def evidence(case):
    found = folded(case)
    return {
        name: tuple(
            (e.source, e.n, rounded(e.pseudo), rounded(e.mean), rounded(e.counts), e.is_estimated) for e in arm.evidence
        )
        for name, arm in found.arms.items()
        if arm.evidence
    }


def means(case):
    rows, policy = CASES[case]
    found = plain_means(rows, arms=ARMS, policy=policy, today=TODAY)
    return {name: rounded(mean) for name, mean in found.items()}


@pytest.mark.parametrize("case", CASES)
def test_what_is_believed(case):
    golden.hold_unversioned(beliefs(case), TABLE[case], what=WHAT)


@pytest.mark.parametrize("case", EVIDENCE)
def test_what_each_source_adds(case):
    golden.hold_unversioned(evidence(case), EVIDENCE[case], what=WHAT)


@pytest.mark.parametrize("case", MEANS)
def test_the_plain_means(case):
    golden.hold_unversioned(means(case), MEANS[case], what=WHAT)


def test_the_interval_and_the_chances():
    found = folded("much")
    said = [(rounded(arm.mean), rounded(arm.low), rounded(arm.high)) for arm in found.arms.values()]
    chances = {name: round(chance, 6) for name, chance in found.chance_of_best(["triage", "code"]).items()}
    assert list(chances) == ["code", "triage"]
    golden.hold_unversioned((said, chances), INTERVALS, what=WHAT)


INTERVALS = (
    [
        (0.688635217, 0.624603701, 0.74974193),
        (0.347352244, 0.263298199, 0.435687327),
        (0.754334754, 0.535474262, 0.923633758),
    ],
    {"code": 0.281231, "triage": 0.718769},
)
