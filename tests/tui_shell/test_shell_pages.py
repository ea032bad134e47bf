"""Pages that were closed: the cockpit goes on without them."""

import pytest

from tests.support.waiting import eventually
from tests.tui_shell.live import Installation


@pytest.mark.long
@pytest.mark.parametrize(
    ("key", "words"), [("e", "Everywhere"), ("a", "No automations yet"), ("comma", "Connections")]
)
async def test_a_closed_page_hears_nothing_more(live: Installation, key: str, words: str) -> None:
    async with live.cockpit() as desk:
        await desk.see("online")
        changes = (desk.app.app_state.changed, desk.app.services.changed)
        watching = [len(one._watchers) for one in changes]
        await desk.press(key)
        await eventually(lambda: len(desk.app.screen_stack) > 1, "the page")
        await desk.see(words)
        assert [len(one._watchers) for one in changes] == [before + 1 for before in watching]
        await desk.press("escape")
        await eventually(lambda: desk.focus == "ReplicaListView", "the list")
        await eventually(lambda: [len(one._watchers) for one in changes] == watching, "its silence")
        live.kill()
        await desk.miss("online")
        live.start()
        await live.ready()
        await desk.see("online")
