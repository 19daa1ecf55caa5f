"""Who listens where: to tell a person which program holds the port that the site wants."""

import os
from pathlib import Path

LISTENING = "0A"


def taken(port: int) -> str:
    """What to say where the port is wanted and taken."""
    return f"Port {port} is taken by {listener(port)}. Stop that, or take another port: PORT={port + 1} make run"


def listener(port: int) -> str:
    """The process that listens on the port, as "name (pid)"; "another program" where the system does not tell."""
    sockets = {f"socket:[{inode}]" for inode in listening_inodes(port)}
    for folder in Path("/proc").glob("[0-9]*"):
        if sockets & open_files(folder):
            return f"{(folder / 'comm').read_text().strip()} (process {folder.name})"
    return "another program"


def listening_inodes(port: int) -> set[str]:
    """Inodes of the sockets that listen on the port, from Linux' /proc/net (columns: address, state, …, inode)."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        lines = Path(table).read_text().splitlines()[1:] if Path(table).exists() else []
        for words in map(str.split, lines):
            if words[3] == LISTENING and int(words[1].rpartition(":")[2], 16) == port:
                found.add(words[9])
    return found


def open_files(process: Path) -> set[str]:
    try:
        return {os.readlink(file) for file in (process / "fd").iterdir()}  # noqa: PTH115  no path: "socket:[7]"
    except OSError:  # it ended meanwhile, or belongs to someone else
        return set()
