"""Checks whether another user could have changed a file that qd trusts."""

import grp
import os
import pwd
import shlex
import stat
from pathlib import Path


def why_untrusted(path: Path) -> str | None:
    """Return why a file or directory may hold what another user wrote, as `belongs to ann`.

    None if only this user and root could write it, or when it cannot be looked at, so that its use says why.
    The private group that many distributions make for each user does not count as another user.
    """
    try:
        status = path.stat()
        written = not os.statvfs(path).f_flag & os.ST_RDONLY
    except OSError:
        return None
    if status.st_uid not in (0, os.geteuid()):
        return f"belongs to {_user_name(status.st_uid)}"
    if written and status.st_mode & stat.S_IWOTH:
        return "can be written by every user"
    if written and status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        return "can be written by its group"
    return None


def why_file_untrusted(path: Path) -> tuple[Path, str] | None:
    """Return what is wrong, and of which path, with a file, the file that it links to, or their directories."""
    places = dict.fromkeys((path, path.parent, path.resolve().parent))
    found = ((place, why_untrusted(place)) for place in places if not _is_shared(place))
    return next(((place, why) for place, why in found if why), None)


def make_private(path: Path) -> str:
    """Return the step after which nobody else can write to a path."""
    where = shlex.quote(str(path))
    return f"If you trust its contents: sudo chown {os.geteuid()} {where}; chmod go-w {where}"


def _is_shared(path: Path) -> bool:
    """Return whether it is a directory such as `/tmp`, where users change their own files only."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)


def _is_own_group(gid: int) -> bool:
    if os.geteuid() == 0:
        return False
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    name = user.pw_name
    return gid == user.pw_gid and group.gr_name == name and set(group.gr_mem) <= {name}


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
