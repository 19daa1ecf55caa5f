"""Repositories that try to run something, or to show something of another repository, when the site reads them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from grading.outcomes import git, mirror
from grading.outcomes.addresses import BadAddress, parse, resolve
from grading.outcomes.git import GitFailed
from grading.outcomes.local_repositories import RepositoryRefused, check
from grading.outcomes.mirror import Mirror
from tests.outcomes.https import git_server
from tests.outcomes.repos import Repo


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "engine")


@pytest.fixture
def own(tmp_path):
    return Mirror(tmp_path / "mirror.git")


@pytest.fixture
def trap(tmp_path):
    """A program that leaves a file behind when anything runs it."""
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    script.chmod(0o755)
    yield script
    assert not (tmp_path / "sprung").exists()


def fetch(own, repo):
    return own.fetch(parse(str(repo.folder)), "main")


def test_nothing_in_a_repository_runs(repo, own, trap):
    """Hooks, file system monitors, filters, external diffs and pack hooks."""
    settings = (
        "core.fsmonitor",
        "core.sshCommand",
        "core.gitProxy",
        "core.pager",
        "uploadpack.packObjectsHook",
        "filter.evil.smudge",
        "filter.evil.clean",
        "filter.evil.process",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "credential.helper",
    )
    commit = repo.commit("Work", ".gitattributes", "* filter=evil diff=evil\n")
    for name in settings:
        repo.git("config", name, f"!{trap}" if name == "credential.helper" else str(trap))
    for hook in ("post-checkout", "pre-receive", "reference-transaction", "post-index-change"):
        shutil.copy(trap, repo.folder / ".git/hooks" / hook)
    fetch(own, repo)
    assert own.patch_ids("refs/heads/main")[commit]
    assert own.inverse_patch_ids([commit])


def test_hooks_of_the_machine_do_not_run(repo, own, trap, monkeypatch, tmp_path):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    shutil.copy(trap, hooks / "reference-transaction")
    config = tmp_path / "gitconfig"
    config.write_text(f"[core]\nhooksPath = {hooks}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    fetch(own, repo)


def test_objects_of_another_repository_are_refused(repo, own, tmp_path):
    """`objects/info/alternates` would copy a neighbour's commits into the mirror."""
    secret = Repo(tmp_path / "secret").commit("Secret")
    (repo.folder / ".git/objects/info").mkdir(exist_ok=True)
    (repo.folder / ".git/objects/info/alternates").write_text(f"{tmp_path}/secret/.git/objects\n")
    (repo.folder / ".git/refs/heads/stolen").write_text(f"{secret}\n")
    with pytest.raises(RepositoryRefused, match="refers to another repository"):
        fetch(own, repo)
    assert own.resolve_commits([secret]) == {}


@pytest.mark.parametrize("name", [".git", ".git/objects", ".git/refs", ".git/objects/pack", ".git/config", ".git/HEAD"])
def test_links_are_refused(repo, own, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    (repo.folder / name).rename(elsewhere)
    (repo.folder / name).symlink_to(elsewhere)
    with pytest.raises(RepositoryRefused, match="symbolic link"):
        fetch(own, repo)


def test_a_link_to_the_folder_is_refused(repo, tmp_path):
    (tmp_path / "link").symlink_to(repo.folder)
    with pytest.raises(RepositoryRefused, match="symbolic link"):
        check(tmp_path / "link")


def test_links_among_the_objects_are_refused(repo, own, tmp_path):
    folder = next(path for path in (repo.folder / ".git/objects").iterdir() if len(path.name) == 2)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    with pytest.raises(RepositoryRefused, match="symbolic link"):
        fetch(own, repo)


def test_worktrees_and_submodules_are_refused(repo, own, tmp_path):
    repo.git("worktree", "add", "-q", str(tmp_path / "tree"))
    with pytest.raises(RepositoryRefused, match="worktree or submodule"):
        own.fetch(parse(str(tmp_path / "tree")), "main")


def test_partial_clones_are_refused(repo, own, trap):
    repo.git("config", "extensions.partialClone", "origin")
    repo.git("config", "remote.origin.promisor", "true")
    repo.git("config", "remote.origin.url", f"ext::{trap}")
    with pytest.raises(RepositoryRefused, match="partial clone"):
        fetch(own, repo)


def test_included_configuration_is_not_read_by_the_check(repo, own, trap, tmp_path):
    """A partial clone that is configured in an included file is not fetched from either."""
    lost = repo.commit("Lost")
    included = tmp_path / "included"
    included.write_text(f'[extensions]\npartialClone = origin\n[remote "origin"]\npromisor = true\nurl = ext::{trap}\n')
    repo.git("config", "include.path", str(included))
    (repo.folder / f".git/objects/{lost[:2]}/{lost[2:]}").unlink()
    with pytest.raises(GitFailed):
        fetch(own, repo)


def test_a_repository_that_is_replaced_while_it_is_read_leaves_nothing(repo, own, tmp_path, monkeypatch):
    secret = Repo(tmp_path / "secret").commit("Secret")
    run = git.run

    def swap_first(folder, *arguments, **options):
        if arguments[0] == "ls-remote":
            repo.folder.rename(tmp_path / "away")
            (tmp_path / "secret").rename(repo.folder)
        return run(folder, *arguments, **options)

    monkeypatch.setattr(mirror.git, "run", swap_first)
    with pytest.raises(RepositoryRefused, match="was replaced"):
        fetch(own, repo)
    monkeypatch.undo()
    assert not own.folder.exists()
    fetch(own, repo)
    assert own.resolve_commits([secret]) == {secret: secret}  # the operator's folder by now


def test_a_repository_of_another_user_is_read_at_its_exact_path_only(repo, own, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs another user")
    for path in (repo.folder, *repo.folder.rglob("*")):
        os.lchown(path, 65534, 65534)
    assert fetch(own, repo).tips
    access = git.Access(protocol="file", safe_directory=str(tmp_path / "other"))
    with pytest.raises(GitFailed):
        git.run(own.folder, "ls-remote", "--", str(repo.folder / ".git"), access=access)


def test_too_many_refs_leave_only_the_default_branch(repo, own, monkeypatch):
    monkeypatch.setattr(mirror, "MAX_REFS", 3)
    for number in range(4):
        repo.branch(f"b{number}")
        side = repo.commit(f"Side {number}")
    fetched = fetch(own, repo)
    assert not fetched.has_branches
    assert len(fetched.tips) == 1
    assert own.resolve_commits([side]) == {}


def test_a_million_refs_are_refused_without_using_the_memory(repo, own):
    head = repo.head
    with (repo.folder / ".git/packed-refs").open("w") as file:
        file.write("# pack-refs with: peeled fully-peeled sorted \n")
        file.writelines(f"{head} refs/heads/b{number:07d}\n" for number in range(1_000_000))
        file.write(f"{head} refs/heads/main\n")
    fetched = fetch(own, repo)
    assert not fetched.has_branches
    assert len(fetched.tips) == 1


def test_a_command_that_takes_too_long_is_ended_with_its_children(repo):
    with pytest.raises(GitFailed, match="did not end within"):
        git.run(repo.folder / ".git", "-c", "alias.wait=!sleep 600", "wait", seconds=0.5)
    assert "sleep 600" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout


def test_a_missing_branch_is_named(repo, own):
    with pytest.raises(GitFailed, match="no branch trunk"):
        own.fetch(parse(str(repo.folder)), "trunk")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://ada:secret@Forge.example/ada/engine.git?key=1#x", "https://forge.example/ada/engine.git"),
        ("https://forge.example:8443/ada/engine", "https://forge.example:8443/ada/engine"),
        ("git@forge.example:ada/engine.git", "ssh://git@forge.example/ada/engine.git"),
        ("ssh://ada:secret@forge.example/engine", "ssh://ada@forge.example/engine"),
        ("file:///srv/engine", "/srv/engine"),
    ],
)
def test_addresses_are_stored_without_secrets(text, url):
    assert parse(text).url == url


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c evil",
        "http://forge.example/a",
        "git://forge.example/a",
        "--upload-pack=evil",
        "https://-oProxyCommand=evil/x",
        "ssh://-oProxyCommand=evil/x",
        "ssh://git@-oProxyCommand=evil/x",
        "-oProxyCommand=evil@forge.example:x",
        "https://forge.example/a/../../b",
        "https://forge.example",
        "relative/path",
        "https://forge.example/a b\n",
        "",
    ],
)
def test_bad_addresses_are_refused(text):
    with pytest.raises(BadAddress, match="expected"):
        parse(text)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]", "[::]"])
