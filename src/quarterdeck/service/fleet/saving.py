"""Saves a replica's work in this installation, where its files are elsewhere.

engine.saving -> the engine's link -> `SavedWork`: when the engine is reached, after each turn, and
before it is put to sleep. So with its files at most the running turn is lost.
"""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from quarterdeck.engine.link import EngineError
from quarterdeck.sandboxes.errors import SandboxError, SaveRepairedError
from quarterdeck.sandboxes.port import RepositorySource, SandboxDriver, SavedWork
from quarterdeck.service.fleet.runtime import WorkspaceRuntime, append_error, open_link
from quarterdeck.service.replicas.rows import WorkspaceRow
from quarterdeck.wire.engine import StreamCommand
from quarterdeck.wire.saves import SaveCall

REASON_LENGTH = 500

log = logging.getLogger(__name__)


async def keep_saved(site: WorkspaceRuntime) -> None:
    """Save the work whenever there may be something new; never return."""
    reported = False
    while True:
        await site.unsaved.wait()
        failure = await save_now(site, site.tools.settings.save_limit)
        if failure is None:
            reported = False
        elif not reported:
            reported = await append_error(
                site,
                "The replica's work could not be saved on the service's machine, and is only on its"
                f" volume: {failure[:REASON_LENGTH]}. The next turn tries again.",
            )


async def save_now(site: WorkspaceRuntime, seconds: float, *, followed: bool = True) -> str | None:
    """Save the work; return why that failed, or None. Nothing is done where the files are here.

    Args:
        followed: whether the engine's journal is being stored meanwhile.
    """
    driver = await site.driver()
    saves = driver.saved_work
    site.unsaved.clear()
    if saves is None:
        return None
    failure = None
    try:
        async with asyncio.timeout(seconds), site.saving, site.tools.saves:
            try:
                await _save(site, driver, saves, followed)
            except SaveRepairedError:
                await _save(site, driver, saves, followed)  # with what the new one lacks
    except (EngineError, SandboxError, TimeoutError) as e:
        log.warning("The work of %s was not saved: %s", site.id, e)
        details = getattr(e, "details", None)
        failure = f"{e or 'it took too long'}{f' ({details.strip()})' if details else ''}"
    await _tell_of_damage(site, saves)
    return failure


async def _tell_of_damage(site: WorkspaceRuntime, saves: SavedWork) -> None:
    notice = saves.notices.get(site.id)
    if notice is not None and await append_error(site, notice):
        saves.notices.pop(site.id, None)


async def _save(
    site: WorkspaceRuntime, driver: SandboxDriver, saves: SavedWork, followed: bool
) -> None:
    row = await site.row()
    sources = [RepositorySource.from_json(one) for one in json.loads(row.repositories_json)]
    layout = await driver.layout(site.id)
    call = SaveCall(
        repositories=await driver.repositories(site.id, sources),
        state_dir=layout.state_dir,
        known=await saves.known(site.id, sources),
    )
    request = StreamCommand(
        command=[*layout.interpreter, "-m", "quarterdeck.engine.saving"],
        directory=layout.workspace_dir,
        data=call.model_dump_json(by_alias=True),
    )
    link = await open_link(site, row)
    try:
        output = link.command_output(request)
        if followed:
            output = _until_journaled(site, row, output)
        work = await saves.receive(site.id, sources, output)
    finally:
        await link.close()
    if work.left_out or work.failed:
        numbers = len(work.left_out), len(work.failed)
        log.info("The save of %s lacks %d files, %d repositories", site.id, *numbers)


async def _until_journaled(
    site: WorkspaceRuntime, row: WorkspaceRow, output: AsyncGenerator[bytes]
) -> AsyncGenerator[bytes]:
    """Yield the output, and end once the journal up to its end is stored here.

    Otherwise a save could have the work of a turn that does not seem to have started: with the volume
    lost, the turn would run again on its own work.
    """
    async with aclosing(output) as parts:
        async for part in parts:
            yield part
    link = await open_link(site, row)
    await link.close()
    await site.mark.reached(link.hello.last_index)
