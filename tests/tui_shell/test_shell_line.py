"""The line to the service, as the cockpit tells of it."""

import signal

import pytest

from quarterdeck.store import connection_monitor as lookout
from tests.tui_shell.live import Installation


async def test_a_service_that_stands_still_is_not_online(
    live: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookout, "ANSWER_SECONDS", 1.0)
    async with live.cockpit() as desk:
        await desk.see("● online")
        assert live.process is not None
        live.process.send_signal(signal.SIGSTOP)
        try:
            desk.app.app_state.reconnect_now()
            await desk.see("✗ offline")
        finally:
            live.process.send_signal(signal.SIGCONT)
        await desk.see("● online")
