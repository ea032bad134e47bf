"""Changes of a replica of the real service: read when they are others, commented, sent."""

from quarterdeck.wire.environments import CreateEnvironment
from quarterdeck.wire.replicas import CreateReplica, WorkspaceStatus
from quarterdeck.wire.repositories import ConnectRepository
from tests.tui_shell.live import Installation, until

EDIT = "```sh\nprintf 'A better shop.\\n' > README\nprintf 'x = 1\\n' > new.py\n```"


async def replica_with_a_repository(live: Installation, message: str | None = None) -> None:
    async with live.client() as client:
        known = await client.repositories.list()
        repository = (
            known[0]
            if known
            else await client.repositories.connect(ConnectRepository(url=str(live.repository)))
        )
        bound = [e for e in (await client.environments.list()) if e.repository_id == repository.id]
        environment = (
            bound[0]
            if bound
            else await client.environments.create(
                CreateEnvironment(name="shop", repository_id=repository.id)
            )
        )
        await client.replicas.create(
            CreateReplica(name="alpha", environment_id=environment.id, message=message)
        )


async def test_changes_are_reviewed_and_the_comments_reach_the_agent(live: Installation) -> None:
    await replica_with_a_repository(live, EDIT)
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


async def test_changes_follow_the_files_and_never_wake_the_replica(live: Installation) -> None:
    await replica_with_a_repository(live)
    async with live.cockpit(size=(140, 40)) as desk:
        await desk.see("alpha")
        await desk.press("3")
        await desk.see("shop qd/alpha", "No changes.")
        state = desk.replica("alpha")
        async with live.client() as client:
            await client.exec.run(state.id, "echo more >> shop/README")
            await desk.see("README +1", "more")
            await client.replicas.sleep(state.id)
            await desk.see("It sleeps; w wakes it. This is how it was at", "README +1")
            await desk.press("r")
            await desk.see("Only an active replica can tell its changes")
            assert (await client.replicas.get(state.id)).status == WorkspaceStatus.SLEEPING
        await desk.press("w")
        await until(lambda: state.active)
        await desk.miss("It sleeps")
        await desk.see("README +1")
