"""A command that prints a quarter of a gigabyte: memory stays bounded, and the end of it is kept."""

import pytest

from tests.support.installation import Installation, block, megabytes
from tests.support.waiting import until

PRINTED = 256 << 20
"""Bytes: several times what any process may take."""
PRINT = f"yes 0123456789abcde | head -c {PRINTED}; echo the end"
ENGINE_LIMIT, AGENT_LIMIT, SERVICE_GROWTH = 90, 90, 30
"""Megabytes at the highest."""


def test_exec(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    before = megabytes(deck.pid, "VmHWM")
    got = deck.run(id, PRINT, 50)
    assert (got["exit_code"], got["timed_out"], got["truncated"]) == (0, False, True)
    assert len(got["output"].encode()) == 65_536
    assert got["output"].endswith("0123456789abcde\nthe end\n")
    assert megabytes(deck.engine(id), "VmHWM") < ENGINE_LIMIT
    assert megabytes(deck.pid, "VmHWM") - before < SERVICE_GROWTH
    deck.delete(id)


@pytest.mark.long
def test_exec_without_end(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    got = deck.run(id, "cat /dev/zero", 1)
    assert (got["exit_code"], got["timed_out"], got["truncated"]) == (None, True, True)
    assert got["output"] == "\0" * 65_536
    assert megabytes(deck.engine(id), "VmHWM") < ENGINE_LIMIT
    deck.delete(id)


@pytest.mark.long
def test_a_block(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    before = megabytes(deck.pid, "VmHWM")
    assert deck.turn(id, block("true"))["stopReason"] == "end_turn"
    (agent, *_) = deck.agents(id)
    assert deck.turn(id, block(PRINT))["stopReason"] == "end_turn"
    events = deck.history(id)
    ends = [e["payload"] for e in events if e["payload"].get("status") == "completed"]
    shown = ends[-1]["content"][0]["content"]["text"]
    assert "bytes of earlier output left out" in shown[:60]
    assert shown.endswith("0123456789abcde\nthe end\n")
    assert len(shown) < 66_000
    assert sum(len(str(event)) for event in events) < 10 << 20
    assert megabytes(agent, "VmHWM") < AGENT_LIMIT
    assert megabytes(deck.engine(id), "VmHWM") < ENGINE_LIMIT
    assert megabytes(deck.pid, "VmHWM") - before < SERVICE_GROWTH
    deck.delete(id)


@pytest.mark.long
def test_a_terminal_that_nobody_reads(deck: Installation, stocked: str) -> None:
    id = deck.create(stocked)
    base = f"/v1/workspaces/{id}/terminal/sessions"
    path = f"{base}/{deck.post(base, {'cols': 80, 'rows': 24}, 201)['session']['id']}"
    before = megabytes(deck.pid)
    # A stream that is opened and never read must not hold up the terminal or fill memory.
    with (
        deck.client(Authorization=f"Bearer {deck.key}") as client,
        client.stream("GET", f"{path}/stream"),
    ):
        keys = "yes 0123456789abcde | head -c 20000000; touch /tmp/printed\n"
        deck.post(f"{path}/input", {"data": keys, "generation": 0, "sequence": 0})
        until(lambda: deck.run(id, "test -e /tmp/printed")["exit_code"] == 0, "the end")
        assert megabytes(deck.engine(id)) < ENGINE_LIMIT
        assert megabytes(deck.pid) - before < SERVICE_GROWTH
    deck.delete(id)
