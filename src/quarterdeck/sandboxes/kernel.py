"""What a sandbox is kept from in the kernel, and the gaps that remain on this machine.

The launcher applies it before it runs anything, so it also holds for sandboxes that agents make
inside, which can only add to it:

- a seccomp filter refuses system calls that no program of a replica needs;
- Landlock keeps abstract unix sockets and signals within the sandbox (Linux 6.12);
- a limit of processes, counted in the sandbox's own user namespace (Linux 5.14).
"""

import ctypes
import errno
import os
import platform
import re
import socket
import stat
import struct
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.local.sockets import refuse_descriptors
from quarterdeck.sandboxes.port import Gap

_CALLS: dict[str, tuple[int, tuple[int | None, int | None, int | None, int | None]]] = {
    # The keys of the user who started the service, which a sandbox of the same user could read.
    "keyctl": (errno.EPERM, (250, 288, 219, 311)),
    "add_key": (errno.EPERM, (248, 286, 217, 309)),
    "request_key": (errno.EPERM, (249, 287, 218, 310)),
    # Interfaces for administrators, or with a history of faults that gave root's rights.
    "bpf": (errno.EPERM, (321, 357, 280, 386)),
    "perf_event_open": (errno.EPERM, (298, 336, 241, 364)),
    "userfaultfd": (errno.EPERM, (323, 374, 282, 388)),
    "kexec_load": (errno.EPERM, (246, 283, 104, 347)),
    "kexec_file_load": (errno.EPERM, (320, None, 294, 401)),
    "init_module": (errno.EPERM, (175, 128, 105, 128)),
    "finit_module": (errno.EPERM, (313, 350, 273, 379)),
    "delete_module": (errno.EPERM, (176, 129, 106, 129)),
    "syslog": (errno.EPERM, (103, 103, 116, 103)),
    # Opens files by number, past every directory that is not shown.
    "open_by_handle_at": (errno.EPERM, (304, 342, 265, 371)),
    # "No such call" makes libraries use the older interface.
    "io_uring_setup": (errno.ENOSYS, (425, 425, 425, 425)),
    "io_uring_enter": (errno.ENOSYS, (426, 426, 426, 426)),
    "io_uring_register": (errno.ENOSYS, (427, 427, 427, 427)),
    "fsopen": (errno.ENOSYS, (430, 430, 430, 430)),
    "fsconfig": (errno.ENOSYS, (431, 431, 431, 431)),
    "fsmount": (errno.ENOSYS, (432, 432, 432, 432)),
    "fspick": (errno.ENOSYS, (433, 433, 433, 433)),
}
"""Refused calls: the error, and the number on x86_64, i386, aarch64 and arm (None: not there)."""

