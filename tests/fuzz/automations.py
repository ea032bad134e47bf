"""Automations with a run, none of which does anything while requests are made."""

from tests.support.installation import Installation

DAY = 86_400


def automated(made: Installation, environment: str) -> dict[str, list[str]]:
    """Ids by the name of their parameter.

    A webhook's run waits for a day; the one whose token is known is not changed by its id.
    """
    changed, called = (_automation(made, environment, name) for name in ("changed", "called"))
    made.post(f"/v1/automations/webhook/{changed['webhook_token']}", {"n": 1}, 202)
    (run,) = made.get(f"/v1/automations/{changed['id']}/executions")["executions"]
    return {
        "automations id": [changed["id"]],
        "execution_id": [run["id"]],
        "token": [called["webhook_token"]],
    }


def _automation(made: Installation, environment: str, name: str) -> dict[str, str]:
    body = {
        "name": name,
        "prompt": "Wait.",
        "environment_id": environment,
        "triggers": [{"type": "custom"}],
        "debounce_seconds": DAY,
    }
    return made.post("/v1/automations", body, 201)["automation"]
