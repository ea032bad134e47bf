"""`qd doctor` names what does not work, and what to do."""

import pytest

from quarterdeck.cli.doctor import check_home
from quarterdeck.cli.findings import Level
from quarterdeck.local.home import Home


def by_name(report):
    return {check["name"]: check for check in report["checks"]}


def test_a_machine_that_can_do_it(installation, require_tool):
    require_tool("bwrap")
    ended = installation.qd("doctor", "--json", TERM="xterm", LANG="C.UTF-8", COLORTERM="truecolor")
    checks = by_name(ended.json)
    assert ended.code == 0, ended.err
    assert not installation.home.exists()  # it only looks
    assert checks["isolation"]["message"] == "bubblewrap"
    assert checks["sandbox user"]["message"]
    assert checks["agent builtin"]["level"] == "ok"
    for name in ("python", "git", "bwrap", "disk", "service", "socket", "key", "TERM", "COLORTERM"):
        assert checks[name]["level"] == "ok", name
    plain = installation.qd("doctor").out
    assert all(line[:4].strip() in {"ok", "warn", "fail", ""} for line in plain.splitlines())


def test_missing_programs_and_a_poor_terminal_are_named(installation, tmp_path):
    empty = tmp_path / "bin"
    empty.mkdir()
    ended = installation.qd(
        "doctor", "--json", PATH=str(empty), TERM="dumb", LC_ALL="C", COLORTERM=""
    )
    checks = by_name(ended.json)
    assert ended.code == 1
    assert checks["git"]["level"] == "fail" and checks["git"]["next_step"]
    assert checks["bwrap"]["level"] == "warn"
    assert checks["TERM"]["level"] == "warn"
    assert "git" in ended.err


def test_a_service_elsewhere_is_asked(installation):
    ended = installation.qd("doctor", "--json", QD_URL="http://127.0.0.1:9", QD_API_KEY="k")
    assert ended.code == 1
    assert by_name(ended.json)["service"]["level"] == "fail"


@pytest.mark.parametrize("mode", [0o777, 0o755, 0o700])
def test_an_open_home_is_told(tmp_path, mode):
    tmp_path.chmod(mode)
    first = next(iter(check_home(Home(tmp_path))))
    assert (first.level is Level.OK) == (mode == 0o700)