_SOCKET, _PAIR = (41, 359, 198, 281), (53, 360, 199, 288)
_FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""Families of sockets that programs of a replica need. Of the others, some reach the host of a virtual machine
(`AF_VSOCK`), and the buffers of packet sockets are memory of the kernel that is counted for nobody."""

_FCNTL = ((72,), (55, 221), (25,), (55, 221))
_LEASES = (1024, 1040)
"""`F_SETLEASE` and `F_SETDELEG`: with a lease on a file of its own user, a program makes everybody wait for
up to 45 seconds who opens that file, also the service."""

_AUDIT_ARCHITECTURES = (0xC000003E, 0x40000003, 0xC00000B7, 0x40000028)
_NATIVE = {"x86_64": (0, 1), "aarch64": (2, 3)}
"""Columns above by machine: its own calls, and those of its 32-bit programs."""

_X32 = 0x40000000
"""From here on x86_64 has the calls of its third interface, which hardly any program uses."""

_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Offsets in the kernel's `struct seccomp_data`."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_INSTRUCTION = struct.Struct("=HBBI")

Instruction = tuple[int, int, int, int]
_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)


def filter_program(machine: str) -> bytes | None:
    """Return the filter as an array of the kernel's `struct sock_filter`; None when unsupported.

    Calls of an architecture that this machine cannot have are refused.
    """
    columns = _NATIVE.get(machine)
    if columns is None:
        return None
    program: list[Instruction] = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for column in columns:
        block = _block(column)
        program += [(_EQUAL, 0, len(block), _AUDIT_ARCHITECTURES[column]), *block]
    program.append(_refuse(errno.ENOSYS))
    return b"".join(_INSTRUCTION.pack(*instruction) for instruction in program)


def _block(column: int) -> list[Instruction]:
    block: list[Instruction] = [(_LOAD, 0, 0, _NUMBER)]
    if column == 0:
        block += [(_AT_LEAST, 0, 1, _X32), _refuse(errno.ENOSYS)]
    for error, numbers in _CALLS.values():
        number = numbers[column]
        if number is not None:
            block += [(_EQUAL, 0, 1, number), _refuse(error)]
    refused = _refuse(errno.EAFNOSUPPORT)
    sockets = _by_argument(_FIRST_ARGUMENT, _FAMILIES, _ALLOWED, refused)
    pairs = _by_argument(_FIRST_ARGUMENT, (socket.AF_UNIX,), _ALLOWED, refused)
    block += [(_EQUAL, 0, len(sockets), _SOCKET[column]), *sockets]
    block += [(_EQUAL, 0, len(pairs), _PAIR[column]), *pairs]
    for number in _FCNTL[column]:
        leases = _by_argument(_SECOND_ARGUMENT, _LEASES, _refuse(errno.EPERM), _ALLOWED)
        block += [(_EQUAL, 0, len(leases), number), *leases]
    return [*block, _ALLOWED]


def _by_argument(
    place: int, values: Sequence[int], answer: Instruction, otherwise: Instruction
) -> list[Instruction]:
    """Return the end of the filter for one call: an answer for some values of an argument, and another for the rest."""
    block: list[Instruction] = [(_LOAD, 0, 0, place)]
    for value in values:
        block += [(_EQUAL, 0, 1, value), answer]
    return [*block, otherwise]


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error)


@dataclass(frozen=True)
class Hardening:
    """What the launcher applies. `filter` is the seccomp filter in base64, if there is one.

    `scoped`: by Landlock. `counted`: processes are counted for each sandbox, so they can be limited.
    `sized`: file systems in memory have a size, which a setuid bubblewrap refuses.
    """

    filter: str | None = None
    scoped: bool = False
    counted: bool = False
    sized: bool = True


def find_hardening(bubblewrap: str | None) -> tuple[Hardening, list[Gap]]:
    """Return what this machine supports, and what stays open. `bubblewrap` is its path, if used."""
    if bubblewrap and Path(bubblewrap).stat().st_mode & stat.S_ISUID:
        return Hardening(sized=False), [
            Gap(
                f"{bubblewrap} is installed setuid, so neither system calls nor abstract sockets "
                "of this machine can be closed to sandboxes, and files in /tmp have no limit of "
                "their own",
                f"Allow user namespaces to ordinary users, and run: chmod u-s {bubblewrap}",
            )
        ]
    gaps: list[Gap] = []
    program = filter_program(platform.machine())
    if program is None:
        text = f"system calls are not filtered on {platform.machine()}"
        gaps.append(Gap(text, "Use a machine of x86_64 or aarch64."))
    scoped = landlock_version() >= _SCOPES_SINCE
    if not scoped:
        gaps.append(
            Gap(
                "programs in sandboxes can connect to abstract unix sockets of this machine, "
                "such as an X server's",
                "Use Linux 6.12 or newer with Landlock enabled (the boot option lsm= names it).",
            )
        )
    if not may_refuse_descriptors():
        gaps.append(
            Gap(
                "programs in sandboxes can make the service wait, by open files that they send to it",
                "Use Linux 6.16 or newer.",
            )
        )
    counted = bubblewrap is not None and _kernel() >= _COUNTED_SINCE
    if not counted:
        step = "Install bubblewrap, on Linux 5.14 or newer."
        gaps.append(Gap("the number of processes of a sandbox is not limited", step))
    text = b64encode(program).decode() if program else None
    return Hardening(text, scoped, counted), gaps


_SCOPES_SINCE = 6
_COUNTED_SINCE = (5, 14)
_CREATE_RULESET = 444
_VERSION = 1


def landlock_version() -> int:
    """Return the version of this kernel's Landlock; 0 without it."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    return max(0, call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION)))


def may_refuse_descriptors() -> bool:
    """Return whether this kernel lets a program refuse open files that others send to it."""
    with socket.socket(socket.AF_UNIX) as trial:
        return refuse_descriptors(trial.fileno())


def _kernel() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
