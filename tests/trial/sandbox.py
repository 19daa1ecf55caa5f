"""Imported at Python's start, as sitecustomize: ends a process that does what a trial must not do.

It writes outside the state folder, connects or listens beyond this machine, starts a process, or sets a limit of Linux.
There is no /proc, and no function that macOS lacks.
"""

import asyncio  # noqa: F401 - these read sys.platform when they are imported
import ctypes.util  # noqa: F401
import multiprocessing.reduction  # noqa: F401
import os
import subprocess  # noqa: F401
import sys
import sysconfig
import tempfile  # noqa: F401
import traceback
import urllib.request  # noqa: F401
import uuid  # noqa: F401

STATE = os.environ["SANDBOX"]
REFUSED = ("os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "subprocess.Popen", "resource.", "ctypes.dlsym")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate")
is_at_work = True


def refuse(event: str, detail: object) -> None:
    global is_at_work
    is_at_work = False
    print("".join(traceback.format_stack()), f"REFUSED {event} {detail!r}", flush=True)
    os._exit(70)


def watch(event: str, args: tuple) -> None:
    if not is_at_work:
        return
    if event.startswith(REFUSED):
        refuse(event, args[:1])
    elif event == "open" and isinstance(args[0], str):
        path = os.path.abspath(args[0])
        if path.startswith("/proc"):  # some packages look whether it is there
            raise FileNotFoundError(path)
        if args[2] & WRITES and not is_allowed(path):
            refuse(event, path)
    elif event in CHANGES:
        folder = folder_of(args)
        for path in args[:2]:
            if isinstance(path, str | bytes) and not is_allowed(
                os.path.abspath(os.path.join(folder, os.fsdecode(path)))
            ):
                refuse(event, path)
    elif event in {"socket.connect", "socket.bind"}:
        address = args[1]
        if not isinstance(address, tuple) or address[0] not in {"127.0.0.1", "::1"}:
            refuse(event, address)
    elif event == "socket.getaddrinfo" and args[0] not in {None, "0.0.0.0", "127.0.0.1", "localhost"}:  # noqa: S104
        refuse(event, args[0])


def folder_of(args: tuple) -> str:
    """The folder that a change is relative to: the last argument is its descriptor, or -1."""
    descriptor = args[-1]
    is_open = (
        isinstance(descriptor, int) and descriptor >= 0 and isinstance(args[0], str) and not os.path.isabs(args[0])
    )
    return os.readlink(f"/proc/self/fd/{descriptor}") if is_open else os.getcwd()


def is_allowed(path: str) -> bool:
    """Whether a trial may change this path. The parents of the state folder are made at the first start."""
    return path.startswith((STATE, "/dev/")) or STATE.startswith(path + "/") or "/__pycache__" in path


for name in ("fork", "forkpty", "sched_getaffinity", "sched_setaffinity", "memfd_create", "pidfd_open", "splice"):
    if hasattr(os, name):
        delattr(os, name)
sysconfig.get_config_vars()
sys.platform = "darwin"
sys.addaudithook(watch)
