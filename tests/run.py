"""All tests on SQLite, then on a real PostgreSQL: `python -m tests.run [pytest's arguments]`.

Tests of the browser run once, on SQLite. The last lines say what passed where; the exit status is that of the worst.
"""

import os
import re
import shutil
import subprocess
import sys
import time

from tests import postgres

# Set for a site, not for its tests; the tests make their own.
FOREIGN = {"DATABASE_URL", "DJANGO_SETTINGS_MODULE"}
COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|deselected)")


def main(arguments: list[str]) -> int:
    begun = time.monotonic()
    without_browser = [] if chromium_path() or install_chromium() else ["Tests in a browser are SKIPPED: no Chromium."]
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    results = {"SQLite": pytest(environment, arguments)}
    with postgres.server() as url:
        results["PostgreSQL"] = pytest({**environment, "DATABASE_URL": url}, ["-m", "not browser", *arguments])
    print_summary(results, without_browser, time.monotonic() - begun)
    return max(status for status, _ in results.values())


def pytest(environment: dict[str, str], arguments: list[str]) -> tuple[int, str]:
    """Runs the suite, showing its output; returns pytest's exit status and closing line."""
    workers = environment.get("TEST_WORKERS", "2")
    command = [sys.executable, "-m", "pytest", "-n", workers, *arguments]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, errors="replace")
    closing = ""
    for line in process.stdout:
        print(line, end="", flush=True)
        closing = line.strip("= \n") or closing
    return process.wait(), closing


def print_summary(results: dict[str, tuple[int, str]], notes: list[str], seconds: float) -> None:
    """Prints a line for each database and then, in the form of pytest's own last line, the sum."""
    totals: dict[str, int] = {}
    for _, closing in results.values():
        for count, word in COUNT.findall(closing):
            totals[word] = totals.get(word, 0) + int(count)
    print()
    for database, (_, closing) in results.items():
        print(f"{database:10}  {closing}")
    for note in notes:
        print(f"WARNING: {note}")
    sum_line = ", ".join(f"{count} {word}" for word, count in totals.items())
    print(f" {sum_line} in {seconds:.2f}s ".center(80, "="))


def chromium_path() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


def install_chromium() -> str | None:
    """Installs Chromium by the system's package manager, as root or by a sudo that asks nothing. Returns its path."""
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (root and not quietly("sudo", "-n", "true")):
        print("No Chromium on PATH, and no right to install it. As root: apt-get install chromium", flush=True)
        return None
    print("No Chromium on PATH: installing it with apt-get …", flush=True)
    quiet = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "Dpkg::Use-Pty=0"]
    quietly(*quiet, "update")
    if not quietly(*quiet, "install", "-y", "--no-install-recommends", "chromium"):
        print("apt-get could not install Chromium.", flush=True)
    return chromium_path()


def quietly(*command: str) -> bool:
    try:
        return subprocess.run(command, check=False, stdout=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
