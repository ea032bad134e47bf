"""`qd config`: where the file is, what is set in it, and changing it so that it stays right."""

import json
import stat
import tomllib

import pytest

FILE = """# mine
default = "work"

[profiles.work]
url = "https://service.example"
key = "sk_secret"  # not for others

[keys]
"replica.delete" = "D"
"""


@pytest.fixture
def file(installation):
    installation.home.mkdir()
    path = installation.home / "config.toml"
    path.write_text(FILE)
    path.chmod(0o640)
    return path


def test_the_path_is_printed_also_without_a_file(installation):
    ended = installation.qd("config", "path")
    assert (ended.code, ended.out) == (0, f"{installation.home}/config.toml\n")
    assert not installation.home.exists()
    shown = installation.qd("config", "show")
    assert (shown.code, shown.out) == (0, "")
    assert "No configuration file" in shown.err


def test_show_prints_what_is_set_without_secrets(installation, file):
    shown = installation.qd("config", "show")
    assert shown.code == 0, shown.err
    assert shown.out.startswith(f"# {file}\n")
    assert installation.qd("config").out == shown.out
    told = tomllib.loads(shown.out)
    assert told == tomllib.loads(FILE.replace("sk_secret", "********"))
    assert installation.qd("config", "show", "--json").json == told


def test_show_says_what_is_wrong(installation, file):
    file.write_text('[cockpit]\ntheme = "pink"\n[keys]\n"no.such" = "x"\n')
    shown = installation.qd("config", "show")
    assert shown.code == 0 and "cockpit.theme" in shown.err and "no.such" in shown.err
    file.write_text("[profiles.x]\n")
    wrong = installation.qd("config", "show")
    assert wrong.code == 2 and "profiles: x: give one of url and socket" in wrong.err


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("default", "work"),
        ("profiles.work.key", "sk_secret"),
        ("keys.replica.delete", "D"),
        ('keys."replica.delete"', "D"),
    ],
)
def test_get_prints_one_value(installation, file, name, value):
    ended = installation.qd("config", "get", name)
    assert (ended.code, ended.out) == (0, f"{value}\n")


def test_get_of_what_is_not_set(installation, file):
    ended = installation.qd("config", "get", "cockpit.theme")
    assert (ended.code, ended.out) == (1, "")
    assert "not set" in ended.err
    assert installation.qd("config", "get", "a b").code == 2


@pytest.mark.parametrize(
    ("name", "value", "path", "read"),
    [
        ("cockpit.theme", "light", ("cockpit", "theme"), "light"),
        ("cockpit.mouse", "false", ("cockpit", "mouse"), False),
        ("service.requests_per_minute", "600", ("service", "requests_per_minute"), 600),
        ("profiles.work.key", "12", ("profiles", "work", "key"), "12"),
        ("keys.replica.open", '["enter", "z"]', ("keys", "replica.open"), ["enter", "z"]),
        ("keys.replica.delete", "X", ("keys", "replica.delete"), "X"),
    ],
)
def test_set_changes_one_value_and_nothing_else(installation, file, name, value, path, read):
    ended = installation.qd("config", "set", name, value)
    assert ended.code == 0, ended.err
    wanted = tomllib.loads(FILE)
    table = wanted
    for part in path[:-1]:
        table = table.setdefault(part, {})
    table[path[-1]] = read
    assert tomllib.loads(file.read_text()) == wanted
    assert "# mine" in file.read_text() and "# not for others" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("cockpit.theme", "pink", "cockpit.theme"),
        ("cockpit.colour", "x", "cockpit.colour"),
        ("service.requests_per_minute", "many", "requests_per_minute"),
        ("profiles.work.socket", "/run/s", "one of url and socket"),
        ("keys.no.such", "x", "no.such"),
        ("default.x", "x", "default"),
        ("nothing", "x", "nothing"),
        ("profiles.", "x", "profiles."),
    ],
)
def test_set_refuses_what_would_be_wrong(installation, file, name, value, told):
    ended = installation.qd("config", "set", name, value)
    assert ended.code == 2 and told in ended.err
    assert file.read_text() == FILE


def editor(tmp_path, script):
    """An editor that changes the file as a script does."""
    program = tmp_path / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"VISUAL": str(program)}


def test_edit_keeps_what_is_right(installation, file, tmp_path):
    variables = editor(tmp_path, 'echo \'[cockpit]\ntheme = "ansi"\' >>"$1"')
    ended = installation.qd("config", "edit", **variables)
    assert ended.code == 0, ended.err
    assert tomllib.loads(file.read_text())["cockpit"] == {"theme": "ansi"}
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    same = installation.qd("config", "edit", **editor(tmp_path, "true"))
    assert same.code == 0 and "Unchanged" in same.err


def test_edit_does_not_put_what_is_wrong_into_force(installation, file, tmp_path):
    variables = editor(tmp_path, 'echo "[profiles.other]" >>"$1"')
    ended = installation.qd("config", "edit", **variables)
    assert ended.code == 2 and "profiles: other: give one of url" in ended.err
    assert file.read_text() == FILE
    kept = file.with_name("config.toml.edited")
    assert kept.read_text() == f"{FILE}[profiles.other]\n" and str(kept) in ended.err
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600  # it may hold keys


def test_edit_mends_a_file_that_cannot_be_read(installation, file, tmp_path):
    file.write_text("= 1")
    variables = editor(tmp_path, 'echo "default = 1" >"$1"')
    assert installation.qd("config", "edit", **variables).code == 2
    variables = editor(tmp_path, 'echo >"$1"')
    assert installation.qd("config", "edit", **variables).code == 0
    assert json.loads(installation.qd("config", "show", "--json").out) == {}
