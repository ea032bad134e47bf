"""What `qd doctor` says of the terminal around the cockpit."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.test_cli_doctor import by_name

TMUX = {"TERM": "tmux-256color", "LANG": "C.UTF-8", "COLORTERM": "truecolor"}
GOOD = {
    "-g allow-passthrough": "on",
    "-s set-clipboard": "external",
    "-s escape-time": "10",
}


@pytest.fixture
def in_tmux(tmp_path: Path, require_tool: Callable[[str], str]) -> Iterator[Callable[..., dict]]:
    """A tmux of the test's own with such settings; what a program in it has as variables."""
    tmux = require_tool("tmux")
    socket = tmp_path / "tmux"

    def run(*arguments: str) -> str:
        command = [tmux, "-f", "/dev/null", "-S", str(socket), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def start(**settings: str) -> dict[str, str]:
        run("new-session", "-d", "exec sleep 1000")
        for name, value in (GOOD | settings).items():
            run("set", *name.split(), value)
        return TMUX | {"TMUX": f"{socket},{run('display-message', '-p', '#{pid}')},0"}

    yield start
    subprocess.run([tmux, "-S", str(socket), "kill-server"], check=False, capture_output=True)


def test_a_tmux_that_lets_everything_through(installation, in_tmux):
    checks = by_name(installation.qd("doctor", "--json", **in_tmux()).json)
    assert checks["tmux"]["level"] == checks["tmux escape-time"]["level"] == "ok"
    assert checks["tmux escape-time"]["message"] == "10 ms"
    assert checks.get("tmux passthrough", {"level": "ok"})["level"] == "ok"
    assert not {"tmux clipboard", "tmux TERM"} & set(checks)


@pytest.mark.parametrize(
    ("setting", "value", "name", "step"),
    [
        ("-g allow-passthrough", "off", "tmux passthrough", "set -g allow-passthrough"),
        ("-s set-clipboard", "off", "tmux clipboard", "set -s set-clipboard external"),
        ("-s escape-time", "500", "tmux escape-time", "set -s escape-time 10"),
    ],
)
def test_what_tmux_keeps_back_is_told_with_its_remedy(
    installation, in_tmux, setting, value, name, step
):
    found = by_name(installation.qd("doctor", "--json", **in_tmux(**{setting: value})).json)[name]
    assert found["level"] == "warn"
    assert step in found["next_step"]


@pytest.mark.parametrize(
    ("version", "value"),
    [("tmux 3.3a", "on"), ("tmux 3.4", "all"), ("tmux next-3.6", "all"), ("tmux master", "all")],
)
def test_the_remedy_is_one_that_this_tmux_knows(installation, in_tmux, tmp_path, version, value):
    inside = in_tmux(**{"-g allow-passthrough": "off"})
    program = tmp_path / "bin" / "tmux"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\n[ "$1" != -V ] || {{ echo {version}; exit; }}\necho off\n')
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    found = by_name(installation.qd("doctor", "--json", **inside, PATH=path).json)
    step = found["tmux passthrough"]["next_step"]
    assert step == f"In ~/.tmux.conf: set -g allow-passthrough {value}"


def test_the_terminal_is_told_as_the_cockpit_takes_it(installation):
    outside = {"TMUX": "", "TERM_PROGRAM": "iTerm.app", "NO_COLOR": "1", "SSH_TTY": "/dev/pts/1"}
    checks = by_name(installation.qd("doctor", "--json", **TMUX, **outside).json)
    assert checks["notices"]["message"] == "by OSC 9"
    assert checks["colors"]["message"] == "off: NO_COLOR is set"
    assert "OSC 52" in checks["ssh"]["message"]
    assert "tmux" not in checks


def test_a_term_that_draws_wrongly_in_tmux_is_told(installation, in_tmux):
    inside = in_tmux() | {"TERM": "xterm-256color"}
    checks = by_name(installation.qd("doctor", "--json", **inside).json)
    assert "default-terminal tmux-256color" in checks["tmux TERM"]["next_step"]


def test_faults_of_the_cockpits_settings_are_told_and_a_good_file_too(installation):
    installation.home.mkdir()
    file = installation.home / "config.toml"
    file.write_text('[keys]\n"no.such" = "x"\n[cockpit]\ntheme = "pink"\n')
    told = [
        check
        for check in installation.qd("doctor", "--json").json["checks"]
        if check["name"] == "cockpit"
    ]
    assert all(check["level"] == "warn" for check in told)
    said = "\n".join(check["message"] for check in told)
    assert "no.such" in said and "cockpit.theme is not one of" in said
    file.write_text('[keys]\n"replica.delete" = "D"\n')
    good = by_name(installation.qd("doctor", "--json").json)["cockpit"]
    assert good["level"] == "ok"
