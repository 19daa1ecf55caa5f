"""What pairs of a fallback and a verdict teach of a fallback's scale: the numbers of a line, and of what it weighs.

Nothing stored names a version of these: a scale keeps the numbers that it was fitted to, and the next one has others.
"""

from dataclasses import asdict, replace
from datetime import date, timedelta

import pytest

from bandit.core.calibration import CalibrationLine, JudgedSession, Scale, fit, starting_line
from bandit.core.table import ABSTAINED
from tests import golden

pytestmark = pytest.mark.pure

WHAT = "The calibration"
DAY = date(2026, 3, 31)
START = Scale(sources=("journal", "trajectory"), floored=("failed",))
# Trajectories and verdicts of sessions, by arm.
RISING = {
    "code": [(0.31, 0.52), (0.35, 0.61), (0.28, 0.44), (0.4, 0.66), (0.33, 0.49), (0.37, 0.6)],
    "infra": [(0.52, 0.83), (0.61, 0.95), (0.55, 0.9), (0.49, 0.78)],
    "news": [(0.2, 0.35), (0.15, 0.33), (0.22, 0.3), (0.18, 0.41), (0.25, 0.36)],
    "triage": [(0.44, 0.4), (0.41, 0.37), (0.48, 0.5)],
}
FALLING = {
    "code": [(0.1, 0.91), (0.12, 0.88), (0.09, 0.9)] * 4,
    "infra": [(0.5, 0.5), (0.52, 0.47), (0.49, 0.52)] * 4,
    "news": [(0.9, 0.1), (0.92, 0.12), (0.88, 0.09)] * 4,
    "triage": [(0.3, 0.7), (0.33, 0.72), (0.28, 0.69)] * 4,
}
# Five pairs of each: together the least that says which way a line goes.
NEAR = {
    "code": [(0.2, 0.8), (0.21, 0.78), (0.19, 0.8), (0.2, 0.82), (0.22, 0.79)],
    "infra": [(0.3, 0.6), (0.31, 0.62), (0.29, 0.6), (0.3, 0.58), (0.28, 0.61)],
    "news": [(0.4, 0.5), (0.41, 0.48), (0.39, 0.5), (0.4, 0.52), (0.42, 0.49)],
    "triage": [(0.25, 0.7), (0.26, 0.68), (0.24, 0.7), (0.25, 0.72), (0.23, 0.69)],
}
ALIKE = {"code": [(0.3, 0.5), (0.3, 0.7), (0.3, 0.6)], "infra": [(0.3, 0.4), (0.3, 0.4)]}
ONE = {"code": [(0.3, 0.8)]}
STEEP = {
    "code": [(0.10, 0.1), (0.11, 0.12), (0.12, 0.16)] * 5,
    "infra": [(0.2, 0.5), (0.21, 0.55), (0.22, 0.6)] * 5,
    "news": [(0.3, 0.9), (0.31, 0.95), (0.32, 1.0)] * 5,
}
EXACT = {"code": [(0.2, 0.2), (0.4, 0.4), (0.6, 0.6)] * 9, "infra": [(0.5, 0.5), (0.7, 0.7), (0.9, 0.9)] * 9}
# A slope that surely is above nothing, and below 1.
GENTLE = {
    "code": [(0.08, 0.15), (0.12, 0.17), (0.1, 0.16)] * 8,
    "infra": [(0.33, 0.3), (0.37, 0.32), (0.35, 0.31)] * 8,
    "news": [(0.58, 0.45), (0.62, 0.47), (0.6, 0.46)] * 8,
    "triage": [(0.83, 0.6), (0.87, 0.62), (0.85, 0.61)] * 8,
}
# Arms too near each other to say which way a line goes.
NEAR_AND_FALLING = {
    "code": [(0.2, 0.9), (0.2, 0.88)] * 8,
    "infra": [(0.21, 0.7), (0.21, 0.72)] * 8,
    "news": [(0.22, 0.5), (0.22, 0.47)] * 8,
    "triage": [(0.23, 0.3), (0.23, 0.33)] * 8,
}
NEAR_AND_RISING = {
    "code": [(0.2, 0.3), (0.2, 0.32)] * 8,
    "infra": [(0.21, 0.33), (0.21, 0.35)] * 8,
    "news": [(0.22, 0.35), (0.22, 0.37)] * 8,
    "triage": [(0.23, 0.38), (0.23, 0.4)] * 8,
}
# The better of an arm's sessions have the worse verdicts.
AGAINST = {
    "code": [(0.1, 0.5), (0.2, 0.4), (0.3, 0.3)] * 8,
    "infra": [(0.5, 0.9), (0.6, 0.8), (0.7, 0.7)] * 8,
}
# What abstentions were worth.
SILENT = {"code": [0.3, 0.35, 0.25], "news": [0.2, 0.1], "idle": [0.4]}

