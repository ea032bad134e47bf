"""Which version of an agent is installed.

A package says so in its `package.json`, which is read each time. Any other program is asked, once
for each state of its file, in a thread, with a home of its own: agents make files where they run,
and some phone home. Who needs the answer waits for it a moment the first time, and never again.
"""

import os
import re
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.agents.manifest import manifest_of

_SECONDS = 5.0
"""How long a program may take to say its version."""
_SAID = 4096
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:-(?:alpha|beta|rc|preview|nightly|canary)[\w.]*)?")


@dataclass(frozen=True)
class Question:
    """A program, the arguments by which it is asked, and its quieting variables."""

    program: Path
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] | None = None
    path: str = os.defpath


class Versions:
    """Remembers what programs said of themselves. May be used by several threads."""

    def __init__(self) -> None:
        self._asked: dict[tuple[Path, int, int], Future[str | None]] = {}
        self._lock = threading.Lock()

    def find(self, questions: Sequence[Question], patience: float) -> list[str | None]:
        """The version of each; None where it is not known, or not yet.

        Args:
            patience: seconds to wait, in all, for programs that were not asked before.
        """
        found = [packaged_version(one.program) or self._ask(one) for one in questions]
        fresh = [one for one in found if isinstance(one, _Fresh)]
        wait([one.future for one in fresh], patience)
        return [_answer(one) for one in found]

    def _ask(self, question: Question) -> "_Fresh | Future[str | None] | None":
        if not question.arguments:
            return None
        try:
            state = question.program.stat()
        except OSError:
            return None
        key = (question.program, state.st_mtime_ns, state.st_size)
        with self._lock:
            if key in self._asked:
                return self._asked[key]
            future = self._asked[key] = Future[str | None]()
        threading.Thread(target=lambda: _fulfil(future, question), daemon=True).start()
        return _Fresh(future)


VERSIONS = Versions()
"""Of this process."""


@dataclass(frozen=True)
class _Fresh:
    """An answer that nobody has waited for yet."""

    future: Future[str | None]


def packaged_version(program: Path) -> str | None:
    """What the package of a program says; None when it lies in no package."""
    return version_in(manifest_of(program).get("version", ""))


def version_in(text: str) -> str | None:
    """The first version number in a text."""
    found = _VERSION.search(text)
    return found[0] if found else None


def _answer(found: "str | _Fresh | Future[str | None] | None") -> str | None:
    future = found.future if isinstance(found, _Fresh) else found
    if not isinstance(future, Future):
        return future
    return future.result() if future.done() else None


def _fulfil(future: Future[str | None], question: Question) -> None:
    try:
        future.set_result(_said(question))
    except OSError:
        future.set_result(None)


def _said(question: Question) -> str | None:
    """Runs a program and reads the beginning of what it prints. Blocking."""
    with tempfile.TemporaryDirectory(prefix="qd-version-", ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [str(question.program), *question.arguments],
            cwd=home,
            env={
                "LANG": "C.UTF-8",
                **(question.variables or {}),
                "HOME": home,
                "PATH": question.path,
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with process:
            try:
                assert process.stdout is not None
                return version_in(_head(process.stdout.fileno()))
            finally:
                _kill(process.pid)


def _head(descriptor: int) -> str:
    """What is printed until the end, a screenful, or too long a time."""
    end, text = time.monotonic() + _SECONDS, b""
    # Not `select`, which refuses the descriptors of a service with many connections.
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    while len(text) < _SAID and (left := end - time.monotonic()) > 0:
        if not waiting.poll(left * 1000):
            break
        chunk = os.read(descriptor, _SAID)
        if not chunk:
            break
        text += chunk
    return text.decode(errors="replace")


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