def test_link_local_hosts_are_never_contacted(host):
    with pytest.raises(BadAddress):
        resolve(parse(f"https://{host}/a"))


def test_a_token_is_in_no_command_line(repo, own, tmp_path, monkeypatch):
    """git gets the token of a host in its environment."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    real = shutil.which("git")
    wrapper = binaries / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/commands\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binaries}:{os.environ['PATH']}")
    own.fetch(parse(str(repo.folder)), "main", token="token-of-the-host")
    git.run(own.folder, "version", access=git.Access(token="token-of-the-host"))
    commands = Path(tmp_path / "commands").read_text()
    assert "fetch" in commands
    assert "token-of-the-host" not in commands
    assert "token-of-the-host" not in repr(git.Access(token="token-of-the-host"))


def test_a_private_repository_is_read_with_its_token_only(repo, own, tmp_path, monkeypatch):
    with git_server(tmp_path, tmp_path, token="t-1") as server:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "certificate.pem"))
        address = parse(f"https://localhost:{server.server_port}/engine/.git")
        for token in ("", "wrong"):
            with pytest.raises(GitFailed):
                own.fetch(address, "main", token=token)
        assert own.fetch(address, "main", token="t-1").tips


def test_redirects_are_not_followed(repo, own, tmp_path, monkeypatch):
    """A redirect could lead the token, or the site, to another host."""
    with git_server(tmp_path, tmp_path) as server:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "certificate.pem"))
        with pytest.raises(GitFailed):
            own.fetch(parse(f"https://localhost:{server.server_port}/moved/engine/.git"), "main")
        assert all(path.startswith("/moved/") for path in server.requests)


def test_an_unknown_certificate_is_refused(repo, own, tmp_path):
    with git_server(tmp_path, tmp_path) as server, pytest.raises(GitFailed, match="certificate"):
        own.fetch(parse(f"https://localhost:{server.server_port}/engine/.git"), "main")


def test_odd_subjects_and_dates_stop_no_look_up(repo, own):
    """Line separators in a subject, and a date after the year 9999, which makes the commit one that is not found."""
    good = repo.commit("Form feed\fand\u2028separator", "odd.txt")
    who = f"Ada <ada@example.test> {10**13} +0000"
    tree = repo.git("rev-parse", "HEAD^{tree}")
    text = f"tree {tree}\nparent {good}\nauthor {who}\ncommitter {who}\n\nToo late\n"
    (repo.folder / "commit").write_text(text)
    late = repo.git("hash-object", "-t", "commit", "-w", "--literally", "commit")
    repo.git("update-ref", "refs/heads/late", late)
    fetch(own, repo)
    infos = own.describe([good, late])
    assert infos[good].subject == "Form feed\fand\u2028separator"
    assert late not in infos
