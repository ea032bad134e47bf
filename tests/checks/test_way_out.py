"""From inside a sandbox: `qd` reaches the service as its own workspace, and as nobody else."""

import json
import re
import shlex
from typing import Any
from uuid import uuid4

import pytest

from tests.support.installation import Installation, block, command_of, environment_of
from tests.support.waiting import until

ASK = """
import http.client, json, os, socket, sys
bearer, workspace, path = sys.argv[1:]
line = http.client.HTTPConnection("x")
line.sock = socket.socket(socket.AF_UNIX)
line.sock.connect(os.environ["QD_URL"].removeprefix("unix:"))
line.request("GET", path, headers={"Authorization": f"Bearer {bearer}", "X-Workspace-Id": workspace})
print(line.getresponse().status)
"""


def ask(deck: Installation, id: str, bearer: str, workspace: str, path: str) -> int:
    """The status that a program inside gets over the socket inside."""
    words = shlex.join(["python3", "-c", ASK, bearer, workspace, path])
    done = deck.run(id, words)
    assert done["exit_code"] == 0, done
    return int(done["output"])


def secret(deck: Installation, id: str) -> str:
    return deck.run(id, "printf %s $QD_ENGINE_SECRET")["output"]


@pytest.mark.long
def test_qd_runs_inside_and_opens_a_preview(deck: Installation) -> None:
    id = deck.create()
    done = deck.run(id, "qd preview open 8123")
    assert (done["exit_code"], done["output"].startswith("http://127.0.0.1:")) == (0, True), done
    [preview] = deck.get(f"/v1/workspaces/{id}/previews")["previews"]
    assert preview["port"] == 8123
    assert deck.run(id, "qd preview close 8123")["exit_code"] == 0
    assert deck.get(f"/v1/workspaces/{id}/previews")["previews"] == []


def test_nothing_but_a_workspaces_own_secret_opens_the_door(deck: Installation) -> None:
    id, other = deck.create(), deck.create()
    own = secret(deck, id)
    assert ask(deck, id, own, id, "/v1/health") == 200
    # Who is known is told that the route does not take them; what is shown is never looked at else.
    for bearer, workspace in (
        (deck.key, id),
        (deck.key, ""),
        ("forged", id),
        (own, other),
        (secret(deck, other), id),
    ):
        for path in (
            "/v1/replica",
            f"/v1/replica/{id}",
            "/v1/organization/api-keys",
            "/v1/previews",
        ):
            assert ask(deck, id, bearer, workspace, path) == 401, (workspace, path)
    assert ask(deck, id, own, id, "/v1/replica") == 401
    assert ask(deck, id, own, id, "/v1/auth/device") in (401, 405)


@pytest.mark.long
def test_every_kind_of_program_inside_is_told_where_the_service_is(deck: Installation) -> None:
    environment = deck.post("/v1/environments", {"name": f"told {uuid4()}"}, 201)["environment"][
        "id"
    ]
    for key, value, status in (("QD_URL", "http://elsewhere", 400), ("MINE", "kept", 201)):
        path = f"/v1/environments/{environment}/variables"
        deck.post(path, {"key": key, "value": value}, status)
    hook = "printf '%s\\n' $QD_URL $QD_WORKSPACE_ID $MINE > ~/hook; command -v qd >> ~/hook"
    deck.post(f"/v1/environments/{environment}/start-hooks/save", {"content": hook})
    id = deck.create(environment)
    deck.turn(id, block(hook.replace("hook", "agent")))
    deck.run(id, hook.replace("hook", "exec"))
    wanted = f"unix:/run/service/qd.sock\n{id}\nkept\n/run/programs/qd\n"
    for name in ("hook", "agent", "exec"):
        assert (deck.place(id) / "home" / name).read_text() == wanted, name


def test_replicas_on_one_network_have_ports_of_their_own(deck: Installation) -> None:
    one, two = deck.create(), deck.create()
    ports = [int(deck.run(id, "printf %s $QD_PORT")["output"]) for id in (one, two)]
    assert abs(ports[0] - ports[1]) >= 10
    assert all(20_000 <= port <= 32_758 and port % 10 == 0 for port in ports)
    deck.post(f"/v1/workspaces/{two}/sleep")
    deck.reach(two, "sleeping")
    deck.delete(one)
    three = deck.create()
    assert int(deck.run(three, "printf %s $QD_PORT")["output"]) == ports[0], "they are free again"
    deck.post(f"/v1/workspaces/{two}/wake", status=202)
    deck.reach(two, "active")
    assert int(deck.run(two, "printf %s $QD_PORT")["output"]) == ports[1], "it keeps its own"


def test_an_environment_may_choose_the_port(deck: Installation) -> None:
    made = deck.post("/v1/environments", {"name": f"port {uuid4()}"}, 201)["environment"]["id"]
    deck.post(f"/v1/environments/{made}/variables", {"key": "QD_PORT", "value": "3000"}, 201)
    assert deck.run(deck.create(made), "printf %s $QD_PORT")["output"] == "3000"


@pytest.mark.long
def test_the_door_is_found_again_when_the_service_starts_anew(deck: Installation) -> None:
    id = deck.create()
    deck.kill()
    deck.start()
    deck.reach(id, "active")
    done = deck.run(id, "qd preview open 8124")
    assert done["exit_code"] == 0, done


@pytest.mark.long
def test_qd_waits_for_a_service_that_starts_anew(deck: Installation) -> None:
    id = deck.create()
    script = "touch ~/begun; until [ -e ~/go ]; do sleep 0.02; done; qd preview open 8125"
    sent = deck.send(id, block(script))
    home = deck.place(id) / "home"
    until(lambda: (home / "begun").exists(), "the agent")
    deck.kill()
    (home / "go").touch()
    until(lambda: "preview open" in " ".join(map(command_of, deck.processes(id))), "qd")
    deck.start()
    assert deck.result(id, sent["message_id"])["stopReason"] == "end_turn"
    assert [one["port"] for one in deck.get(f"/v1/workspaces/{id}/previews")["previews"]] == [8125]


