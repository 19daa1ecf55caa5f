"""Loaded by every program of the drill's site: writes down which files were brought to the disk (by inode)."""

import os

_fsync = os.fsync


def fsync(file: int) -> None:
    _fsync(file)
    log = os.open(os.environ["DRILL_SYNCED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(log, b"%d\n" % os.fstat(file).st_ino)
    os.close(log)


if "DRILL_SYNCED" in os.environ:
    os.fsync = fsync
