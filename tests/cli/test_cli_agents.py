"""`qd agents` tells what there is and installs what is on npm; own agents come from the file."""

from pathlib import Path

import pytest

from quarterdeck.cli.cockpit import LocalMachine
from quarterdeck.cli.target import embedded_target
from tests.cli import conftest
from tests.cli.conftest import serving
from tests.support.disks import small_disk

ROBOT = """
[agents.robot]
name = "Robot"
command = ["robot", "--acp"]
keys = ["ROBOT_KEY"]
"""

NPM = """#!/bin/sh
if [ "$1" = prefix ]; then echo "$NPM_PREFIX"; exit; fi
echo "npm was told: $*"
[ -z "$NPM_FAILS" ] || { echo "npm ERR! 404" >&2; exit 1; }
prefix=$NPM_PREFIX
if [ -n "$NPM_FILLS" ]; then  # npm takes back what it began, and keeps its cache
    cat /dev/zero >"$prefix/cache" 2>/dev/null
    echo "npm error nospc ENOSPC: no space left on device, write" >&2
    exit 228
fi
[ "$5" != --prefix ] || prefix=$6
package=$prefix/lib/node_modules/$NPM_PACKAGE
mkdir -p "$package/bin" "$prefix/bin"
echo '{"version": "1.2.3"}' >"$package/package.json"
printf '#!/bin/sh\\n' >"$package/bin/run.js"
chmod 755 "$package/bin/run.js"
[ -n "$NPM_FORGETS" ] || ln -sf "$package/bin/run.js" "$prefix/bin/gemini"
"""


@pytest.fixture
def npm(tmp_path: Path) -> dict[str, str]:
    """Variables for a machine with an npm that does as it is told, and nothing else of interest."""
    programs = tmp_path / "programs"
    programs.mkdir()
    program = programs / "npm"
    program.write_text(NPM)
    program.chmod(0o755)
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    return {
        "PATH": f"{prefix}/bin:{programs}:/usr/bin:/bin",
        "NPM_PREFIX": str(prefix),
        "NPM_PACKAGE": "@google/gemini-cli",
    }


def by_id(ended) -> dict[str, dict]:
    return {agent["id"]: agent for agent in ended.json["agents"]}


def write(installation, text: str) -> None:
    installation.home.mkdir(exist_ok=True)
    (installation.home / "config.toml").write_text(text)


def test_without_a_service_this_machine_is_looked_at(installation, tmp_path):
    ended = installation.qd("agents", "--json", PATH=str(tmp_path))
    assert ended.code == 0, ended.err
    assert "No service is running" in ended.err
    assert list(by_id(ended)) == ["codex", "claude", "opencode", "copilot", "gemini", "builtin"]
    gemini = by_id(ended)["gemini"]
    assert gemini["install"] == "qd agents install gemini"
    assert not gemini["available"] and not gemini["installed"]
    assert not installation.home.exists()  # it only looks
    plain = installation.qd("agents", PATH=str(tmp_path)).out
    assert plain.splitlines()[0].split() == ["AGENT", "NAME", "VERSION", "ACCESS", "STATE"]
    assert "qd agents install gemini" in plain


def test_an_agent_is_installed_into_the_persons_prefix(installation, npm):
    ended = installation.qd("agents", "install", "gemini", "--json", **npm)
    assert ended.code == 0, ended.err
    assert ended.json["version"] == "1.2.3"
    # The version that was tested, and no scripts of packages.
    told = "npm install --global --no-audit --no-fund --ignore-scripts @google/gemini-cli@0.61.0"
    assert told in ended.err
    assert "npm was told: install --global" in ended.err  # what npm says is seen
    assert "qd credentials set gemini" in ended.err
    assert (Path(npm["NPM_PREFIX"]) / "bin/gemini").exists()


@pytest.mark.parametrize("mask", [0, 0o077])
@pytest.mark.parametrize("why", ["not on the PATH", "not writable"])
def test_where_that_cannot_be_it_goes_to_a_directory_of_our_own(
    installation, npm, why, mask, tmp_path, monkeypatch
):
    wrapped = f'umask {mask:o}; exec "$@"'
    monkeypatch.setattr(conftest, "PROGRAM", ("sh", "-c", wrapped, "sh", *conftest.PROGRAM))
    if why == "not on the PATH":
        npm["NPM_PREFIX"] = str(tmp_path / "elsewhere")
    else:
        (Path(npm["NPM_PREFIX"]) / "lib").write_text("a file is no directory")
    ended = installation.qd("agents", "install", "gemini@1.2.3", "--json", **npm)
    assert ended.code == 0, ended.err
    assert why in ended.err
    assert "@google/gemini-cli@1.2.3" in ended.err
    assert (installation.home / "agents/bin/gemini").exists()
    assert installation.home.stat().st_mode & 0o077 == 0
    for path in (installation.home / "agents").rglob("*"):
        assert path.is_symlink() or path.stat().st_mode & 0o777 in (0o755, 0o644), path
    found = by_id(installation.qd("agents", "--json", **npm))["gemini"]
    assert (found["installed"], found["version"]) == (True, "1.2.3")