LINES = {
    ("rising", "full"): {
        "slope": 1.605934185,
        "intercept": -0.053326677,
        "low": 1.169512714,
        "high": 2.042355656,
        "centre": 0.374107412,
        "doubt": 0.002635432,
        "slope_doubt": 0.070397576,
        "spread": 0.0064,
        "residual": 0.017917644,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.041348812, "infra": 0.027711725, "news": 0.052656228, "triage": -0.121716765},
        "pairs": {"code": 6, "infra": 4, "news": 5, "triage": 3},
    },
    ("falling", "full"): {
        "slope": 0.375950115,
        "intercept": 0.379882573,
        "low": -0.217240547,
        "high": 0.969140777,
        "centre": 0.4525,
        "doubt": 0.025430231,
        "slope_doubt": 0.13005711,
        "spread": 0.10088759,
        "residual": 0.01,
        "widened": 1.525305882,
        "backwards": True,
        "offsets": {"code": 0.474020497, "infra": -0.071850643, "news": -0.609866832, "triage": 0.207696978},
        "pairs": {"code": 12, "infra": 12, "news": 12, "triage": 12},
    },
    ("falling, enough of it", "full"): {
        "slope": 0.508856627,
        "intercept": 0.50270372,
        "low": -0.170767859,
        "high": 1.188481114,
        "centre": 0.2875,
        "doubt": 0.002378445,
        "slope_doubt": 0.170719654,
        "spread": 0.0064,
        "residual": 0.015568898,
        "widened": 1.679799566,
        "backwards": True,
        "offsets": {"code": 0.128816626, "infra": -0.034526951, "news": -0.141458344, "triage": 0.047168669},
        "pairs": {"code": 5, "infra": 5, "news": 5, "triage": 5},
    },
    ("falling, too little of it", "full"): {
        "slope": 0.502611048,
        "intercept": 0.505499324,
        "low": -0.279922961,
        "high": 1.285145057,
        "centre": 0.2875,
        "doubt": 0.002747171,
        "slope_doubt": 0.22633511,
        "spread": 0.0064,
        "residual": 0.018354736,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.112976422, "infra": -0.032779984, "news": -0.120294656, "triage": 0.040098219},
        "pairs": {"code": 4, "infra": 4, "news": 4, "triage": 4},
    },
    ("alike", "full"): {
        "slope": 1.0,
        "intercept": 0.213555383,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.3,
        "doubt": 0.009748293,
        "slope_doubt": 0.520833333,
        "spread": 0.0064,
        "residual": 0.032307692,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.032223083, "infra": -0.032223083},
        "pairs": {"code": 3, "infra": 2},
    },
    ("one", "full"): {
        "slope": 1.0,
        "intercept": 0.5,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.3,
        "doubt": 0.0464,
        "slope_doubt": 0.520833333,
        "spread": 0.0064,
        "residual": 0.04,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.0},
        "pairs": {"code": 1},
    },
    ("steep", "full"): {
        "slope": 2.371583595,
        "intercept": 0.044189667,
        "low": 1.511490312,
        "high": 3.231676877,
        "centre": 0.21,
        "doubt": 0.005739695,
        "slope_doubt": 0.273423978,
        "spread": 0.016552419,
        "residual": 0.01,
        "widened": 1.624281033,
        "backwards": False,
        "offsets": {"code": -0.17149024, "infra": 0.007476648, "news": 0.164013592},
        "pairs": {"code": 15, "infra": 15, "news": 15},
    },
    ("exact", "full"): {
        "slope": 1.197044335,
        "intercept": -0.108374384,
        "low": 0.883407929,
        "high": 1.510680741,
        "centre": 0.55,
        "doubt": 0.003385185,
        "slope_doubt": 0.036357869,
        "spread": 0.0064,
        "residual": 0.01,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.027939766, "infra": -0.027939766},
        "pairs": {"code": 27, "infra": 27},
    },
    ("exact and many", "full"): {
        "slope": 1.02875629,
        "intercept": -0.01581596,
        "low": 0.746104639,
        "high": 1.311407942,
        "centre": 0.55,
        "doubt": 0.003226455,
        "slope_doubt": 0.029528986,
        "spread": 0.0064,
        "residual": 0.01,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.004278076, "infra": -0.004278076},
        "pairs": {"code": 189, "infra": 189},
    },
    ("many silent", "full"): {
        "slope": 1.0,
        "intercept": 0.5,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.3,
        "doubt": 0.0464,
        "slope_doubt": 0.520833333,
        "spread": 0.0064,
        "residual": 0.04,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.0},
        "pairs": {"code": 1},
    },
    ("many silent", "nothing_observable"): {
        "slope": 1.0,
        "intercept": -0.518486104,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.8,
        "doubt": 0.007988995,
        "slope_doubt": 0.520833333,
        "spread": 0.0225,
        "residual": 0.012162162,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.017843109, "idle": 0.106926484, "news": -0.124769593},
        "pairs": {"code": 15, "idle": 5, "news": 10},
    },
    ("a few silent", "full"): {
        "slope": 1.0,
        "intercept": 0.5,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.3,
        "doubt": 0.0464,
        "slope_doubt": 0.520833333,
        "spread": 0.0064,
        "residual": 0.04,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.0},
        "pairs": {"code": 1},
    },
    ("a few silent", "nothing_observable"): {
        "slope": 1.0,
        "intercept": -0.519464576,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.8,
        "doubt": 0.008065375,
        "slope_doubt": 0.520833333,
        "spread": 0.0225,
        "residual": 0.0125,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.018769413, "idle": 0.104895725, "news": -0.123665138},
        "pairs": {"code": 15, "idle": 4, "news": 10},
    },
    ("four silent", "full"): {
        "slope": 1.0,
        "intercept": 0.5,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.3,
        "doubt": 0.0464,
        "slope_doubt": 0.520833333,
        "spread": 0.0064,
        "residual": 0.04,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.0},
        "pairs": {"code": 1},
    },
    ("five silent", "full"): {
        "slope": 1.0,
        "intercept": 0.5,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.3,
        "doubt": 0.0464,
        "slope_doubt": 0.520833333,
        "spread": 0.0064,
        "residual": 0.04,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.0},
        "pairs": {"code": 1},
    },
    ("five silent", "nothing_observable"): {
        "slope": 1.0,
        "intercept": -0.569469424,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.8,
        "doubt": 0.01772361,
        "slope_doubt": 0.520833333,
        "spread": 0.0225,
        "residual": 0.031538462,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.047347122, "news": -0.047347122},
        "pairs": {"code": 3, "news": 2},
    },
    ("silent alone", "nothing_observable"): {
        "slope": 1.0,
        "intercept": -0.227614307,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.5,
        "doubt": 0.013346279,
        "slope_doubt": 0.520833333,
        "spread": 0.0225,
        "residual": 0.031538462,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.018820625, "idle": 0.053134783, "news": -0.071955407},
        "pairs": {"code": 3, "idle": 1, "news": 2},
    },
    ("silent", "full"): {
        "slope": 1.605934185,
        "intercept": -0.053326677,
        "low": 1.169512714,
        "high": 2.042355656,
        "centre": 0.374107412,
        "doubt": 0.002635432,
        "slope_doubt": 0.070397576,
        "spread": 0.0064,
        "residual": 0.017917644,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.041348812, "infra": 0.027711725, "news": 0.052656228, "triage": -0.121716765},
        "pairs": {"code": 6, "infra": 4, "news": 5, "triage": 3},
    },
    ("silent", "nothing_observable"): {
        "slope": 0.977290052,
        "intercept": -0.196934491,
        "low": -0.209780803,
        "high": 2.164360908,
        "centre": 0.480226093,
        "doubt": 0.013346279,
        "slope_doubt": 0.520833333,
        "spread": 0.0225,
        "residual": 0.031538462,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": -0.029874306, "idle": 0.027003413, "news": 0.002870893},
        "pairs": {"code": 3, "idle": 1, "news": 2},
    },
    ("two views", "*"): {
        "slope": 1.916785994,
        "intercept": -0.163687842,
        "low": 1.203563283,
        "high": 2.630008705,
        "centre": 0.355748178,
        "doubt": 0.004642371,
        "slope_doubt": 0.188016435,
        "spread": 0.015252491,
        "residual": 0.016837705,
        "widened": 1.664848892,
        "backwards": False,
        "offsets": {"code": 0.094798719, "infra": -0.009483502, "news": 0.10675959, "triage": -0.192074807},
        "pairs": {"code": 9, "infra": 6, "news": 5, "triage": 3},
    },
    ("two views", "full"): {
        "slope": 1.605934185,
        "intercept": -0.053326677,
        "low": 1.169512714,
        "high": 2.042355656,
        "centre": 0.374107412,
        "doubt": 0.002635432,
        "slope_doubt": 0.070397576,
        "spread": 0.0064,
        "residual": 0.017917644,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.041348812, "infra": 0.027711725, "news": 0.052656228, "triage": -0.121716765},
        "pairs": {"code": 6, "infra": 4, "news": 5, "triage": 3},
    },
    ("two views", "part"): {
        "slope": 1.0,
        "intercept": 0.213555383,
        "low": -0.187070855,
        "high": 2.187070855,
        "centre": 0.3,
        "doubt": 0.009748293,
        "slope_doubt": 0.520833333,
        "spread": 0.0064,
        "residual": 0.032307692,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.032223083, "infra": -0.032223083},
        "pairs": {"code": 3, "infra": 2},
    },
    ("journals", "full"): {
        "slope": 1.605934185,
        "intercept": -0.053326677,
        "low": 1.169512714,
        "high": 2.042355656,
        "centre": 0.374107412,
        "doubt": 0.002635432,
        "slope_doubt": 0.070397576,
        "spread": 0.0064,
        "residual": 0.017917644,
        "widened": 1.679799566,
        "backwards": False,
        "offsets": {"code": 0.041348812, "infra": 0.027711725, "news": 0.052656228, "triage": -0.121716765},
        "pairs": {"code": 6, "infra": 4, "news": 5, "triage": 3},
    },
    ("gentle", "full"): {
        "slope": 0.982918809,
        "intercept": -0.081886434,
        "low": 0.766887682,
        "high": 1.198949936,
        "centre": 0.475,
        "doubt": 0.003045889,
        "slope_doubt": 0.017249565,
        "spread": 0.01176689,
        "residual": 0.01,
        "widened": 1.462704361,
        "backwards": False,
        "offsets": {"code": 0.138683749, "infra": 0.046227916, "news": -0.046227916, "triage": -0.138683749},
        "pairs": {"code": 24, "infra": 24, "news": 24, "triage": 24},
    },
    ("near and falling", "full"): {
        "slope": 0.0,
        "intercept": 0.6,
        "low": -1.187070855,
        "high": 1.187070855,
        "centre": 0.215,
        "doubt": 0.008547759,
        "slope_doubt": 0.520833333,
        "spread": 0.033566038,
        "residual": 0.01,
        "widened": 1.494540658,
        "backwards": False,
        "offsets": {"code": 0.284698903, "infra": 0.107989239, "news": -0.112897841, "triage": -0.279790301},
        "pairs": {"code": 16, "infra": 16, "news": 16, "triage": 16},
    },
    ("near and rising", "full"): {
        "slope": 1.153110048,
        "intercept": 0.10208134,
        "low": -0.033960808,
        "high": 2.340180903,
        "centre": 0.215,
        "doubt": 0.001424175,
        "slope_doubt": 0.520833333,
        "spread": 0.005071698,
        "residual": 0.01,
        "widened": 1.494540658,
        "backwards": False,
        "offsets": {"code": -0.020212504, "infra": -0.003769877, "news": 0.003769877, "triage": 0.020212504},
        "pairs": {"code": 16, "infra": 16, "news": 16, "triage": 16},
    },
}
WEIGHTS = {
    # case: what each source weighs, the verdicts' variance within arms, what a failure is read as at least
    "rising": ({"journal": 0.0, "trajectory": 0.292883296}, 0.019479167, 0.0),
    "falling": ({"journal": 0.0, "trajectory": 0.03125}, 0.007604938, 0.0),
    "falling, enough of it": ({"journal": 0.0, "trajectory": 0.055555556}, 0.01552, 0.0),
    "falling, too little of it": ({"journal": 0.0, "trajectory": 0.0625}, 0.018327273, 0.0),
    "alike": ({"journal": 0.0, "trajectory": 0.086956522}, 0.032307692, 0.0),
    "one": ({"journal": 0.0, "trajectory": 0.1}, 0.04, 0.0),
    "steep": ({"journal": 0.0, "trajectory": 0.674590476}, 0.008833333, 0.0),
    "exact": ({"journal": 0.0, "trajectory": 0.75}, 0.029677419, 0.0),
    "exact and many": ({"journal": 0.0, "trajectory": 0.95}, 0.027150259, 0.0),
    "many silent": ({"journal": 0.0, "trajectory": 0.1}, 0.018009868, 0.281513896),
    "a few silent": ({"journal": 0.0, "trajectory": 0.1}, 0.018496622, 0.0),
    "four silent": ({"journal": 0.0, "trajectory": 0.1}, 0.045576923, 0.0),
    "five silent": ({"journal": 0.0, "trajectory": 0.1}, 0.042678571, 0.0),
    "silent alone": ({"journal": 0.0, "trajectory": 0.0}, 0.031538462, 0.0),
    "silent": ({"journal": 0.0, "trajectory": 0.292883296}, 0.022862014, 0.0),
    "two views": ({"journal": 0.0, "trajectory": 0.456342089}, 0.026901916, 0.0),
    "journals": ({"journal": 0.292883296, "trajectory": 0.292883296}, 0.012738095, 0.0),
    "gentle": ({"journal": 0.0, "trajectory": 0.839285714}, 0.003984314, 0.0),
    "near and falling": ({"journal": 0.0, "trajectory": 0.025}, 0.005862857, 0.0),
    "near and rising": ({"journal": 0.0, "trajectory": 0.025}, 0.005805714, 0.0),
    "against": ({"journal": 0.0, "trajectory": 0.03030303}, 0.012857143, 0.0),
    "two": ({"journal": 0.0, "trajectory": 0.142857143}, 0.036731818, 0.0),
    "three": ({"journal": 0.0, "trajectory": 0.181393585}, 0.034538889, 0.0),
}
LINE = CalibrationLine(
    source="trajectory",
    version="trajectory/2",
    view="full",
    slope=1.5,
    intercept=0.1,
    low=0.9,
    high=2.1,
    centre=0.3,
    doubt=0.002,
    slope_doubt=0.04,
    spread=0.008,
    residual=0.02,
    widened=1.25,
    offsets={"code": 0.05, "news": -0.3},
    pairs={"code": 12, "news": 3},
)
READ = [
    # arm, mean fallback: r', of one session, variance of the level, standard deviation of a verdict
    ("code", 0.3, 0.6, 0.6, 0.0125, 0.180277564),
    ("code", 0.4, 0.75, 0.75, 0.013, 0.181659021),
    ("code", 0.9, 1.5, 1.0, 0.0305, 0.224722051),
    ("news", 0.0, -0.2, 0.0, 0.017, 0.192353841),
    ("news", 0.8, 1.0, 1.0, 0.025, 0.212132034),
    ("other", 0.3, 0.55, 0.55, 0.0125, 0.180277564),
    ("other", 0.8, 1.3, 1.0, 0.025, 0.212132034),
    ("other", 0.9, 1.45, 1.0, 0.0305, 0.224722051),
]
SILENT_READ = [
    # the same of an abstention, whose own pairs are counted in the variance
    ("code", 0.3, 0.6, 0.6, 0.001798454, 0.147642996),
    ("news", 0.5, 0.55, 0.55, 0.005475207, 0.159609544),
    ("other", 0.3, 0.55, 0.55, 0.0125, 0.180277564),
]
CAPS = [
    # arm, its pairs and the source's weight, variance of the line there: how many verdicts they amount to
    ("many", 30, 0.5, 0.01, 30.0),
    ("enough", 10, 0.2, 0.01, 2.5),
    ("too few", 9, 0.2, 0.01, 6.0),
    ("too few, in doubt", 9, 0.2, 0.04, 1.5),
    ("none", 0, 0.2, 0.03, 2.0),
]


