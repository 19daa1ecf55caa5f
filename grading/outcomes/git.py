"""Runs git so that nothing in a repository is executed and nothing of this machine's configuration is used."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 300
MEMORY_KB = 2 * 1024 * 1024
# The largest file that git may write: a pack, or its output. In blocks of 512 bytes, as POSIX defines `ulimit -f`.
FILE_BLOCKS = 2 * 1024 * 1024 * 2
MAX_OUTPUT = 256 * 1024 * 1024
MAX_ERROR = 600
ASKPASS = """#!/bin/sh
case "$1" in
  Username*) printf %s x-access-token ;;
  *) printf %s "$GIT_TOKEN" ;;
esac
"""


class GitFailed(Exception):
    """git ended with an error, or reached a limit. The message is git's last line, or names the limit."""


class LimitReached(GitFailed):
    """git took too long or printed too much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What git may do beyond reading its own folder.

    `protocol` is the only protocol of a remote, "" for none. `safe_directory` is the only folder of another owner that
    git may read. `token` is for the remote's host, and is passed in the environment. `resolve` ("host:port:address")
    names the only address at which the host may be contacted.
    """

    protocol: str = ""
    safe_directory: str = ""
    token: str = field(default="", repr=False)
    resolve: str = ""


OFFLINE = Access()


def run(folder: Path, *arguments: str, access: Access = OFFLINE, stdin: bytes = b"", seconds: float = SECONDS) -> bytes:
    """What `git ARGUMENTS` prints in a bare repository. Raises GitFailed."""
    with _environment(access) as environment, tempfile.TemporaryFile() as output:
        process = _start(folder, arguments, environment, stdout=output)
        _wait(process, stdin, seconds)
        if output.seek(0, os.SEEK_END) > MAX_OUTPUT:
            raise LimitReached(f"git {arguments[0]} printed more than {MAX_OUTPUT} bytes")
        output.seek(0)
        return output.read()


def pipe_to_patch_id(
    folder: Path, *arguments: str, stdin: bytes = b"", seconds: float = SECONDS
) -> Iterator[tuple[str, str]]:
    """Run a git command that prints patches, and yield the hash of each commit with its stable patch id."""
    with _environment(OFFLINE) as environment, tempfile.TemporaryFile() as patches, tempfile.TemporaryFile() as output:
        _wait(_start(folder, arguments, environment, stdout=patches), stdin, seconds)
        patches.seek(0)
        patch_id_process = _start(folder, ["patch-id", "--stable"], environment, stdin=patches, stdout=output)
        _wait(patch_id_process, None, seconds)
        output.seek(0)
        for line in output:
            patch_id, _, commit = line.decode("ascii").strip().partition(" ")
            yield commit, patch_id


def _start(
    folder: Path, arguments: Sequence[str], environment: dict[str, str], *, stdout: object, stdin: object = None
) -> "subprocess.Popen[bytes]":
    """Start git in a bare repository, with limits on memory and on the size of files."""
    # A shell sets the limits, since Python may not run code of its own between fork and exec in a process with threads.
    limits = f'ulimit -f {FILE_BLOCKS}; ulimit -v {MEMORY_KB} 2>/dev/null; exec "$@"'
    command = ["sh", "-c", limits, "sh", "git", f"--git-dir={folder}", *arguments]
    return subprocess.Popen(  # type: ignore[call-overload, no-any-return]  # noqa: S603  # the arguments are our own
        command,
        env=environment,
        cwd=folder,
        stdin=stdin if stdin is not None else subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _wait(process: "subprocess.Popen[bytes]", stdin: bytes | None, seconds: float) -> None:
    """Wait until the process ends. Raises GitFailed if it fails, and LimitReached after this many seconds."""
    try:
        _, error = process.communicate(stdin, timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        raise LimitReached(f"git did not end within {seconds:g} seconds") from None
    except BaseException:
        os.killpg(process.pid, 9)
        process.communicate()
        raise
    if process.returncode:
        lines = error.decode("utf-8", "replace").strip().splitlines()
        raise GitFailed(lines[-1][:MAX_ERROR] if lines else f"git ended with status {process.returncode}")


@contextmanager
def _environment(access: Access) -> Iterator[dict[str, str]]:
    """All environment variables of a git process. Its configuration and home are in a folder that is deleted after the
    command.
    """
    home = Path(tempfile.mkdtemp(prefix="gradingsite-git-"))
    try:
        config = home / "config"
        config.write_text(_configuration(access), encoding="utf-8")
        askpass = home / "askpass"
        askpass.write_text(ASKPASS, encoding="utf-8")
        askpass.chmod(0o700)
        yield {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(home),
            "LC_ALL": "C",
            "GIT_CONFIG_GLOBAL": str(config),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": access.protocol or "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": str(askpass),
            "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ForwardAgent=no -o PermitLocalCommand=no",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TOKEN": access.token,
            # The certificates of the operator's own authority.
            **({"GIT_SSL_CAINFO": os.environ["GIT_SSL_CAINFO"]} if "GIT_SSL_CAINFO" in os.environ else {}),
        }
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _configuration(access: Access) -> str:
    """The text of git's global configuration. git passes it on to `upload-pack`, unlike settings of a command line."""
    lines = [
        "[core]",
        "hooksPath = /dev/null",
        "fsmonitor = false",
        "[protocol]",
        "allow = never",
        *([f'[protocol "{access.protocol}"]', "allow = always"] if access.protocol else []),
        "[http]",
        "followRedirects = false",
        *([f"curloptResolve = {access.resolve}"] if access.resolve else []),
        "[fetch]",
        "recurseSubmodules = false",
        "unpackLimit = 1",
        "[gc]",
        "auto = 0",
        "[maintenance]",
        "auto = false",
        "[transfer]",
        "bundleURI = false",
        "[diff]",
        "renames = false",
        "[safe]",
        "bareRepository = all",
    ]
    if access.safe_directory:
        lines.append(f"directory = {_quote(access.safe_directory)}")
    return "\n".join(lines) + "\n"


def _quote(value: str) -> str:
    """A value in the quotes of git's configuration."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
