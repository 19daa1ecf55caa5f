"""The HTTP API: what it takes, what it says, and that bad input is never a 500."""

import io
import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client, RequestFactory
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from bandit.models import Selection
from grading import intake
from grading.api import uploads
from grading.models import ApiToken, Evidence, Session
from grading.vocabulary import Source
from tests.casts import logs
from tests.examples import examples
from tests.site import NOON, Site

SESSIONS = "/api/v1/sessions"

pytestmark = pytest.mark.django_db


class Caller:
    """An agent with its token."""

    def __init__(self, name: str = "bob") -> None:
        self.agent = Site().agent(name)
        self.token, self.secret = ApiToken.objects.issue(self.agent)
        # Tests must see what a caller sees, never an exception.
        self.client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {self.secret}"})

    def submit(self, *, metadata: dict | str | None = None, **parts):
        fields = {"session_id": "71a3", "category": "cross-repo", "ended_at": timezone.now().isoformat()}
        body = {
            name: SimpleUploadedFile(name, data) if isinstance(data, bytes) else data for name, data in parts.items()
        }
        if metadata != "":
            body["metadata"] = metadata if isinstance(metadata, str) else json.dumps({**fields, **(metadata or {})})
        return self.client.post(SESSIONS, body)

    def select(self, **body):
        return self.client.post("/api/v1/selections", json.dumps(body), content_type="application/json")


@pytest.fixture
def bob() -> Caller:
    return Caller()


def assert_explained(response, status: int) -> dict:
    """An error that says what was expected, what came and what to do."""
    said = response.json()
    assert response.status_code == status, said
    assert all(said[part] for part in ("error", "expected", "got", "todo"))
    return said


# --- submitting


def test_a_session_is_created_and_its_reward_told(bob):
    response = bob.submit(transcript=logs.claude("71a3", logs.COMMIT), journal=b"Merged the fix.")
    said = response.json()
    assert response.status_code == 201
    assert (said["session_id"], said["created"], said["added"]) == ("71a3", True, ["transcript", "journal"])
    assert said["reward"]["source"] == "trajectory"
    assert said["problems"] == []


def test_the_same_again_is_the_same_session(bob):
    first = bob.submit(journal=b"Merged the fix.").json()
    again = bob.submit(journal=b"Merged the fix.")
    assert again.status_code == 200
    assert (again.json()["id"], again.json()["created"], again.json()["added"]) == (first["id"], False, [])


def test_more_evidence_is_added(bob):
    bob.submit()
    response = bob.submit(journal=b"Merged the fix.")
    assert (response.status_code, response.json()["added"]) == (200, ["journal"])


def test_a_part_may_be_a_file_or_a_field(bob):
    said = bob.submit(journal="Merged the fix.", facts='{"exit_code": 0}').json()
    assert said["added"] == ["journal", "facts"]


def test_metadata_may_be_a_file(bob):
    file = SimpleUploadedFile("metadata.json", b'{"session_id": "71a3"}')
    assert bob.client.post(SESSIONS, {"metadata": file}).status_code == 201


def test_unknown_log_format_is_taken(bob):
    """A log that the site can't read yet is stored with a note; whoever sent it has nothing to correct."""
    for status in (201, 200):  # and once more
        response = bob.submit(transcript=b'{"agent": "newcomer", "say": "hi"}\n' * 500, journal=b"Merged the fix.")
        assert response.status_code == status
        (problem,) = response.json()["problems"]
        assert (problem["part"], problem["code"]) == ("transcript", "format_unknown")
        assert "its format is not known yet" in problem["todo"]


@pytest.mark.parametrize("metadata", [{"harness": "clyde-code"}, {"category": "weather"}, {"exit_code": "zero"}])
def test_wrong_metadata_is_refused_also_with_an_unknown_log_format(bob, metadata):
    assert_explained(bob.submit(metadata=metadata, transcript=b'{"agent": "newcomer"}\n' * 500), 422)