def judged(arms, *, view="full", version="trajectory/2", source="trajectory"):
    """The pairs of each arm, one a day."""
    return [
        JudgedSession(
            arm=arm,
            source=source,
            version=version,
            view=view,
            fallback=fallback,
            judge=verdict,
            day=DAY - timedelta(days=number),
        )
        for arm, pairs in arms.items()
        for number, (fallback, verdict) in enumerate(pairs)
    ]


def silent(arms):
    pairs = {arm: [(0.0, verdict) for verdict in verdicts] for arm, verdicts in arms.items()}
    return judged(pairs, view="nothing_observable", source=ABSTAINED)


CASES = {
    "rising": judged(RISING),
    "falling": judged(FALLING),
    "falling, enough of it": judged(NEAR),
    "falling, too little of it": judged({arm: pairs[:4] for arm, pairs in NEAR.items()}),
    "alike": judged(ALIKE),
    "one": judged(ONE),
    "steep": judged(STEEP),
    "exact": judged(EXACT),
    "exact and many": judged({arm: pairs * 7 for arm, pairs in EXACT.items()}),
    "gentle": judged(GENTLE),
    "near and falling": judged(NEAR_AND_FALLING),
    "near and rising": judged(NEAR_AND_RISING),
    "against": judged(AGAINST),
    "two": judged({"code": RISING["code"][:2]}),
    "three": judged({"code": RISING["code"][:3]}),
    "many silent": judged(ONE) + silent({arm: verdicts * 5 for arm, verdicts in SILENT.items()}),
    "a few silent": judged(ONE) + silent({arm: verdicts * 5 for arm, verdicts in SILENT.items()})[:29],
    "four silent": judged(ONE) + silent(SILENT)[:4],
    "five silent": judged(ONE) + silent(SILENT)[:5],
    "silent alone": silent(SILENT),
    "silent": judged(RISING) + silent(SILENT),
    "two views": judged(RISING) + judged(ALIKE, view="part"),
    "journals": judged(RISING) + judged(RISING, source="journal", version="journal/1", view=""),
}


