"""What a machine lacks is told, with the remedy, and is a failure under CI."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.tools import left_out, require


def test_what_is_left_out_is_told_with_the_one_command_that_installs_it() -> None:
    reasons = ["Skipped: bwrap is not installed"] * 3 + ["codex is not installed", "only root may"]
    assert left_out([*reasons, "Skipped: htop is not installed"]) == [
        "5 tests were left out, for they need bwrap (3), codex (1), htop (1).",
        "To run them too (Debian, Ubuntu): apt install bubblewrap htop npm",
    ]
    assert left_out(["only root may mount a small disk"]) == []


def test_a_missing_program_is_a_failure_under_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        require("no-such-program")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed"):
        require("no-such-program")
    assert require("sh").endswith("/sh")


@pytest.mark.parametrize(
    ("words", "runs"),
    [
        (("-n0",), False),
        (("-n0", "--long"), True),
        pytest.param(("-n1",), False, marks=pytest.mark.long),
        pytest.param(("-n0", "-m", "long"), True, marks=pytest.mark.long),
        pytest.param(("-n0", "tests/containers"), True, marks=pytest.mark.long),
    ],
)
def test_long_tests_are_left_out_and_said_unless_they_are_asked_for(
    words: tuple[str, ...], runs: bool
) -> None:
    """Of one directory, which stands for all of them."""
    one = "test_it_outlives_the_service_and_the_engine"
    asked = ("-q", "--collect-only", "-k", one, "-o", "testpaths=tests/containers")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *asked, *words],
        cwd=Path(__file__).parents[2],
        env={name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    told = "2 long tests were left out. To run them too: make test-all" in done.stdout
    assert (told, f"{one}[" in done.stdout) == (not runs, runs), done.stdout + done.stderr
