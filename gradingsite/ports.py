"""Finds the program that uses the port that the site needs."""

import os
from pathlib import Path

from gradingsite.state import START

LISTENING = "0A"  # a socket's state in /proc/net


def port_taken(port: int) -> str:
    """A message that says which program uses the port, and what to do."""
    return f"Port {port} is taken by {listener(port)}. Stop that, or take another port: PORT={port + 1} {START}"


def listener(port: int) -> str:
    """The process that listens on the port, as "name (process 7)", or "another program" if the system hides it."""
    sockets = {f"socket:[{inode}]" for inode in listening_inodes(port)}
    for folder in Path("/proc").glob("[0-9]*"):
        if sockets & open_files(folder):
            return f"{(folder / 'comm').read_text().strip()} (process {folder.name})"
    return "another program"


def listening_inodes(port: int) -> set[str]:
    """Inodes of the sockets that listen on the port, from Linux' /proc/net (columns: number, local address, remote
    address, state, …, inode).
    """
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        lines = Path(table).read_text().splitlines()[1:] if Path(table).exists() else []
        for line in lines:
            columns = line.split()
            if columns[3] == LISTENING and int(columns[1].rpartition(":")[2], 16) == port:
                inodes.add(columns[9])
    return inodes


def open_files(process: Path) -> set[str]:
    try:
        return {os.readlink(file) for file in (process / "fd").iterdir()}  # noqa: PTH115  no path: "socket:[7]"
    except OSError:  # the process has ended, or is another user's
        return set()