def numbers(line: CalibrationLine):
    return {name: rounded(value) for name, value in asdict(line).items() if name not in {"source", "version", "view"}}


def rounded(value):
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return round(value, 9) if isinstance(value, float) else value


@pytest.mark.parametrize(("case", "view"), LINES)
def test_the_line(case, view):
    (line,) = (each for each in fit(CASES[case], START).lines if each.view == view and each.source != "journal")
    golden.hold_unversioned(numbers(line), LINES[case, view], what=WHAT)


@pytest.mark.parametrize("case", CASES)
def test_the_only_line_of_a_source_stands_in_for_the_others_as_it_is(case):
    lines = fit(CASES[case], START).lines
    for line in lines:
        own = [each for each in lines if each.source == line.source and not each.stands_in]
        assert len(own) == 2 or numbers(line) == numbers(own[0])


@pytest.mark.parametrize("case", CASES)
def test_what_a_source_weighs(case):
    found = fit(CASES[case], START)
    golden.hold_unversioned(
        (rounded(dict(found.weights)), rounded(found.variance), rounded(found.failure_floor)),
        WEIGHTS[case],
        what=WHAT,
    )


@pytest.mark.parametrize(("arm", "fallback", "value", "clipped", "doubt", "error"), READ)
def test_what_a_fallback_is_read_as(arm, fallback, value, clipped, doubt, error):
    read = (f(arm, fallback) for f in (LINE.value, LINE.clipped, LINE.level_variance_at, LINE.error))
    golden.hold_unversioned([rounded(each) for each in read], [value, clipped, doubt, error], what=WHAT)


