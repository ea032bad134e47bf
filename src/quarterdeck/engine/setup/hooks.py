"""Runs the hooks of a boot in the contract's order, and journals how it goes.

hooks.started -> (hooks.progress ... hooks.status with the hook's log) ... -> hooks.completed
                                                                          \\-> hooks.failed

The environment's hooks come first, in the order they were given, then each repository's own:
`.quarterdeck/hooks/warm.sh` and `.quarterdeck/hooks/start.sh`, run in the repository. The others
run in the workspace's root. The first that fails ends the boot.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from quarterdeck.engine.drafts import Draft, Note, event
from quarterdeck.engine.journal import Journal
from quarterdeck.engine.setup.errors import SetupFailed
from quarterdeck.engine.setup.memory import SetupMemory, all_warmed, hook_done
from quarterdeck.engine.setup.process import Hook, HookRunner
from quarterdeck.wire.engine import EngineConfig, EngineRepository
from quarterdeck.wire.events import EventType, HooksChanged
from quarterdeck.wire.setup import HookKind, HookLog

REPOSITORY_HOOKS = ".quarterdeck/hooks"
SCRIPT_LIMIT = 1 << 20
_LAST_LINES = 5


class Hooks:
    """The hooks of one workspace. `running` says whether one runs now."""

    def __init__(
        self, config: EngineConfig, runner: HookRunner, journal: Journal, memory: SetupMemory
    ) -> None:
        self._config = config
        self._runner = runner
        self._journal = journal
        self._memory = memory
        self._completed: list[str] = []
        self._now: list[str] = []

    @property
    def running(self) -> bool:
        return bool(self._now)

    async def warm(self) -> None:
        """Runs the warm hooks that never succeeded here; none, once all have.

        Raises:
            SetupFailed: one failed; the rest did not run.
        """
        if self._memory.warmed:
            return
        hooks = await asyncio.to_thread(self._hooks, HookKind.WARM)
        await self._run([hook for hook in hooks if hook.name not in self._memory.done])
        await self._journal.append(all_warmed(), durable=True)
        self._memory.warmed = True

    async def start(self) -> None:
        """Runs the start hooks.

        Raises:
            SetupFailed: one failed; the rest did not run.
        """
        await self._run(await asyncio.to_thread(self._hooks, HookKind.START))

    def _hooks(self, kind: HookKind) -> list[Hook]:
        root, setup = Path(self._config.workspace_dir), self._config.setup
        own = [Hook(kind, one.name, one.script, root) for one in setup.hooks if one.kind == kind]
        if setup.repository_hooks:
            own += repository_hooks(kind, self._config.repositories)
        return own

    async def _run(self, hooks: Sequence[Hook]) -> None:
        if not hooks:
            return
        self._completed = []
        self._now = [hooks[0].name]
        try:
            await self._tell(EventType.HOOKS_STARTED)
            for hook in hooks:
                await self._run_one(hook)
        finally:
            self._now = []
        await self._tell(EventType.HOOKS_COMPLETED)

    async def _run_one(self, hook: Hook) -> None:
        self._now = [hook.name]

        async def progress(output: str) -> None:
            await self._tell(EventType.HOOKS_PROGRESS, hook_name=hook.name, output=output)

        log = await self._runner.run(hook, progress)
        self._now = []
        notes: list[Note] = []
        if log.exit_code == 0:
            self._completed.append(hook.name)
            if hook.kind == HookKind.WARM:
                notes.append(hook_done(hook.name))
                self._memory.done.add(hook.name)
        told = self._draft(EventType.HOOKS_STATUS, hook_name=hook.name, log=log)
        await self._journal.append(*notes, told, durable=True)
        if log.exit_code != 0:
            failure = failure_of(log)
            await self._tell(EventType.HOOKS_FAILED, hook_name=hook.name, error=failure)
            raise SetupFailed(failure)

    async def _tell(self, type: EventType, **more: object) -> None:
        await self._journal.append(self._draft(type, **more))

    def _draft(self, type: EventType, **more: object) -> Draft:
        changed = HooksChanged.model_validate(
            {"running": list(self._now), "completed": list(self._completed), **more}
        )
        return event(type, changed.model_dump(mode="json", by_alias=True, exclude_unset=True))


def repository_hooks(kind: HookKind, repositories: Sequence[EngineRepository]) -> list[Hook]:
    """The hooks that repositories bring, in the repositories' order. Blocking."""
    found: list[Hook] = []
    for repository in repositories:
        path = Path(repository.path, REPOSITORY_HOOKS, f"{kind.value}.sh")
        if not path.is_file():
            continue
        with path.open("rb") as file:
            script = file.read(SCRIPT_LIMIT).decode(errors="replace")
        found.append(Hook(kind, f"repository:{repository.name}", script, Path(repository.path)))
    return found


def failure_of(log: HookLog) -> str:
    """A sentence that says which hook failed, how, and what it said last."""
    how = "took too long and was stopped" if log.timed_out else f"ended with code {log.exit_code}"
    lines = [line for line in log.output.splitlines() if line.strip()][-_LAST_LINES:]
    said = " Its last lines: " + " | ".join(lines)[-1000:] if lines else ""
    return f"The {log.hook_type} hook {log.hook_name!r} {how}.{said}"