@pytest.mark.parametrize(
    "version", ["file:/tmp/x", "../x", "https://127.0.0.1/x.tgz", "npm:other@1", "-g", "1 other"]
)
def test_a_version_names_no_other_package(installation, npm, version):
    for verb in (("agents", "install", f"gemini@{version}"),
                 ("image", "build", "--agents", f"gemini@{version}")):  # fmt: skip
        ended = installation.qd(*verb, **npm)
        assert (ended.code, "is not a version" in ended.err) == (2, True), ended.err
        assert "npm install" not in ended.err


def test_another_version_that_comes_first_on_the_path_is_named(installation, npm, tmp_path):
    package = tmp_path / "old/lib/node_modules/@google/gemini-cli"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "1.0.0"}')
    program = package / "gemini"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    npm["PATH"] = f"{package}:{npm['PATH']}"
    ended = installation.qd("agents", "install", "gemini@1.2.3", "--json", **npm)
    assert ended.code == 0, ended.err
    places = f"{package} comes before {npm['NPM_PREFIX']}/bin on the PATH"
    assert f"Gemini 1.2.3 is installed: {npm['NPM_PREFIX']}/bin/gemini." in ended.err
    assert f"Replicas use Gemini 1.0.0, {program}, because {places}." in ended.err
    assert ended.json["version"] == "1.0.0"


@pytest.mark.long
def test_a_full_disk_is_said_plainly(installation, npm, require_tool):
    prefix = Path(npm["NPM_PREFIX"])
    with small_disk(prefix, 16, require_tool):
        assert installation.qd("agents", "install", "gemini", **npm).code == 0
        ended = installation.qd("agents", "install", "gemini", NPM_FILLS="1", **npm)
        assert ended.code == 1
        assert f"npm: exit status 228. Only 0 MB are free at {prefix}/bin." in ended.err
        assert "Make room there, and try again." in ended.err
        found = by_id(installation.qd("agents", "--json", **npm))["gemini"]
        assert (found["installed"], found["version"]) == (True, "1.2.3")
        (prefix / "cache").unlink()
        assert installation.qd("agents", "install", "gemini", **npm).code == 0


def test_the_version_is_that_of_the_agent_not_of_what_runs_it(installation, tmp_path):
    node = tmp_path / "node"
    node.write_text('#!/bin/sh\n[ "$1" != --version ] || echo v24.1.0\necho "script $*" 9.9.9\n')
    node.chmod(0o755)
    package = tmp_path / "node_modules/qwen"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"version": "0.24.4"}')
    packaged, plain = package / "cli.js", tmp_path / "plain.js"
    packaged.touch()
    plain.touch()
    table = '[agents.{}]\nname = "Own"\ncommand = ["node", "{}", "--acp"]\n'
    asked = 'version_arguments = ["--version"]\n'
    write(
        installation,
        table.format("packaged", packaged)
        + table.format("plain", plain)
        + asked
        + table.format("unknown", plain),
    )
    found = by_id(installation.qd("agents", "--json", PATH=f"{tmp_path}:/usr/bin:/bin"))
    versions = {id: found[id]["version"] for id in ("packaged", "plain", "unknown")}
    assert versions == {"packaged": "0.24.4", "plain": "9.9.9", "unknown": None}


@pytest.mark.parametrize(
    ("agent", "variables", "code", "said"),
    [
        ("hal", {}, 2, "There is no agent 'hal'"),
        ("builtin", {}, 2, "nothing to install"),
        ("robot", {}, 2, "does not know how to install Robot"),
        ("gemini", {"NPM_FAILS": "1"}, 1, "npm: exit status 1"),
        ("gemini", {"NPM_FORGETS": "1"}, 1, "Gemini is not found"),
        ("gemini", {"NPM_PREFIX": "nowhere"}, 1, "did not report its install directory"),
        ("gemini", {"PATH": "/nonexistent"}, 1, "npm is not installed"),
    ],
)
def test_what_goes_wrong_is_said_plainly(installation, npm, agent, variables, code, said):
    write(installation, ROBOT)
    ended = installation.qd("agents", "install", agent, **npm | variables)
    assert ended.code == code, ended.err
    assert said in ended.err
    assert "Traceback" not in ended.err


