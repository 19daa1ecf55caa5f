"""What the site holds in a run: its sessions, the buckets of their credits, and the policy they are read by."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace

from bandit.core.policy import Policy
from bandit.core.posterior import Posterior, fold
from bandit.core.rectify import Stratum
from benchmarks.simulation.buckets import Buckets, on
from benchmarks.simulation.regimes import Regime
from benchmarks.simulation.sessions import Session, chain_policy, credit, finished
from benchmarks.simulation.world import ARMS, Facts
from grading.vocabulary import Source

# By what the regimes are compared: an evidence scale that is right here, and nothing that reacts to change.
PLAIN = Policy(weights={}, half_life=21.0, evidence_scale=6.0, floor=0.01)


class Site:
    """Grade rows come, the chain decides, the buckets move: for one regime in one world."""

    def __init__(self, regime: Regime, policy: Policy) -> None:
        self.regime, self.chain = regime, chain_policy(regime.name, regime.weights)
        self.policy = replace(policy, weights=regime.weights, caps=regime.caps, version=regime.name)
        self.sessions: list[Session] = []
        self._buckets = Buckets()
        self._unjudged: deque[Session] = deque()

    def finish(self, facts: Facts) -> None:
        """A session ends."""
        session = finished(facts, self.regime)
        self.sessions.append(session)
        self.settle(session)
        if session.waits:
            self._unjudged.append(session)

    def rejudge(self, upto: int) -> None:
        """The judge is back for the sessions up to this day: its verdict is a row more, and replaces what stood in."""
        while self._unjudged and self._unjudged[0].facts.day <= upto:
            session = self._unjudged.popleft()
            session.waits = False
            session.add(Source.JUDGE, session.facts.judge)
            self.settle(session)

    def settle(self, session: Session) -> None:
        """Make the buckets say what the chain says."""
        said, arm, day = credit(session, self.chain), ARMS[session.facts.arm], session.facts.day
        if said != session.credit:
            self._buckets.reverse(arm, day, session.credit)
            self._buckets.apply(arm, day, said)
            session.credit = said

    def rectify(self, offsets: Mapping[Stratum, float]) -> None:
        """Put these offsets in force."""
        self.policy = replace(self.policy, rectifier=offsets)

    def posterior(self, day: int) -> Posterior:
        return fold(self._buckets.rows, arms=ARMS, policy=self.policy, today=on(day))
