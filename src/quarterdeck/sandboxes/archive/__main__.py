"""Packs or unpacks one archive or copies a tree, in a separate process that ends with the service.

    python -m quarterdeck.sandboxes.archive pack TREE ARCHIVE [LEFT_OUT...]
    python -m quarterdeck.sandboxes.archive unpack ARCHIVE TREE
    python -m quarterdeck.sandboxes.archive copy TREE NEW_TREE

Reports an error on standard output, as one line of JSON: `{"errno", "message"}`. The message is the file's name, or
the reason if `errno` is 0.
"""

import ctypes
import json
import os
import signal
import sys
import tarfile
import zlib
from pathlib import Path

from quarterdeck.sandboxes.archive.copying import copy
from quarterdeck.sandboxes.archive.packing import DamagedError, pack, unpack

_SET_PARENT_DEATH_SIGNAL = 1
_NICENESS = 10


def _end_with_parent(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)  # it had already ended


def _work(arguments: list[str]) -> None:
    match arguments:
        case ["pack", tree, archive, *left_out]:
            pack(Path(tree), Path(archive), frozenset(left_out))
        case ["unpack", archive, tree]:
            unpack(Path(archive), Path(tree))
        case ["copy", tree, new_tree]:
            copy(Path(tree), Path(new_tree))
        case _:
            raise SystemExit(2)


def main() -> None:
    """Run one job; exit code 1 when it failed."""
    parent, *arguments = sys.argv[1:]
    _end_with_parent(int(parent))
    os.nice(_NICENESS)
    os.umask(0o077)
    try:
        _work(arguments)
    except (DamagedError, tarfile.TarError, EOFError, zlib.error) as e:
        _fail(0, str(e) or "it ends too early")
    except OSError as e:
        _fail(e.errno or 0, str(e.filename or "") if e.errno else str(e))


def _fail(number: int, message: str) -> None:
    sys.stdout.write(json.dumps({"errno": number, "message": message}))
    sys.exit(1)


if __name__ == "__main__":
    main()
