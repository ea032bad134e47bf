"""How many modules a message, a terminal key, an automation's run and `qd replica ls` pass through.

python -m tests.project.paths

Every function call of every process is noted while the thing happens, in a replica without a sandbox.
"""

import os
import site
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.git import make_repository
from tests.support.program import Program

TRACER = """
import inspect, os, sys, threading, time
directory = {directory!r}
package = {package!r}
phase, seen = "", set()

def note(frame, event, argument):
    name = frame.f_code.co_filename
    # Bodies of modules and classes run when they are imported.
    if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED and name not in seen:
        seen.add(name)
        if phase and name.startswith(package):
            with open(os.path.join(directory, phase), "a") as file:
                file.write(name + chr(10))

def watch():
    global phase
    while True:
        try:
            now = os.readlink(os.path.join(directory, "now"))
        except OSError:
            now = ""
        if now != phase:
            seen.clear()
            phase = now
        time.sleep(0.02)

def begin():
    global phase
    try:
        phase = os.readlink(os.path.join(directory, "now"))
    except OSError:
        pass
    threading.setprofile(note)
    threading.Thread(target=watch, daemon=True).start()
    os.register_at_fork(after_in_child=lambda: threading.Thread(target=watch, daemon=True).start())
    sys.setprofile(note)

begin()
"""
PACKAGE = Path(__file__).parents[2] / "src" / "quarterdeck"
WAIT = 0.3
"""Seconds until every process has seen that something else is measured."""


@contextmanager
def tracing(directory: Path) -> Iterator[None]:
    """Trace every interpreter of this environment that starts meanwhile, isolated ones too."""
    (directory / "path_tracer.py").write_text(
        TRACER.format(directory=str(directory), package=f"{PACKAGE}{os.sep}")
    )
    hook = Path(site.getsitepackages()[0]) / "path_tracer.pth"
    hook.write_text(f"import sys; sys.path.append({str(directory)!r}); import path_tracer\n")
    try:
        yield
    finally:
        hook.unlink()


@contextmanager
def measured(directory: Path, name: str) -> Iterator[None]:
    """Note the modules that run meanwhile, and print their number."""
    (directory / "now").symlink_to(name)
    time.sleep(WAIT)
    yield
    (directory / "now").unlink()
    time.sleep(WAIT)
    modules = set((directory / name).read_text().split())
    packages = {Path(module).relative_to(PACKAGE).parts[0] for module in modules}
    print(f"{len(modules):4} modules: {name.replace('-', ' ')} ({', '.join(sorted(packages))})")
    if "--names" in sys.argv:
        print("\n".join(sorted(str(Path(module).relative_to(PACKAGE)) for module in modules)))


def main() -> None:
    """Print the report."""
    with tempfile.TemporaryDirectory(prefix="qd-") as base:
        directory = Path(base)
        checkout = make_repository(directory / "shop")
        programs = directory / "bin"
        programs.mkdir()
        for name in ("git", "sh", "bash", "env"):
            (programs / name).symlink_to(f"/usr/bin/{name}")
        variables = {
            "QUARTERDECK_HOME": str(directory / "home"),
            "PATH": f"{Path(sys.executable).parent}:{programs}",  # without a sandbox
        }
        with tracing(directory):
            run(directory, checkout, variables)


def run(directory: Path, checkout: Path, variables: dict[str, str]) -> None:
    """Do each thing once before it is measured."""

    def qd(*arguments: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "quarterdeck", *arguments],
            env={**os.environ, **variables},
            cwd=checkout,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    command = [sys.executable, "-m", "quarterdeck"]
    with Program(
        command, columns=120, lines=40, environment=variables, directory=checkout
    ) as program:
        program.wait_for("online")
        qd("replica", "create", "--name", "first", "--agent", "builtin", "--wait", "-m", "hello")
        program.wait_for("first")
        program.type("\r")
        program.wait_for("Gemini")
        program.settle()
        with measured(directory, "a-message-from-the-composer-to-the-screen"):
            program.type("```sh\necho it$((40+2))\n```\r")
            program.wait_for("No files changed")
            program.settle()
        program.type("\x1b")
        program.settle()
        program.type("t")
        program.wait_for("shop$")
        program.type("PS1='> '\r")
        program.settle()
        with measured(directory, "a-key-in-a-terminal"):
            program.type("Z")
            program.wait_for("> Z")
        qd("automation", "create", "daily", "--env", "global", "--prompt", "hello")
        qd("automation", "run", "daily", "--follow")
        program.settle()
    with measured(directory, "a-run-of-an-automation"):
        qd("automation", "run", "daily", "--follow")
    with measured(directory, "qd-replica-ls"):
        qd("replica", "ls")
    qd("stop")


if __name__ == "__main__":
    main()
