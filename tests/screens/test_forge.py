"""Which reported addresses become links."""

import pytest

from grading.screens import forge

PULL = "https://github.com/octo/contrib/pull/641"
HASH = "ab" * 20


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (PULL, "contrib#641"),
        ("https://gitlab.com/group/sub/project/-/merge_requests/7", "project#7"),
        ("http://codeberg.org/octo/contrib/pulls/3", "contrib#3"),
    ],
)
def test_a_pull_request_of_a_known_site_is_a_link(key, name):
    assert (forge.pull_request(key), forge.pull_request_name(key)) == (key, name)


@pytest.mark.parametrize(
    "key",
    [
        "https://evil.test/octo/contrib/pull/641",
        "https://github.com.evil.test/octo/contrib/pull/641",
        "https://github.com@evil.test/a/b/pull/1",
        f"javascript:alert(1)//{PULL}",
        f"{PULL}\n",
        f'{PULL}" onmouseover="alert(1)',
        f"{PULL}#pwned",
        "https://github.com/../contrib/pull/1",
        "octo/contrib#641",
        "",
    ],
)
def test_anything_else_stays_text(key):
    assert forge.pull_request(key) == ""


def test_commits_are_linked_where_all_pull_requests_are_of_one_repository():
    base = forge.repository([PULL, PULL.replace("641", "642"), "text"])
    assert forge.commit(base, HASH) == f"https://github.com/octo/contrib/commit/{HASH}"
    assert forge.repository([PULL, PULL.replace("contrib", "other")]) == ""
    assert forge.commit("", HASH) == forge.commit(base, "../settings") == ""