@pytest.mark.parametrize(("arm", "fallback", "value", "clipped", "doubt", "error"), SILENT_READ)
def test_what_an_abstention_is_read_as(arm, fallback, value, clipped, doubt, error):
    line = replace(LINE, source=ABSTAINED)
    read = (f(arm, fallback) for f in (line.value, line.clipped, line.level_variance_at, line.error))
    golden.hold_unversioned([rounded(each) for each in read], [value, clipped, doubt, error], what=WHAT)


@pytest.mark.parametrize(("arm", "pairs", "weight", "variance", "expected"), CAPS)
def test_how_many_verdicts_an_arms_fallbacks_amount_to_at_most(arm, pairs, weight, variance, expected):
    line = replace(LINE, pairs={arm: pairs, "other": 99})
    lines = (line, replace(line, view="*", version="*"), replace(line, source="journal"))
    scale = replace(START, lines=lines, weights={"trajectory": weight, "journal": 0.9}, variance=0.06)
    golden.hold_unversioned(rounded(scale.cap(arm, "trajectory", variance)), expected, what=WHAT)


def test_the_line_before_any_pair():
    found = starting_line("journal", shift=0.25)
    expected = {
        "slope": 1.0,
        "intercept": 0.25,
        "low": 0.0,
        "high": 2.5,
        "centre": 0.0,
        "doubt": 0.0,
        "slope_doubt": 0.0,
        "spread": 0.04,
        "residual": 0.04,
        "widened": 1.0,
        "backwards": False,
        "offsets": {},
        "pairs": {},
    }
    golden.hold_unversioned(numbers(found), expected, what=WHAT)
    assert found.key == ("journal", "*", "*")