def test_what_is_wrong_is_said_and_the_rest_is_stored(bob):
    said = assert_explained(bob.submit(transcript=b"", journal=b"Merged the fix."), 422)
    assert said["stored"] == ["metadata", "transcript", "journal"]
    assert said["problems"][0]["part"] == "transcript"
    assert Session.objects.get(pk=said["id"]).grades.filter(source=Source.JOURNAL, status="scored").exists()


def test_a_remark_is_no_error(bob):
    metadata = {"started_at": "2026-03-31T11:00:00Z"}
    response = bob.submit(metadata=metadata, transcript=logs.claude("71a3", padding=10))
    assert response.status_code == 201
    assert response.json()["problems"][0]["code"] == "log_too_small"


@pytest.mark.parametrize(
    "metadata",
    [
        "",
        "no json",
        "null",
        "[]",
        "{}",
        "[" * 60_000,
        '{"session_id": 7}',
        '{"session_id": "a", "cost_usd": NaN}',
        '{"session_id": "a", "cost_usd": 1e999}',
        '{"session_id": "a", "titel": "b"}',
        '{"session_id": "a\\u0000"}',
        '{"session_id": "a\\ud800"}',
        '{"session_id": "a", "ended_at": "2026-13-45T99:00:00Z"}',
        '{"session_id": "a", "exit_code": ' + "9" * 5000 + "}",
        "x" * 70_000,
    ],
)
def test_bad_metadata_are_refused_in_words(bob, metadata):
    said = assert_explained(bob.submit(metadata=metadata, journal=b"Merged."), 422)
    assert (said["stored"], said["id"]) == ([], None)
    assert not Session.objects.exists()


def test_a_misspelt_part_is_not_silently_dropped(bob):
    said = assert_explained(bob.submit(trancript=logs.claude("71a3")), 422)
    assert "transcript" in said["expected"]
    assert said["stored"] == ["metadata"]


def test_a_repeated_part_is_an_error(bob):
    files = [SimpleUploadedFile("a", b"one"), SimpleUploadedFile("b", b"two")]
    said = assert_explained(bob.client.post(SESSIONS, {"metadata": '{"session_id": "a"}', "journal": files}), 422)
    assert said["error"] == "journal: repeated_part"


def test_an_oversized_part_is_refused_and_the_rest_is_stored(bob, settings):
    settings.EVIDENCE_MAX_BYTES = 100_000
    said = assert_explained(bob.submit(transcript=b"x" * 300_000, journal=b"Merged the fix."), 413)
    assert said["stored"] == ["metadata", "journal"]
    assert "100,000" in said["expected"]


def test_a_large_part_has_no_name_on_disk_that_a_killed_process_would_leave(settings, tmp_path):
    settings.FILE_UPLOAD_TEMP_DIR = tmp_path
    log = b"x" * (settings.FILE_UPLOAD_MAX_MEMORY_SIZE + 1)
    request = RequestFactory().post("/", {"metadata": "{}", "transcript": SimpleUploadedFile("session.jsonl", log)})
    parts = uploads.read(request)
    assert list(tmp_path.iterdir()) == []
    assert parts.files["transcript"].read() == log
    request.close()


def test_an_oversized_request_is_refused_before_it_is_read(bob, settings):
    settings.EVIDENCE_MAX_BYTES = 1024
    assert_explained(bob.submit(transcript=b"x" * 2_000_000), 413)
    assert not Session.objects.exists()


def test_oversized_fields_are_refused(bob):
    assert_explained(bob.submit(journal="x" * 3_000_000), 413)


def test_a_body_that_is_not_multipart_is_refused(bob):
    for kind in ("application/json", "text/plain"):
        assert_explained(bob.client.post(SESSIONS, '{"session_id": "a"}', content_type=kind), 415)


def test_a_body_of_unknown_length_is_refused_in_words(bob):
    """curl sends a pipe in chunks, which WSGI shows as an empty body."""
    response = bob.client.post(SESSIONS, {"metadata": "{}"}, headers={"Transfer-Encoding": "chunked"})
    assert "not pipes" in assert_explained(response, 411)["todo"]


def test_a_torn_body_is_refused(bob):
    kind = "multipart/form-data; boundary=x"
    assert_explained(bob.client.post(SESSIONS, b"--x\r\nContent-Disposition: form-data; na", content_type=kind), 422)
    assert_explained(bob.client.post(SESSIONS, b"x", content_type="multipart/form-data"), 400)