def test_an_own_agent_is_told_with_the_others(installation, tmp_path):
    write(installation, ROBOT)
    found = by_id(installation.qd("agents", "--json", PATH=str(tmp_path)))
    assert found["robot"]["reason"] == "Not installed: robot is not on the PATH."
    program = tmp_path / "robot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    found = by_id(installation.qd("agents", "--json", PATH=str(tmp_path)))
    assert found["robot"]["installed"]
    assert "qd credentials set robot" in found["robot"]["reason"]
    checks = {
        check["name"]: check
        for check in installation.qd("doctor", "--json", PATH=str(tmp_path)).json["checks"]
    }
    assert checks["agent robot"]["level"] == "warn"
    assert "qd credentials set robot" in checks["agent robot"]["next_step"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[agents.codex]\nname = "Mine"\ncommand = ["mine"]', "codex is the name of an agent"),
        ('[agents.user]\nname = "Mine"\ncommand = ["mine"]', "user cannot be the name"),
        ('[agents."A b"]\nname = "Mine"\ncommand = ["mine"]', "agents.A b"),
        ('[agents.mine]\ncommand = ["mine"]', "agents.mine.name"),
        ('[agents.mine]\nname = "Mine"\ncommand = []', "agents.mine.command"),
        ('[agents.mine]\nname = "Mine"\ncommand = ["bin/mine"]', "an absolute path"),
        ('[agents.mine]\nname = "Mine"\ncommand = ["{python}"]', "is not an executable file"),
        ('[agents.mine]\nname = "Mine"\ncommand = ["mine"]\nkeys = ["a b"]', "agents.mine.keys"),
        ('[agents.mine]\nname = "Mine"\ncommand = ["mine"]\nshown = ["~/"]', "home directory"),
        ('[agents.mine]\nname = "Mine"\ncommand = ["mine"]\nshown = ["x"]', "an absolute path"),
        ('[agents.mine]\nname = "Mine"\ncommand = ["mine"]\ncolour = "red"', "mine.colour"),
    ],
)
def test_a_wrong_table_is_named(installation, table, said):
    write(installation, table)
    for verb in (["agents"], ["serve"], ["doctor"]):
        ended = installation.qd(*verb)
        assert ended.code == 2, ended.err
        assert said in ended.err
        assert "config.toml" in ended.err


def test_doctor_names_it_also_when_a_service_elsewhere_is_meant(installation):
    write(installation, '[agents.mine]\ncommand = ["mine"]')
    ended = installation.qd("doctor", "--json", QD_URL="http://127.0.0.1:9", QD_API_KEY="k")
    (found,) = (check for check in ended.json["checks"] if check["name"] == "agents")
    assert found["level"] == "fail"
    assert "agents.mine.name" in found["message"]


def test_a_new_automation_gets_the_first_agent_that_is_ready(installation, tmp_path):
    program = tmp_path / "robot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    write(installation, ROBOT.replace('keys = ["ROBOT_KEY"]\n', ""))
    installation.environment["PATH"] = f"{tmp_path}:/usr/bin:/bin"
    create = ("automation", "create", "--json", "--env", "global", "--prompt", "Tidy up.")
    with serving(installation):
        made = [
            installation.qd(*create, "nightly"),
            installation.qd(*create, "hourly", "--agent", "builtin"),
        ]
    agents = [ended.json["automation"]["agent_provider"] for ended in made]
    assert agents == ["robot", "builtin"]


async def test_the_cockpit_runs_nothing_of_the_directory_that_it_was_started_in(
    installation, npm, tmp_path, monkeypatch
):
    mark = tmp_path / "mark"
    checkout = tmp_path / "checkout"
    (checkout / "quarterdeck").mkdir(parents=True)
    (checkout / "quarterdeck/__init__.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.chdir(checkout)
    for name, value in (installation.environment | npm).items():
        monkeypatch.setenv(name, value)
    told: list[str] = []
    await LocalMachine(embedded_target()).install("gemini", told.append)
    assert not mark.exists()
    assert any("is installed:" in line for line in told), told
