"""`qd replica permissions`, and the rules of an environment."""

import json

import pytest


@pytest.fixture
def qd(service):
    """Runs a verb that succeeds, and returns what it printed."""

    def run(*arguments: str) -> str:
        ended = service.qd(*arguments)
        assert ended.code == 0, ended.err
        return ended.out

    return run


def rules(answer: str) -> list[str]:
    return [f"{one['action']} {one['pattern']}" for one in json.loads(answer)["rules"]]


def test_the_policy_of_a_replica(qd, service) -> None:
    qd("env", "create", "careful", "--permissions", "edits", "--reject", "git push")
    qd("replica", "create", "--name", "judged", "--env", "careful")
    assert qd("replica", "permissions", "judged") == (
        "policy   edits (of the environment)\nRULE    PATTERN   OF\nreject  git push  environment\n"
    )
    added = ("--allow", "git status *", "--allow", "make", "--reject", "rm")
    changed = qd("replica", "permissions", "judged", "--policy", "all", *added, "--json")
    assert rules(changed) == ["allow git status *", "allow make", "reject rm"]
    assert json.loads(changed)["effective"]["policy"] == "all"
    removed = ("--remove-rule", "make", "--remove-rule", "rm", "--remove-rule", "git push")
    changed = qd("replica", "permissions", "judged", "--policy", "environment", *removed)
    assert changed == (
        "policy   edits (of the environment)\n"
        "RULE    PATTERN       OF\n"
        "reject  git push      environment\n"
        "allow   git status *  replica\n"
    )
    refused = service.qd("replica", "permissions", "judged", "--allow", "ls; rm")
    assert refused.code == 2 and "without shell syntax" in refused.err
    qd("replica", "rm", "-y", "judged")
    qd("env", "rm", "-y", "careful")


def test_the_cost_limit_of_a_replica(qd, service) -> None:
    qd("env", "create", "costly", "--cost-limit", "10")
    qd("replica", "create", "--name", "priced", "--env", "costly")
    policy = "policy   ask (of the environment)\n"
    show = ("replica", "permissions", "priced")
    assert qd(*show) == policy + "cost     $10.00 (of the environment)\n"
    assert qd(*show, "--cost-limit", "$2.5") == policy + "cost     $2.50 (of the replica)\n"
    assert qd(*show, "--cost-limit", "none") == policy + "cost     none (of the replica)\n"
    changed = qd(*show, "--cost-limit", "environment", "--json")
    assert json.loads(changed)["effective"]["cost_limit"] == 10
    refused = service.qd(*show, "--cost-limit", "much")
    assert refused.code == 2 and "Not an amount in dollars" in refused.err
    words = " ".join(qd("replica", "permissions", "--help").split())
    assert "once they have cost this much; none: no limit; environment: the environment's" in words
    for command in (show, ("env", "edit", "costly")):
        refused = service.qd(*command, "--cost-limit", "")
        assert refused.code == 2 and "No amount was given." in refused.err
    assert "cost limit     $10.00\n" in qd("env", "show", "costly")
    qd("env", "edit", "costly", "--cost-limit", "none")
    assert "cost limit     none\n" in qd("env", "show", "costly")
    qd("env", "edit", "costly", "--clear", "cost-limit")
    assert "cost limit" not in qd("env", "show", "costly")
    assert qd(*show) == policy
    qd("replica", "rm", "-y", "priced")
    qd("env", "rm", "-y", "costly")


@pytest.mark.long
def test_the_rules_of_an_environment(qd) -> None:
    qd("env", "create", "ruled", "--allow", "npm test *")
    changed = qd("env", "edit", "ruled", "--allow", "ls", "--reject", "git push", "--json")
    rules = [one["pattern"] for one in json.loads(changed)["environment"]["permission_rules"]]
    assert rules == ["npm test *", "ls", "git push"]
    qd("env", "edit", "ruled", "--remove-rule", "ls", "--permissions", "all")
    shown = qd("env", "show", "ruled")
    assert "permissions    all\n" in shown
    assert "rules          allow npm test *, reject git push\n" in shown
    qd("env", "edit", "ruled", "--clear", "rules", "--clear", "permissions")
    shown = qd("env", "show", "ruled")
    assert "rules " not in shown and "permissions " not in shown
    qd("env", "edit", "ruled", "--clear", "rules", "--allow", "make")
    assert "rules          allow make\n" in qd("env", "show", "ruled")
    qd("env", "rm", "-y", "ruled")
