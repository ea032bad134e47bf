"""What a machine lacks is told, with the remedy, and is a failure under CI."""

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