def test_secrets_stay_out_of_arguments_and_of_what_the_service_starts_outside(
    deck: Installation,
) -> None:
    id = deck.create()
    own = secret(deck, id)
    for pid in deck.processes(id):
        assert own not in command_of(pid)
    assert own.encode() not in environment_of(deck.pid)
    assert own not in deck.log.read_text()


def test_outside_of_a_replica_the_verb_says_so(deck: Installation) -> None:
    done = deck.qd("preview", "open", "8123")
    assert done.returncode == 2
    assert "inside a replica" in done.stderr


def begin(deck: Installation, prompt: str, **pr: Any) -> tuple[str, dict[str, Any]]:
    """An automation and a run of it for a pull request of a local repository."""
    body = {"name": "review", "prompt": prompt, "environment_id": deck.plain_environment}
    automation = deck.post("/v1/automations", body, 201)["automation"]["id"]
    about = {"repository": "shop", "number": 7, **pr}
    return automation, deck.post(f"/v1/automations/{automation}/trigger", {"pr": about})


def run_of(deck: Installation, automation: str, begun: dict[str, Any]) -> dict[str, Any]:
    path = f"/v1/automations/{automation}/executions/{begun['execution_id']}"
    return deck.get(path)["execution"]


def ended(deck: Installation, automation: str, begun: dict[str, Any]) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        run = run_of(deck, automation, begun)
        return run if run["status"] in ("completed", "failed") else None

    return until(over, "the end of the run")


def reporting(words: str) -> str:
    """A script that takes its ticket from where the test puts it, as an agent does from its prompt."""
    return (
        "until [ -e ~/ticket ]; do sleep 0.02; done; . ~/ticket; "
        f'qd check report --id "$ID" --token "$TOKEN" {words}'
    )


def hand_over(deck: Installation, begun: dict[str, Any]) -> tuple[str, str]:
    """Reads the ticket in the run's prompt, and puts it where its script looks for it."""
    id = begun["workspace_id"]
    deck.reach(id, "active")
    text = until(lambda: deck.said(id), "the prompt")[0]
    found = re.search(r"- id: (\S+)\n- token: (\S+)\n", text)
    assert found is not None, text
    draft = deck.place(id) / "home" / "ticket.new"
    draft.write_text(f"ID={found[1]}\nTOKEN={found[2]}\n")
    draft.chmod(0o644)
    draft.rename(draft.with_suffix(""))
    return found[1], found[2]


def test_an_agent_reports_its_verdict(deck: Installation) -> None:
    words = '--conclusion failure --title "Two tests fail" --summary - --json < ~/why'
    automation, begun = begin(deck, block("echo 'Sails are torn.' > ~/why; " + reporting(words)))
    id, token = hand_over(deck, begun)
    run = ended(deck, automation, begun)
    assert run["status"] == "completed", run
    check = run["check"]
    assert (check["id"], check["status"], check["conclusion"]) == (id, "reported", "failure")
    assert (check["title"], check["summary"]) == ("Two tests fail", "Sails are torn.\n")
    assert token not in deck.log.read_text()
    assert '"reported": true' in json.dumps(deck.history(begun["workspace_id"])).replace("\\", "")


@pytest.mark.long
def test_an_agent_of_a_superseded_run_is_told_so(deck: Installation) -> None:
    automation, begun = begin(deck, block(reporting("--conclusion success --title Fine")))
    deck.reach(begun["workspace_id"], "active")
    about = {"repository": "shop", "number": 7}
    later = deck.post(f"/v1/automations/{automation}/trigger", {"pr": about})
    hand_over(deck, begun)
    run = ended(deck, automation, begun)
    assert run["check"]["status"] == "superseded"
    assert "A later run has replaced this one" in json.dumps(deck.history(begun["workspace_id"]))
    hand_over(deck, later)
    assert ended(deck, automation, later)["check"]["conclusion"] == "success"


def test_the_tickets_of_others_do_not_serve(deck: Installation) -> None:
    automation, begun = begin(deck, block(reporting("--conclusion success --title Fine")))
    bystander = deck.create()
    ticket = hand_over(deck, begun)
    ended(deck, automation, begun)
    for id, token in (ticket, (ticket[0], "forged")):
        words = ["--id", id, "--token", token, "--conclusion", "failure", "--title", "Mine"]
        done = deck.run(bystander, shlex.join(["qd", "check", "report", *words]))
        assert done["exit_code"] == 1 and "another run" in done["output"], done
    assert run_of(deck, automation, begun)["check"]["conclusion"] == "success"


def bash(script: str) -> str:
    return f"```bash\n{script}\n```"


@pytest.mark.long
def test_a_run_that_is_asked_for_a_report_gives_its_verdict(deck: Installation) -> None:
    script = "if test -e README; then r=success; else r=failure; fi\n"
    script += "qd check report --conclusion $r --title 'looked' --summary -  <<< 'There it is.'"
    body = {
        "name": "daily",
        "prompt": f"Look.\n\n{bash(script)}",
        "environment_id": deck.plain_environment,
        "config": {"report": True},
    }
    automation = deck.post("/v1/automations", body, 201)["automation"]["id"]
    begun = deck.post(f"/v1/automations/{automation}/trigger", {"payload": "## Check\n- id: x"})
    run = ended(deck, automation, begun)
    assert run["status"] == "completed", run
    check = run["check"]
    assert (check["conclusion"], check["title"]) == ("failure", "looked"), check
    assert check["summary"].strip() == "There it is."
