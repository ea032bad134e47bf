"""`qd env`, `qd credentials` and `qd repo` against a real service."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quarterdeck.cli.env.parts import read_dotenv
from quarterdeck.cli.errors import UsageError
from quarterdeck.cli.output import local_time
from tests.support.git import git

MASK = "********"


@pytest.fixture
def qd(service):
    """Runs a verb that succeeds, and returns what it printed."""

    def run(*arguments, stdin=""):
        ended = service.qd(*arguments, stdin=stdin)
        assert ended.code == 0, ended.err
        return ended.out

    return run


@pytest.fixture
def refused(service):
    """Runs a verb that does not succeed, and returns its code and what it said."""

    def run(*arguments, stdin=""):
        ended = service.qd(*arguments, stdin=stdin)
        assert ended.code != 0 and ended.out == ""
        return ended.code, ended.err

    return run


def test_an_environment_from_the_command_line(qd, refused):
    made = qd("env", "create", "web", "--description", "d", "--system-prompt", "-", stdin="Brief.")
    mine = json.loads(qd("env", "create", "mine", "--source", "web", "--json"))["environment"]
    assert mine["source_environment_id"] == made.strip() and mine["system_prompt"] == "Brief."
    names = [one["name"] for one in json.loads(qd("env", "ls", "--json"))["environments"]]
    assert names == ["global", "mine", "web"]
    scoped = json.loads(qd("env", "ls", "--scope", "user", "--json"))["environments"]
    assert [one["name"] for one in scoped] == ["mine"]

    changed = json.loads(
        qd("env", "edit", "web", "--name", "www", "--clear", "description", "--json")
    )
    assert changed["environment"]["name"] == "www"
    assert changed["environment"]["description"] is None
    assert refused("env", "edit", "www")[0] == 2
    assert refused("env", "edit", "global", "--name", "x")[0] == 1
    assert refused("env", "show", "web") == (
        1,
        "qd: There is no environment 'web'.\n    See them with: qd env ls.\n",
    )

    assert refused("env", "rm", "www")[0] == 2
    assert "source" in refused("env", "rm", "-y", "www")[1]
    qd("env", "rm", "-y", "mine", "www")
    assert len(json.loads(qd("env", "ls", "--json"))["environments"]) == 1


def test_an_empty_input_replaces_nothing_unless_it_is_allowed(qd, refused):
    qd("env", "create", "web")
    saves = {
        ("hooks", "save", "web", "start"): ("hooks", "show", "web", "start"),
        ("files", "put", "web", "~/a"): ("files", "cat", "web", "~/a"),
        ("variables", "set", "web", "A"): ("variables", "ls", "web", "--reveal"),
    }
    for save, show in saves.items():
        qd("env", *save, stdin="kept\n")
        before = qd("env", *show)
        assert "kept" in before
        code, said = refused("env", *save, stdin="")
        assert code == 2 and "The input is empty; nothing was changed." in said
        assert "--empty" in said and qd("env", *show) == before
        qd("env", *save, "--empty", stdin="")
        assert "kept" not in qd("env", *show)
    qd("env", "edit", "web", "--system-prompt", "kept")
    code, said = refused("env", "edit", "web", "--system-prompt", "-", stdin="")
    assert code == 2 and "--clear" in said and "kept" in qd("env", "show", "web")


@pytest.mark.long
def test_parts_from_the_command_line(qd, refused, tmp_path):
    qd("env", "create", "web")
    dotenv = tmp_path / ".env"
    dotenv.write_text("A=1\nexport B='two words'\n")
    qd("env", "variables", "import", "web", str(dotenv))
    qd("env", "variables", "set", "web", "TOKEN", "--override", stdin="s3cret\n")
    qd("env", "variables", "set", "web", "A", stdin="2")
    hidden = json.loads(qd("env", "variables", "ls", "web", "--json"))["environment_variables"]
    assert {one["key"]: one["value"] for one in hidden} == {"A": MASK, "B": MASK, "TOKEN": MASK}
    shown = json.loads(qd("env", "variables", "ls", "web", "--reveal", "--json"))
    assert {one["key"]: one["value"] for one in shown["environment_variables"]} == {
        "A": "2",
        "B": "two words",
        "TOKEN": "s3cret",
    }
    allowed = [one["personal_override_allowed"] for one in shown["environment_variables"]]
    assert allowed == [False, False, True]
    pair = refused("env", "variables", "set", "web", "B=s3cret", stdin="")
    assert pair[0] == 2 and "Give the key alone" in pair[1] and "s3cret" not in pair[1]
    assert "nothing was removed" in refused("env", "variables", "rm", "web", "A", "NO")[1]
    qd("env", "variables", "rm", "web", "A")

    qd("env", "files", "put", "web", "~/a/b", stdin="one\n")
    unquoted = str(Path("~/a/b").expanduser())
    qd("env", "files", "put", "web", unquoted, "--from", str(dotenv))
    assert qd("env", "files", "cat", "web", "~/a/b") == dotenv.read_text()
    assert refused("env", "files", "put", "web", "/etc/x", stdin="x")[0] == 2
    assert refused("env", "files", "cat", "web", "~/none")[0] == 1

    config = {"command": "x", "args": [], "env": {"T": "s3cret"}}
    qd("env", "mcp", "set", "web", "m", "stdio", stdin=json.dumps(config))
    assert "s3cret" not in qd("env", "mcp", "ls", "web")
    assert "s3cret" in qd("env", "mcp", "ls", "web", "--reveal", "--json")
    assert refused("env", "mcp", "set", "web", "m", "http", stdin=json.dumps(config))[0] == 2
    assert refused("env", "mcp", "set", "web", "m", "http", stdin="[]")[0] == 2

    for kind in ("warm", "start"):
        qd("env", "hooks", "save", "web", kind, stdin=f"echo {kind}\n")
        assert qd("env", "hooks", "show", "web", kind) == f"echo {kind}\n"
    qd("env", "hooks", "save", "web", "start", "--empty", stdin="")
    assert json.loads(qd("env", "hooks", "show", "web", "start", "--json")) == {"start_hook": None}

    source = f"{tmp_path}#tools/pdf"
    qd("env", "skills", "add", "web", source)
    assert "pdf" in qd("env", "skills", "ls", "web")
    whole = json.loads(qd("env", "show", "web", "--json"))
    assert [one["slug"] for one in whole["environment_skills"]] == ["pdf"]
    assert "s3cret" not in json.dumps(whole)
    text = qd("env", "show", "web")
    for line in ("TOKEN=********", "~/a/b", f"pdf from {source}", "m stdio x"):
        assert line in text
    for kind, name in (("files", "~/a/b"), ("mcp", "m"), ("skills", "pdf")):
        qd("env", kind, "rm", "web", name)
        assert refused("env", kind, "rm", "web", name)[0] == 1


@pytest.mark.long
def test_keys_of_providers_from_the_command_line(service, qd, refused):
    key = "sk-1234567890-abcdefgh"
    ended = service.qd("credentials", "set", "gemini", "--organization", stdin=f"{key}\n")
    assert ended.code == 0 and "The organization's key" in ended.err
    qd("credentials", "set", "gemini", stdin=f"mine{key}")

    def shown(*which):
        told = qd("credentials", "ls", "gemini", *which, "--json")
        return json.loads(told)["credentials"]["gemini"].get("apiKey")

    assert shown("--organization") == "sk-1********efgh"
    assert shown() == shown("--mine") == "mine********efgh"
    assert "gemini" in qd("credentials", "ls")
    qd("credentials", "rm", "gemini", "--mine")
    assert refused("credentials", "rm", "gemini", "--mine")[0] == 1
    assert shown() is None
    assert refused("credentials", "set", "gemini", stdin="")[0] == 2


@pytest.mark.long
def test_repositories_and_sets_from_the_command_line(qd, refused, tmp_path: Path):
    for name in ("one", "two"):
        subprocess.run(["git", "init", "-qb", "main", str(tmp_path / name)], check=True)
        qd("repo", "add", str(tmp_path / name))
    qd("repo", "sets", "create", "all", "two", "one")
    (group,) = json.loads(qd("repo", "sets", "ls", "--json"))["repository_sets"]
    known = {
        one["id"]: one["name"] for one in json.loads(qd("repo", "ls", "--json"))["repositories"]
    }
    assert [known[id] for id in group["repositories"]] == ["two", "one"]
    assert "two, one" in qd("repo", "sets", "ls")
    made = json.loads(qd("env", "create", "web", "--set", "all", "--json"))["environment"]
    assert made["repository_set_id"] == group["id"]
    assert "environments: web" in refused("repo", "sets", "rm", "all")[1]
    changed = json.loads(qd("env", "edit", "web", "--repository", "one", "--json"))
    assert changed["environment"]["repository_set_id"] is None
    qd("repo", "sets", "rm", "all")
    assert "environments: web" in refused("repo", "rm", "one")[1]
    qd("repo", "rm", "two")
    names = [one["name"] for one in json.loads(qd("repo", "ls", "--json"))["repositories"]]
    assert names == ["one"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("# only\n\n", {}),
        ("A=1", {"A": "1"}),
        ("A = 1 \r\nB=\n", {"A": "1", "B": ""}),
        ("export A=a b # c", {"A": "a b"}),
        ("A=a#b", {"A": "a#b"}),
        ("A='$B \\n' # c", {"A": "$B \\n"}),
        ('A="x\\ny\\"z" # c', {"A": 'x\ny"z'}),
        ('A="two\nlines"\nB=1', {"A": "two\nlines", "B": "1"}),
        ("A='two\nlines'\nB=1", {"A": "two\nlines", "B": "1"}),
        ("A=1\nA=2", {"A": "2"}),
        ("\ufeffA=1", {"A": "1"}),
        ("A='a\u2028b'", {"A": "a\u2028b"}),
        ('A="\\`"', {"A": "`"}),
    ],
)
def test_reading_dotenv(text, found):
    assert read_dotenv(text) == found


@pytest.mark.parametrize(
    ("text", "line"),
    [("A", 1), ("A=1\n1A=2", 2), ("\n=x", 2), ('A="x', 1), ("A='x' y", 1), ("HOME=/", 1)],
)
def test_what_is_no_dotenv(text, line):
    with pytest.raises(UsageError, match=rf"ine {line}\b"):
        read_dotenv(text)


@pytest.mark.long
def test_show_names_what_an_environment_is_bound_to(qd, tmp_path):
    for name in ("shop", "till"):
        repository = tmp_path / name
        repository.mkdir()
        git(repository, "init", "-q")
        git(repository, "commit", "-q", "--allow-empty", "-m", "Start")
        qd("repo", "add", str(repository))
    qd("repo", "sets", "create", "both", "shop", "till")
    qd("env", "create", "one", "--repository", "shop")
    qd("env", "create", "several", "--set", "both")
    qd("env", "create", "own", "--source", "one")
    assert "repository     shop\n" in qd("env", "show", "one")
    assert "set            both\n" in qd("env", "show", "several")
    own = qd("env", "show", "own")
    assert "source         one\n" in own and "repository     shop\n" in own
    bound = json.loads(qd("env", "show", "one", "--json"))["environment"]
    assert bound["repository_id"] and "repository" not in bound


def test_times_are_local_and_short():
    now = datetime(2026, 3, 2, 14, 3, tzinfo=UTC)
    assert local_time(now, now) == f"{now.astimezone():%H:%M}"
    earlier = now - timedelta(days=30)
    assert local_time(earlier, now) == f"{earlier.astimezone():%d %b %H:%M}"
    before = now - timedelta(days=800)
    assert local_time(before, now) == f"{before.astimezone():%Y-%m-%d %H:%M}"
