"""Changes of a replica of the real service: read when they are others, commented, sent."""

import pytest

from quarterdeck.wire.replicas import WorkspaceStatus
from tests.support.git import git
from tests.support.waiting import eventually
from tests.tui_shell.live import Installation

EDIT = "```sh\nprintf 'A better shop.\\n' > README\nprintf 'x = 1\\n' > new.py\n```"


async def test_changes_are_reviewed_and_the_comments_reach_the_agent(live: Installation) -> None:
    await live.create_with_repository("alpha", EDIT)
    # High enough for the message and all that the agent answers.
    async with live.cockpit(size=(140, 80)) as desk:
        await desk.see("alpha")
        await desk.press("3")
        await desk.see("README +1", "A better shop.", "new.py +1", "x = 1")
        await desk.press("right_square_bracket", "down", "down", "c", *"Better?", "enter")
        await desk.see("Comment, line 1", "1 comment, S sends")
        await desk.press("S", "enter")
        await desk.see("The comment is in the chat (1), in one message.")
        await desk.miss("Better?")
        await desk.press("1")
        await desk.see(
            "A comment on your changes:", "1. `README`, line 1", "+A better shop.", "Better?"
        )


@pytest.mark.long
async def test_changes_follow_the_files_and_never_wake_the_replica(live: Installation) -> None:
    await live.create_with_repository("alpha")
    async with live.cockpit(size=(140, 40)) as desk:
        await desk.see("alpha")
        await desk.press("3")
        await desk.see("shop qd/alpha", "No changes.")
        state = desk.replica("alpha")
        async with live.client() as client:
            await client.exec.run(state.id, "echo more >> shop/README")
            await desk.see("README +1", "more")
            await client.replicas.sleep(state.id)
            await desk.see("Asleep. Sending comments wakes it; w wakes it now.", "README +1")
            assert (await client.replicas.get(state.id)).status == WorkspaceStatus.SLEEPING
        await desk.press("w")
        await eventually(lambda: state.active)
        await desk.miss("Asleep.")
        await desk.see("README +1")


@pytest.mark.long
async def test_changes_of_a_sleeping_replica_are_read_and_committed(live: Installation) -> None:
    await live.create_with_repository("alpha", EDIT)
    async with live.client() as client:
        async with live.cockpit(size=(140, 40)) as desk:
            await desk.see("alpha")
            await eventually(lambda: desk.replica("alpha").done_at)
            id = desk.replica("alpha").id
            await client.replicas.sleep(id)
        async with live.cockpit(size=(140, 40)) as desk:  # has not seen it awake
            await desk.see("alpha", "sleeping")
            await desk.press("3")
            await desk.see("Asleep.", "README +1", "A better shop.", "new.py +1")
            await desk.press("b")
            await desk.see("uncommitted")
            await desk.press("C")
            await desk.see("Commit everything in shop")
            await desk.press("enter")
            await desk.see("Committed", "No changes.")
            await desk.press("b")
            await desk.see("README +1", "A better shop.")
            assert (await client.replicas.get(id)).status == WorkspaceStatus.SLEEPING
        await client.replicas.archive(id)
        async with live.cockpit(size=(140, 40)) as desk:
            await desk.see("alpha", "archived")
            await desk.press("3")
            await desk.see("Archived: w restores the files", "shop qd/alpha: ", "1 commit")
            await desk.press("C")
            await desk.see("The files are not loaded.")
            assert (await client.replicas.get(id)).status == WorkspaceStatus.ARCHIVED


WORK = "```sh\nprintf 'A better shop.\\n' > README\ngit commit -qam Better\necho 1 > one\necho 2 > two\n```"


@pytest.mark.long
async def test_uncommitted_files_are_marked_and_committed(live: Installation) -> None:
    await live.create_with_repository("alpha", WORK)
    async with live.cockpit(size=(140, 40)) as desk:
        await desk.see("alpha")
        await desk.press("3")
        await desk.see("README +1", "one +1", "two +1", "↑1")
        await desk.press("space")
        await desk.see("b shows the uncommitted files")
        await desk.press("b")
        await desk.miss("README +1")
        await desk.see("one +1", "two +1", "uncommitted")
        await desk.press("tab", "space")
        await desk.see("✓ one", "uncommitted, 1 marked")
        await desk.press("C")
        await desk.see("Commit 1 marked file in shop")
        await desk.press(*"One", "enter")
        await desk.see("Committed", "One", "↑2")
        await desk.miss("one +1")
        await desk.see("two +1")
        await desk.press("P")
        await desk.see("Get changes: alpha", "▸ p", "2 commits ahead of main")


@pytest.mark.long
async def test_conflicts_with_the_base_are_named_and_handed_to_the_agent(
    live: Installation,
) -> None:
    await live.create_with_repository("alpha", WORK)
    (live.repository / "README").write_text("Their shop.\n")
    async with live.cockpit(size=(140, 60)) as desk:
        await desk.see("alpha")
        await desk.press("3")
        await desk.see("README +1", "one +1")
        try:
            git(live.repository, "commit", "-qam", "Theirs")
            await desk.press("U")
            await desk.see("Nothing was changed: conflicts with main in README.", "A asks")
        finally:
            git(live.repository, "reset", "-q", "--hard", "HEAD~1")
        await desk.press("A")
        await desk.see("Asked the agent to resolve the conflicts")
        await desk.press("1")
        await desk.see("A merge of `main` in `shop` conflicts", "Run `git merge origin/main`")
        await desk.press("escape", "3")
        async with live.client() as client:
            replica = desk.replica("alpha").id
            await client.exec.run(replica, "cd shop && rm one two && git merge origin/main")
        await desk.see("Conflicts in README. A asks the agent to resolve them.")
        await desk.press("A")
        await desk.see("Asked the agent to resolve the conflicts")
        await desk.press("1")
        await desk.see("A merge in `shop` stopped at conflicts")


async def test_an_update_over_uncommitted_changes_stashes_them_after_asking(
    live: Installation,
) -> None:
    await live.create_with_repository("alpha", EDIT)
    async with live.cockpit(size=(140, 60)) as desk:
        await desk.see("alpha")
        await desk.press("3")
        await desk.see("README +1")
        git(live.repository, "commit", "-q", "--allow-empty", "-m", "Theirs")
        try:
            await desk.press("R")
            await desk.see("Stash the uncommitted changes and try again?", "cannot rebase")
            await desk.press("n")
            await desk.see("git refused", "cannot rebase")
            await desk.press("R")
            await desk.see("Stash the uncommitted changes and try again?")
            await desk.press("y")
            await desk.see("Updated to", "README +1")
        finally:
            git(live.repository, "reset", "-q", "--hard", "HEAD~1")


async def test_stashed_changes_that_conflict_with_an_update_are_named(live: Installation) -> None:
    await live.create_with_repository("alpha", EDIT)
    (live.repository / "README").write_text("Their shop.\n")
    async with live.cockpit(size=(140, 60)) as desk:
        await desk.see("alpha")
        await desk.press("3")
        await desk.see("README +1")
        git(live.repository, "commit", "-qam", "Theirs")
        try:
            await desk.press("U")
            await desk.see("overwritten by merge: README", "changes stay in the stash, too.")
            await desk.press("y")
            await desk.see(
                "Updated. The changes are also in the stash: conflicts in README. A asks"
            )
        finally:
            git(live.repository, "reset", "-q", "--hard", "HEAD~1")
        replica = desk.replica("alpha")
        await eventually(lambda: replica.record.repository_statuses[0].conflicts == ["README"])
        await desk.press("A", "1")
        await desk.see("Stashed changes in `shop` conflict with an update")
