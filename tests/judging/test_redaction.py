"""No byte of a secret reaches the judge's socket, wherever in a session it stands."""

import pytest

from grading.judging import client, inputs, judges
from grading.judging.core.prompt import rubric_sha256
from grading.models import Artifact, Rubric
from grading.models.evidence import ArtifactKind, Origin
from grading.plain import plain_text
from tests.corpus import places, transcripts
from tests.corpus.secrets import ALL, HARMLESS
from tests.redaction.test_redact import leaked

pytestmark = pytest.mark.django_db


# The middle of a key, as a title of 300 characters would cut it, is base64 like that of an image.
UNTOLD = ALL["key whose beginning is missing"].text


def session_with(site, text: str):
    short = "" if text == UNTOLD else text
    builder = site.session(title=plain_text(f"Deploy with {short}", 300))
    session = builder.session
    patch = "--- a/.env\n+++ b/.env\n" + "".join(f"+{line}\n" for line in text.split("\n"))
    builder.with_log(transcripts.log(session.external_id, *places.in_places(text)))
    builder.with_journal(f"Notes of today\n\nI used {text}\n").with_patch(patch.encode())
    Artifact.objects.create(
        session=session, kind=ArtifactKind.COMMIT, key=plain_text(f"abc {short}", 200), origin=Origin.FACTS
    )
    return session


def rubric_with(text: str) -> Rubric:
    """A copy of the rubric in force with an example that has the text in it."""
    rubric = Rubric.objects.active()
    rubric.pk = None
    rubric.is_active = False
    rubric.examples = [{"summary": f"Asked: use {text}", "score": 0.5, "why": f"It printed {text}"}]
    rubric.sha256 = rubric_sha256(rubric.text, rubric.dimensions, rubric.bands, rubric.examples)
    rubric.save()
    return rubric


def sent(site, sim, text: str) -> str:
    """All that came in at the judge's end, for a session and an example that have the text everywhere."""
    rubric = rubric_with(text)
    made = inputs.build(session_with(site, text), rubric, budget=60_000)
    client.send(judges.first(), made, rubric)
    request = sim.calls[-1].request
    return f"{request.system}\n{request.user}"


def test_a_secret_never_reaches_the_socket(site, sim, subtests):
    for name, secret in ALL.items():
        with subtests.test(name):
            received = sent(site, sim, secret.text)
            assert leaked(secret, received) == []
            assert received.count("[redacted ") >= 8
            for around in ("HOME=/root", "Notes of today", "Example 1, graded 0.5", "Error: could not connect"):
                assert around in received


def test_what_is_no_secret_reaches_the_judge(site, sim, subtests):
    one_line = {name: text for name, text in HARMLESS.items() if len(text) < 250 and "\n" not in text}
    assert len(one_line) >= 27
    for name, text in one_line.items():
        with subtests.test(name):
            received = sent(site, sim, text)
            assert text.replace("\t", " ") in received
            assert "[redacted " not in received