@examples(20, HealthCheck.function_scoped_fixture)
@given(st.binary(max_size=400), st.sampled_from(["metadata", "transcript", "patch", "facts", "journal", "\x00"]))
def test_no_body_is_a_500(bob, data, name):
    part = f'--x\r\nContent-Disposition: form-data; name="{name}"; filename="f"\r\n\r\n'.encode() + data
    good = b'--x\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n{"session_id": "fuzz"}\r\n'
    for body in (part, good + part + b"\r\n--x--\r\n", data):
        response = bob.client.post(SESSIONS, body, content_type="multipart/form-data; boundary=x")
        assert response.status_code < 500


def test_a_session_whose_earlier_log_is_lost_is_kept_by_its_sender(bob, settings):
    """The new log can't be compared with it, as after a restore without the folder of evidence."""
    bob.submit(transcript=logs.claude("71a3", logs.COMMIT))
    for path in Path(settings.MEDIA_ROOT, Evidence.objects.get().sha256[:2]).iterdir():
        path.unlink()
    said = assert_explained(bob.submit(transcript=logs.claude("71a3", logs.COMMIT, ("ls", "a"))), 503)
    assert said["error"] == "damaged evidence"
    assert "missing from the evidence folder" in said["got"]


def test_a_bug_is_a_numbered_incident_without_its_traceback(bob, monkeypatch):
    monkeypatch.setattr(intake, "submit", lambda **parts: {}["secret"])
    said = assert_explained(bob.submit(), 500)
    assert said["error"].startswith("incident ")
    assert "secret" not in json.dumps(said)


# --- who asks


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer gs_wrong", "Bearer gs_\u00e9", "Basic YTpi"])
def test_without_a_live_token_nothing_is_told(header):
    client = Client(headers={"Authorization": header} if header is not None else {})
    for response in (client.post(SESSIONS), client.get(f"{SESSIONS}/1"), client.get("/api/v1/bandits/category")):
        assert_explained(response, 401)
        assert response["WWW-Authenticate"] == "Bearer"


def test_a_revoked_token_is_refused(bob):
    ApiToken.objects.update(revoked_at=NOON)
    assert_explained(bob.submit(), 401)


def test_a_token_shows_when_it_was_last_used(bob):
    bob.submit()
    bob.token.refresh_from_db()
    assert bob.token.last_used_at is not None


def test_a_logged_in_browser_is_not_an_agent(site, bob, client):
    client.force_login(site.person("rita", "operator"))
    assert client.get("/api/v1/bandits/category").status_code == 401


# --- reading


def test_a_session_can_be_read_with_its_chain(bob):
    made = bob.submit(transcript=logs.claude("71a3", logs.COMMIT), journal=b"Merged the fix.").json()
    said = bob.client.get(f"{SESSIONS}/{made['id']}").json()
    assert (said["session_id"], said["category"], said["harness"]) == ("71a3", "cross-repo", "claude-code")
    assert {step["source"] for step in said["chain"]} >= {"judge", "trajectory", "journal"}
    assert {grade["source"] for grade in said["grades"]} >= {"trajectory", "journal", "consumption"}
    assert said["reward"] == {**made["reward"], "calibrated": None, "calibration_version": None}
    assert {row["kind"] for row in said["evidence"]} == {"transcript", "journal"}


def test_another_agents_session_is_not_found(bob):
    made = bob.submit().json()
    assert_explained(Caller("alice").client.get(f"{SESSIONS}/{made['id']}"), 404)


@pytest.mark.parametrize(("number", "status"), [("999", 404), ("0", 404), ("-1", 404), ("9" * 40, 404), ("abc", 422)])
def test_a_wrong_id_is_said_to_be_wrong(bob, number, status):
    assert_explained(bob.client.get(f"{SESSIONS}/{number}"), status)


