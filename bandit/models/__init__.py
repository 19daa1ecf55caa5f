"""Arms, the ledger of rewards, the integer buckets folded from it, and the decisions made from those.

The ledger is the record; buckets are its sums and can be rebuilt from it; posteriors are never stored. This app knows
its callers only by opaque strings: an observation, a settlement, a grader's source.
"""

from bandit.models.arms import Arm, ArmAlias, ArmEvent, UnknownArm
from bandit.models.bandits import Bandit, BanditKind, UnknownBandit
from bandit.models.decisions import Assignment, Selection
from bandit.models.erasure import Erasure
from bandit.models.graders import Grader
from bandit.models.ledger import MICRO, PRODUCTIVE, SUMS, Bucket, LedgerEntry, LedgerEntryQuerySet
from bandit.models.policies import BreakDecision, CalibrationVersion, PolicyText, PolicyVersion
