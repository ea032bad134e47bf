"""Versions: from a package, else from the program itself, asked once and without harm."""

import json
import os
import time
from pathlib import Path

import pytest

from quarterdeck.agents import availability as versions
from quarterdeck.agents.availability import VersionQuestion, Versions, packaged_version, version_in

ENOUGH = 20.0


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def question(path: Path, **variables: str) -> VersionQuestion:
    return VersionQuestion(path, ("--version",), variables, os.environ["PATH"])


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("codex-cli 0.169.0", "0.169.0"),
        ("0.169.0-linux-x64", "0.169.0"),
        ("1.2.3-beta.4 (build 7)", "1.2.3-beta.4"),
        ("v24.1", "24.1"),
        ("no number", None),
    ],
)
def test_the_first_number_is_the_version(text, version):
    assert version_in(text) == version


def test_a_package_says_its_version(tmp_path):
    package = tmp_path / "lib/node_modules/@acme/agent"
    true = program(package / "vendor/bin/agent", "exit 1")
    (package / "package.json").write_text(json.dumps({"version": "1.2.3-linux-x64"}))
    (package / "vendor/package.json").write_text("{}")
    link = tmp_path / "agent"
    link.symlink_to(true)
    assert packaged_version(link) == "1.2.3"
    (package / "package.json").write_text("[1]")
    assert packaged_version(link) is None


def test_a_program_is_asked_once_for_each_state_of_its_file(tmp_path):
    told = tmp_path / "told"
    agent = program(tmp_path / "agent", f"echo x >>{told}; echo agent $VERSION")
    known = Versions()
    for _ in range(3):
        assert known.find([question(agent, VERSION="1.0.0")], ENOUGH) == ["1.0.0"]
    assert told.read_text() == "x\n"
    program(agent, f"echo x >>{told}; echo newer agent 2.0.0")
    assert known.find([question(agent)], ENOUGH) == ["2.0.0"]


def test_it_is_asked_in_a_home_that_goes_and_without_our_variables(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    said = tmp_path / "said"
    agent = program(tmp_path / "agent", f"touch ~/left; env >{said}; pwd >>{said}; echo 1.0.0")
    Versions().find([question(agent)], ENOUGH)
    text = said.read_text()
    assert "secret" not in text
    home = next(line for line in text.splitlines() if line.startswith("HOME="))
    assert not Path(home.removeprefix("HOME=")).exists()


async def test_nobody_waits_for_one_that_hangs_and_it_is_ended(tmp_path, monkeypatch, gone):
    monkeypatch.setattr(versions, "_SECONDS", 0.3)
    started = tmp_path / "started"
    agent = program(tmp_path / "agent", f"sleep 1000 & echo $$ $! >{started}; exec sleep 1000")
    known = Versions()
    begun = time.monotonic()
    assert known.find([question(agent)], 0.01) == [None]
    assert known.find([question(agent)], ENOUGH) == [None]  # nobody waits a second time
    assert time.monotonic() - begun < 60  # and not the 1,000 of the program
    (future,) = known._futures.values()
    assert future.result(ENOUGH) is None
    assert await gone(*map(int, started.read_text().split()))


def test_one_that_prints_without_end_is_read_a_little(tmp_path):
    agent = program(tmp_path / "agent", "echo 3.2.1; exec yes")
    assert Versions().find([question(agent)], ENOUGH) == ["3.2.1"]


def test_what_cannot_be_run_has_no_version(tmp_path):
    broken = program(tmp_path / "agent", "")
    broken.write_bytes(b"\x7fELF nonsense")
    missing = tmp_path / "missing"
    unasked = VersionQuestion(program(tmp_path / "other", "echo 1.0.0"))
    asked = [question(broken), question(missing), unasked]
    assert Versions().find(asked, ENOUGH) == [None, None, None]


def test_it_is_read_also_beside_very_many_open_files(tmp_path):
    agent = program(tmp_path / "agent", "echo 3.2.1")
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert Versions().find([question(agent)], ENOUGH) == ["3.2.1"]
    finally:
        for descriptor in held:
            os.close(descriptor)