def test_a_bandit_can_be_read(bob):
    said = bob.client.get("/api/v1/bandits/category").json()
    arms = {arm["arm"]: arm for arm in said["arms"]}
    assert {"code", "news"} <= arms.keys()
    assert 0 < arms["code"]["low"] < arms["code"]["mean"] < arms["code"]["high"] < 1
    assert round(sum(arm["share_of_next_100"] for arm in said["arms"])) == 100
    assert arms["code"]["since"] is None


def test_an_unknown_bandit_is_not_found(bob):
    assert_explained(bob.client.get("/api/v1/bandits/weather"), 404)


# --- selecting


def test_a_selection_is_made_once(bob):
    first, again = bob.select(decision_id="d1"), bob.select(decision_id="d1")
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert Selection.objects.count() == 1


def test_a_selection_leads_to_a_session(bob):
    bob.select(decision_id="d1", supply={"triage": 3})
    made = bob.submit(metadata={"category": None, "selection_id": "d1"}).json()
    assert bob.client.get(f"{SESSIONS}/{made['id']}").json()["category"] == "triage"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"decision_id": ""}, 422),
        ({"decision_id": "d\x00"}, 422),
        ({"decision_id": "d", "supply": {"weather": 1}}, 422),
        ({"decision_id": "d", "supply": {"code": -1}}, 422),
        ({"decision_id": "d", "supply": {"code": "many"}}, 422),
        ({"decision_id": "d", "override": "weather"}, 422),
        ({"decision_id": "d", "bandit": "weather"}, 404),
        ({"decision_id": "d", "supply": {"code": 0}}, 409),
        ({"decision_id": "d", "wish": "code"}, 422),
    ],
)
def test_a_selection_that_cannot_be_made_says_why(bob, body, status):
    assert_explained(bob.select(**body), status)
    assert not Selection.objects.exists()


@pytest.mark.parametrize("body", [b"", b"no json", b"[", b"\xff", b"[" * 100_000, b'{"decision_id": NaN}'])
def test_a_selection_of_no_json_is_refused(bob, body):
    response = bob.client.post("/api/v1/selections", io.BytesIO(body).read(), content_type="application/json")
    assert 400 <= response.status_code < 500
    assert response.json()["todo"]


def test_a_harness_is_chosen_for_a_category_that_is_known(bob):
    assert bob.select(decision_id="d1", bandit="harness", context="Infrastructure").status_code == 200
    assert Selection.objects.get().context == "infra"
    assert_explained(bob.select(decision_id="d2", bandit="harness", context="moods"), 422)
    assert_explained(bob.select(decision_id="d2", context="infra"), 422)


def test_an_id_that_another_agent_used_is_ones_own_all_the_same(bob):
    assert Caller("alice").select(decision_id="d1", supply={"code": 1}).json()["arm"] == "code"
    assert bob.select(decision_id="d1", supply={"infra": 1}).json()["arm"] == "infra"
    assert Selection.objects.filter(decision_id="d1").count() == 2


def test_too_many_open_decisions_are_refused_in_words(bob):
    for number in range(8):
        assert bob.select(decision_id=f"d{number}", supply={"code": 1}).status_code == 200
    said = assert_explained(bob.select(decision_id="d8"), 409)
    assert "8 decisions of 'category' have no session yet, and the limit is 8: 'd0', 'd1'" in said["got"]
    assert bob.select(decision_id="d3").json()["arm"] == "code"
    assert Caller("alice").select(decision_id="d8").status_code == 200


# --- the page


def test_the_page_shows_every_operation_without_a_script_of_others(client):
    page = client.get("/api/v1/docs")
    text = page.content.decode()
    assert page.status_code == 200
    for word in (
        "/api/v1/sessions",
        "/api/v1/selections",
        "metadata.session_id",
        "selection_id",
        "Errors: 400, 401, 403, 410, 411, 413, 415, 422",
    ):
        assert word in text
    assert "<script>" not in text
    assert "http" not in "".join(part.split('"')[0] for part in text.split('src="')[1:])


def test_the_schema_is_served(client):
    schema = client.get("/api/v1/openapi.json").json()
    assert "$defs" not in json.dumps(schema)
    assert schema["paths"]["/api/v1/sessions"]["post"]["requestBody"]