def test_a_source_that_has_earned_nothing_amounts_to_nothing():
    scale = replace(START, lines=(LINE,), weights={})
    assert scale.cap("code", "trajectory", 0.01) == 0.0


def test_a_scale_before_any_pair_is_empty():
    empty = Scale(sources=("journal",))
    assert (empty.floored, empty.lines, empty.weights, empty.latest) == ((), (), {}, None)
    assert (empty.n, empty.variance, empty.is_start, empty.failure_floor) == (0, 0.04, True, 0.0)
    assert not empty.is_stale(DAY)


def test_pairs_are_counted_once_though_a_line_stands_in_for_others():
    found = fit(CASES["two views"], START)
    assert (found.n, found.latest) == (23, DAY)
    assert found.count_pairs("code", "trajectory") == 9
    assert found.count_pairs("code", "journal") == found.count_pairs("nobody", "trajectory") == 0


@pytest.mark.parametrize(("days", "left"), [(0, 0.4), (14, 0.4), (15, 0.2)])
def test_without_new_pairs_a_fallback_weighs_half(days, left):
    scale = replace(START, lines=(LINE,), weights={"trajectory": 0.4}, latest=DAY)
    today = DAY + timedelta(days=days)
    assert scale.weights_on(today) == {"trajectory": left}
    assert scale.replace_weights({"judge": 1.0, "trajectory": 0.3, "journal": 0.0}, today) == {
        "judge": 1.0,
        "trajectory": left,
        "journal": 0.0,
    }
    assert START.weights_on(today) == {"journal": 0.1, "trajectory": 0.1}
