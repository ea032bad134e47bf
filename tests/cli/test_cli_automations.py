"""`qd automation` against a real service, with real replicas."""

import json
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.git import git
from tests.support.waiting import pauses

NINE = ("--cron", "0 9 * * 1-5", "--timezone", "Europe/Berlin")
RUNS = "```sh\necho done\n```"
FAILS = "```sh\nexit 3\n```"


@pytest.fixture
def qd(deck):
    """Runs a verb that succeeds, and returns what it printed; automations go with the test."""

    def run(*arguments, stdin="", **variables):
        ended = deck.qd("automation", *arguments, stdin=stdin, **variables)
        assert ended.code == 0, ended.err
        return ended.out

    yield run
    for one in json.loads(run("ls", "--json"))["automations"]:
        run("rm", "--yes", one["id"])


@pytest.fixture
def refused(deck):
    """Runs a verb that does not succeed, and returns its code and what it said."""

    def run(*arguments, stdin="", **variables):
        ended = deck.qd("automation", *arguments, stdin=stdin, **variables)
        assert ended.code != 0 and ended.out == "", ended.out
        return ended.code, ended.err

    return run


def shell(command):
    """What a command prints that a person was told to type."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    return done.stdout


def wait_for_end(qd, name, run):
    """Waits until a run has ended."""
    for pause in pauses(0.1):
        found = json.loads(qd("runs", name, "--json"))["executions"]
        if any(one["id"] == run and one["completed_at"] for one in found):
            return
        time.sleep(pause)


def shown(qd, name):
    return json.loads(qd("show", name, "--json"))["automation"]


def test_a_name_that_is_taken_is_refused(qd, refused):
    first = qd("create", "triage", "--env", "global", "--prompt", "Look.").strip()
    qd("create", "triage-more", "--env", "global", "--prompt", "Look.")
    again = refused("create", "triage", "--env", "global", "--prompt", "Again.")
    assert "An automation has the name triage already." in again[1]
    assert "Choose another name." in again[1]
    assert "triage already" in refused("edit", "triage-more", "--name", "triage")[1]
    qd("edit", first, "--name", "triage", "--prompt", "The same name.")
    qd("edit", "triage-more", "--name", "triage-two")
    names = sorted(one["name"] for one in json.loads(qd("ls", "--json"))["automations"])
    assert names == ["triage", "triage-two"]


def test_one_from_options_is_listed_shown_switched_and_removed(qd, refused, deck):
    made = qd("create", "triage", *NINE, "--env", "global", "--prompt", "Look.", "--webhook")
    one = shown(qd, made.strip()[:8])
    assert (one["cron_expression"], one["cron_timezone"]) == ("0 9 * * 1-5", "Europe/Berlin")
    assert one["user_id"] is None and one["prompt"] == "Look."

    text = qd("show", "tri")
    coming = [line for line in text.splitlines() if line.startswith("coming")]
    assert len(coming) == 5
    assert all("09:00 Europe/Berlin, here " in line for line in coming)
    url = f"{deck.environment['QD_TEST_URL']}/v1/automations/webhook/{one['webhook_token']}"
    assert one["webhook_url"] == url
    assert f"webhook        POST {url}" in text
    assert "notice         No webhook reaches this service from another machine" in text
    assert "call it with" in text
    assert "trigger        cron 0 9 * * 1-5 Europe/Berlin" in text
    assert "environment    global" in text

    listed = qd("ls")
    assert "triage" in listed and "webhook" in listed
    assert one["webhook_token"] not in qd("ls", "--json")
    assert one["webhook_token"] in qd("ls", "--json", "--reveal")
    assert json.loads(qd("ls", "--json", "--trigger", "host-a"))["total"] == 0

    qd("disable", "triage")
    assert shown(qd, "triage")["cron_next_fire_at"] is None
    assert json.loads(qd("ls", "--json", "--enabled"))["total"] == 0
    assert "off; its schedule" in qd("show", "triage")
    switched = json.loads(qd("enable", "triage", "--json"))["automations"]
    assert switched[0]["cron_next_fire_at"] is not None

    assert refused("rm", "triage")[0] == 2
    qd("create", "tribune", "--env", "global", "--prompt", "x", "--personal")
    assert shown(qd, "tribune")["user_id"] is not None
    code, told = refused("show", "tri")
    assert code == 2 and "triage" in told and "tribune" in told
    qd("rm", "-y", "triage", "tribune")
    assert refused("show", "triage") == (
        1,
        "qd: There is no automation 'triage'.\n    See them with: qd automation ls.\n",
    )


def test_what_is_wrong_is_named(refused, tmp_path: Path):
    prompt = "prompt: required.\n    Give it with --prompt or --prompt-file, or in --file."
    assert prompt in refused("create", "x", "--env", "global")[1]
    whole = ("create", "x", "--env", "global", "--prompt", "p")
    code, told = refused(*whole, "--cron", "61 * * * *")
    assert code == 1 and "triggers.0.config.schedule" in told
    code, told = refused(*whole, "--cron", "* * * * *", "--timezone", "Mars/Olympus")
    assert code == 1 and "timezone" in told
    assert refused(*whole, "--prompt-file", "-")[0] == 2
    assert refused(*whole, "--on", "pull_request.dreamt")[0] == 2
    assert refused(*whole, "--on", "pull_request.opened", "--repository", "none")[0] == 1
    assert "environment 'nowhere'" in refused(*whole[:2], *whole[4:], "--env", "nowhere")[1]
    file = tmp_path / "a.toml"
    file.write_text('name = "x"\nprompts = "p"\n')
    code, told = refused("create", "--file", str(file))
    assert code == 2 and f"{file}: prompts: " in told and "prompt?" in told
    assert refused("create", "--file", str(tmp_path / "none"))[0] == 2
    assert refused("run", "x", "--payload", "{")[0] == 2
    assert refused("run", "x", "--pr", "shop")[0] == 2


@pytest.mark.long
def test_a_file_makes_one_and_changes_what_it_names(qd, refused):
    text = """
        name = "review"
        environment = "global"
        prompt = "Review it."
        debounce_seconds = 30
        workspace_size = "large"
        [config]
        skip_while_running = true
        [[triggers]]
        type = "host-a"
        config = { event = "pull_request.opened", repositories = ["shop"] }
    """
    qd("create", "--file", "-", "--model", "m", stdin=text)
    made = shown(qd, "review")
    (trigger,) = made["triggers"]
    assert len(trigger["config"]["repository_ids"]) == 1
    assert (made["model"], made["debounce_seconds"]) == ("m", 30)
    assert made["config"]["skip_while_running"] is True

    qd("edit", "review", "--file", "-", stdin='prompt = "Again."\nscope = "org"')
    qd("edit", "review", "--on", "merge_request.merged", "--clear", "model", "--stop-after", "9")
    qd("edit", "review", "--base", "release")
    assert shown(qd, "review")["config"]["base"] == "release"
    qd("edit", "review", "--base", "")
    qd("edit", "review", "--no-skip-while-running", "--name", "reviewer")
    after = shown(qd, "reviewer")
    kept = {name: made[name] for name in ("environment_id", "debounce_seconds", "workspace_size")}
    assert {name: after[name] for name in kept} == kept
    assert (after["prompt"], after["model"]) == ("Again.", None)
    assert after["workspace_auto_stop_minutes"] == 9
    assert after["config"]["skip_while_running"] is False
    assert after["config"].get("base") is None
    assert after["triggers"][0] == trigger and len(after["triggers"]) == 2
    qd("edit", "reviewer", "--without", "pull_request.opened")
    assert [one["type"] for one in shown(qd, "reviewer")["triggers"]] == ["host-b"]
    assert refused("edit", "reviewer", "--without", "cron")[0] == 2
    assert refused("edit", "reviewer", "--file", "-", stdin='scope = "user"')[0] == 2


def editor(tmp_path: Path, script: str) -> str:
    """A command that changes the text `t` of the file that it is given."""
    path = tmp_path / "editor.py"
    path.write_text(
        "import os, sys, pathlib\np = pathlib.Path(sys.argv[1])\nt = p.read_text()\n"
        f"{script}\np.write_text(t)\nos.utime(p, (1, 1))\n"
    )
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


@pytest.mark.long
def test_an_editor_sends_what_was_changed(qd, refused, deck, tmp_path: Path):
    qd("create", "nightly", *NINE, "--env", "global", "--prompt", "One\nTwo", "--model", "m")
    opened = editor(
        tmp_path,
        "t = t.replace('Two', 'Three').replace('model = \"m\"\\n', '')\n"
        "t = t.replace('# debounce_seconds = 0', 'debounce_seconds = 5')",
    )
    before = shown(qd, "nightly")
    qd("edit", "nightly", VISUAL=opened)
    after = shown(qd, "nightly")
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {"prompt", "model", "debounce_seconds", "updated_at"}
    assert (after["prompt"], after["model"]) == ("One\nThree", None)

    ended = deck.qd("automation", "edit", "nightly", VISUAL=editor(tmp_path, ""))
    assert (ended.code, ended.err) == (0, "No changes.\n")
    assert shown(qd, "nightly") == after

    broken = editor(tmp_path, "t = t.replace('0 9 ', '99 9 ')")
    code, told = refused("edit", "nightly", VISUAL=broken, TMPDIR=str(tmp_path))
    (kept,) = tmp_path.glob("qd-automation-*.toml")
    assert code == 1 and str(kept) in told and "99 9 " in kept.read_text()
    assert refused("edit", "nightly", VISUAL="false")[0] == 2


@pytest.mark.long
def test_every_setting_is_given_shown_and_cleared(qd, refused, tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("a secret of its own\n")
    limits = (
        "--max-minutes",
        "30",
        "--concurrency",
        "2",
        "--debounce",
        "5",
        "--debounce-max",
        "60",
    )
    pushes = ("--trust", "approved", "--on-new-event", "queue", "--retention-days", "7")
    event = ("--on", "pull_request.opened", "--repository", "shop")
    hook = ("--webhook", "--webhook-secret-file", str(secret))
    qd("create", "all", "--env", "global", "--prompt", "p", *limits, *pushes, *event, *hook)
    one = shown(qd, "all")
    assert (one["max_minutes"], one["concurrency"], one["debounce_max_seconds"]) == (30, 2, 60)
    assert (one["trust"], one["on_new_event"], one["retention_days"]) == ("approved", "queue", 7)
    assert one["webhook_signed"] is True

    more = """
        [[triggers]]
        type = "host-a"
        [triggers.config]
        event = "pull_request.opened"
        repositories = ["shop"]
        group_pr_events = true
        excluded_actors = ["robot"]
        check = false
        [[triggers]]
        type = "custom"
    """
    qd("edit", "all", "--file", "-", stdin=more)
    text = qd("show", "all")
    assert (
        "trigger        pull_request.opened; repositories: shop; not by robot; "
        "later events go to the same replica; no check"
    ) in text
    for line in (
        "max time       30 min",
        "at once        2 at most",
        "debounce max   60 seconds",
        "new push       waits for the earlier run",
        "trust          members and authors approved before",
        "kept           7 days",
        "signed         yes",
        "notice         host-a is not set up",
    ):
        assert line in text, line
    empty = ("max-minutes", "concurrency", "debounce-max", "webhook-secret")
    qd("edit", "all", *(word for name in empty for word in ("--clear", name)))
    cleared = shown(qd, "all")
    assert (cleared["max_minutes"], cleared["concurrency"]) == (None, None)
    assert (cleared["debounce_max_seconds"], cleared["webhook_signed"]) == (None, False)
    assert refused("edit", "all", "--concurrency", "0")[0] == 2


@pytest.mark.long
def test_the_line_that_calls_a_webhook_works(qd, refused, require_tool, tmp_path: Path):
    for tool in ("curl", "openssl"):
        require_tool(tool)
    secret = tmp_path / "secret"
    secret.write_text("a secret of its own\n")
    qd("create", "plain", "--env", "global", "--prompt", RUNS, "--webhook")
    hook = ("--webhook", "--webhook-secret-file", str(secret))
    qd("create", "signed", "--env", "global", "--prompt", RUNS, *hook)
    plain, signed = (
        next(line.removeprefix("call it with") for line in text.splitlines() if "curl" in line)
        for text in (qd("show", "plain"), qd("show", "signed"))
    )
    taken = {"accepted": True}
    assert json.loads(shell(plain)) == taken
    assert json.loads(shell(f"SECRET='a secret of its own'; {signed}")) == taken
    assert json.loads(shell(f"SECRET='another one'; {signed}"))["code"] == "NOT_FOUND"

    before = shown(qd, "plain")["webhook_token"]
    rotated = qd("rotate", "plain")
    assert before not in rotated and shown(qd, "plain")["webhook_token"] in rotated
    assert json.loads(shell(rotated)) == taken
    assert json.loads(shell(plain))["code"] == "NOT_FOUND"
    assert refused("rotate", "none")[0] == 1


@pytest.mark.long
def test_one_that_the_service_switched_off_is_not_failing(qd):
    qd("create", "broken", "--env", "global", "--prompt", FAILS)
    for _ in range(5):
        assert "broken" in qd("ls", "--enabled")
        run = json.loads(qd("run", "broken", "--json"))
        wait_for_end(qd, "broken", run["execution_id"])
    line = next(line for line in qd("ls").splitlines() if line.startswith("broken"))
    assert "switched off" in line and "failing" not in line
    qd("enable", "broken")
    qd("disable", "broken")
    line = next(line for line in qd("ls").splitlines() if line.startswith("broken"))
    assert line.split()[1] == "off"


@pytest.mark.long
def test_a_failing_block_fails_the_run_that_is_followed(qd, deck):
    qd("create", "broken", "--env", "global", "--prompt", FAILS)
    ended = deck.qd("automation", "run", "broken", "--follow")
    assert "The run has failed." in ended.err.splitlines()
    assert ended.code == 1 and "`exit 3` failed with exit code 3" in ended.err
    (run,) = json.loads(qd("runs", "broken", "--json"))["executions"]
    assert (run["status"], run["reason"]) == ("failed", None)
    assert "exit code 3" in run["error"]


@pytest.mark.long
def test_a_run_is_canceled(qd, refused):
    qd("create", "long", "--env", "global", "--prompt", "```sh\nsleep 600\n```")
    run = json.loads(qd("run", "long", "--json"))
    canceled = json.loads(qd("cancel", "long", run["execution_id"][:8], "--json"))["execution"]
    assert (canceled["status"], canceled["reason"]) == ("failed", "canceled")
    assert qd("runs", "long").splitlines()[1].split()[0] == "canceled"
    assert refused("cancel", "long", run["execution_id"])[0] == 1
    assert refused("approve", "long", run["execution_id"])[0] == 1


@pytest.mark.long
def test_a_run_for_a_pull_request_begins_at_its_head(qd, deck):
    head = git(deck.repository, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "From a fork")
    git(deck.repository, "update-ref", "refs/pull/7/head", head)
    prompt = "```sh\ntest $(git rev-parse HEAD) = " + head + "\n```"
    qd("create", "review", "--repo", str(deck.repository), "--prompt", prompt)
    ended = deck.qd("automation", "run", "review", "--pr", "shop#7", "--follow")
    assert ended.code == 0, ended.err


@pytest.mark.long
def test_a_run_is_followed_to_its_end_and_seen(qd, deck):
    qd("create", "hourly", "--env", "global", "--prompt", RUNS, "--disabled")
    ended = deck.qd("automation", "run", "hourly", "--payload", '{"n": null}', "--follow")
    assert ended.code == 0, ended.err
    assert ended.err.splitlines()[-1] == "The run is completed."
    lines = qd("run", "hourly", "--follow", "--json", "--payload", "@-", stdin="[1]").splitlines()
    told = [json.loads(line) for line in lines]
    assert [one["execution"]["status"] for one in told[1:]][-1] == "completed"
    assert told[1]["execution"]["id"] == told[0]["execution_id"]

    runs = json.loads(qd("runs", "hourly", "--json"))["executions"]
    assert [one["trigger_payload"] for one in runs] == [[1], {"n": None}]
    assert all(one["workspace_name"].startswith("hourly-") for one in runs)
    header, newest, _ = qd("runs", "hourly").splitlines()
    assert header.split() == ["STATUS", "TRIGGER", "BEGAN", "TOOK", "REPLICA", "CHECK", "ID", "WHY"]
    assert newest.split()[:2] == ["completed", "manual"] and runs[0]["workspace_name"] in newest
    deck.qd("replica", "rm", "--yes", runs[0]["workspace_id"])
    assert "gone" in qd("runs", "hourly", "--limit", "1")


@pytest.mark.long
def test_a_run_that_fails_ends_with_one_and_is_retried(qd, refused, deck):
    qd("create", "broken", "--env", "global", "--prompt", "```sh\nsleep 600\n```")
    assert refused("retry", "broken") == (1, "qd: No run of broken has failed.\n")
    following = deck.start("automation", "run", "broken", "--follow")
    assert following.stdout is not None and following.stderr is not None
    first = following.stdout.readline().strip()
    for line in following.stderr:
        if line == "The run is running.\n":
            break
    (run,) = json.loads(qd("runs", "broken", "--json"))["executions"]
    assert run["id"] == first
    assert deck.qd("replica", "rm", "--yes", run["workspace_id"]).code == 0
    _, told = following.communicate(timeout=60)
    assert following.returncode == 1 and "qd automation retry" in told

    qd("edit", "broken", "--prompt", RUNS)
    ended = deck.qd("automation", "retry", "broken", first[:8], "--follow")
    assert ended.code == 0, ended.err
    newest, failed = json.loads(qd("runs", "broken", "--json"))["executions"]
    assert (newest["retry_of"], newest["status"]) == (first, "completed")
    assert failed["error"] in qd("runs", "broken")
    assert refused("retry", "broken", ended.out.strip())[0] == 1


@pytest.mark.long
def test_without_an_environment_it_works_on_the_repository_that_is_named(qd, refused, deck):
    made = deck.repository
    qd("create", "here", "--prompt", "Look.", "--repo", str(made))
    environments = json.loads(deck.qd("env", "ls", "--json").out)["environments"]
    of = {one["id"]: one for one in environments}[shown(qd, "here")["environment_id"]]
    assert of["repository_id"] is not None
    code, said = refused("create", "x", "--prompt", "p", "--repo", str(made), "--env", "global")
    assert code == 2 and "one of --repo and an environment" in said
    before = deck.qd("env", "ls", "--json").out
    assert refused("create", "x", "--repo", str(made))[0] == 2  # no prompt: nothing was made
    assert deck.qd("env", "ls", "--json").out == before
