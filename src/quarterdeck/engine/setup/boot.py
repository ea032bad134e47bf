"""From the engine's start to a workspace that is ready.

install -> warm hooks -> (held in a pool until claimed) -> start hooks -> ready

Installing writes an environment's files, skills and instructions below HOME. They are noted in the
state directory with a digest. A later boot writes only items that the environment has changed since
(so edits in the workspace stay), and removes items that the environment no longer has.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from quarterdeck.engine.agent_session import too_large
from quarterdeck.engine.errors import EngineRefusedError
from quarterdeck.engine.git import carry_origins, name_co_authors, rename_branches
from quarterdeck.engine.git_operations import make_ready
from quarterdeck.engine.journal import Journal, event
from quarterdeck.engine.setup.home import (
    INSTRUCTIONS,
    OWN_SKILLS,
    SKILLS,
    SandboxHome,
    SetupError,
    parts_of,
)
from quarterdeck.engine.setup.hooks import HookRunner, Hooks, SetupMemory, was_claimed
from quarterdeck.local.files import reason_of, write_file
from quarterdeck.wire.agents import OwnAgent
from quarterdeck.wire.engine import EngineConfig
from quarterdeck.wire.errors import ErrorCode
from quarterdeck.wire.events import ErrorEvent, EventType, HooksChanged
from quarterdeck.wire.setup import ClaimWorkspace, Setup, SetupPhase, SetupState

MANIFEST = "installed.json"


@dataclass(frozen=True)
class _Item:
    """One thing below HOME: a file's content and mode, or a link's target."""

    content: bytes
    mode: int = 0o644
    link: bool = False

    @property
    def digest(self) -> str:
        head = f"{self.mode} {self.link} ".encode()
        return hashlib.sha256(head + self.content).hexdigest()


def install(
    setup: Setup, home: Path, state: Path, own_agents: Mapping[str, OwnAgent] | None = None
) -> None:
    """Update HOME to the environment. Blocking.

    Raises:
        SetupError: something could not be installed.
    """
    target = SandboxHome(home)
    own = [agent.instructions for agent in (own_agents or {}).values() if agent.instructions]
    items = _items(setup, (*INSTRUCTIONS, *own))
    before = _read(state / MANIFEST)
    for path in before.keys() - items.keys():
        target.remove(path)
    noted = {path: digest for path, digest in before.items() if path in items}
    try:
        for path, item in items.items():
            if noted.get(path) == item.digest and target.has(path):
                continue
            _put(target, path, item)
            noted[path] = item.digest
    finally:
        _note(state / MANIFEST, noted)


def _put(target: SandboxHome, path: str, item: _Item) -> None:
    if item.link:
        target.link(path, item.content.decode())
    else:
        target.write(path, item.content, item.mode)


def _items(setup: Setup, instructions: Sequence[str]) -> dict[str, _Item]:
    """Return the items by normal path; an environment's own file wins over those of instructions."""
    items: dict[str, _Item] = {}
    if setup.system_prompt:
        text = setup.system_prompt.rstrip().encode() + b"\n"
        items |= {path: _Item(text) for path in instructions}
    for skill in setup.skills:
        slug = _slug(skill.slug)
        for file in skill.files:
            path = "/".join(parts_of(f"{SKILLS}/{slug}/{file.path}"))
            items[path] = _Item(bytes(file.content), 0o755 if file.executable else 0o644)
        for place in OWN_SKILLS:
            up = "../" * (place.count("/") + 1)
            items[f"{place}/{slug}"] = _Item(f"{up}{SKILLS}/{slug}".encode(), link=True)
    for file in setup.files:
        items["/".join(parts_of(file.path))] = _Item(file.content.encode(), 0o600)
    return items


def _slug(slug: str) -> str:
    if len(parts_of(slug)) != 1 or "~" in slug:
        raise SetupError(f"{slug!r} cannot be the name of a skill's directory.")
    return slug


def _read(path: Path) -> dict[str, str]:
    try:
        digests = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, str]", digests) if isinstance(digests, dict) else {}


def _note(path: Path, installed: dict[str, str]) -> None:
    try:
        write_file(path, json.dumps(installed))
    except OSError as error:
        raise SetupError(f"{path.name} could not be written: {reason_of(error)}.") from error


logger = logging.getLogger(__name__)


class Boot:
    """One boot of a workspace. `credentials` are its agents' keys; a claim may change them."""

    def __init__(
        self,
        config: EngineConfig,
        environment: Mapping[str, str],
        journal: Journal,
        memory: SetupMemory,
    ) -> None:
        self._config = config
        self._environment = environment
        self._journal = journal
        self._memory = memory
        self._state_dir = Path(config.state_dir)
        self._runner = HookRunner(self._state_dir / "hooks", environment, config.setup.hook_seconds)
        self._hooks = Hooks(config, self._runner, journal, memory)
        self._claimed = asyncio.Event()
        self.credentials: dict[str, str] = dict(config.setup.credentials)
        self.state = SetupState(phase=SetupPhase.INSTALLING)

    @property
    def hooks_running(self) -> bool:
        return self._hooks.running

    @property
    def start_hooks_completed(self) -> bool:
        return self.state.phase == SetupPhase.READY

    async def run(self) -> bool:
        """Get the workspace ready; return False when that failed; `state` says why."""
        try:
            await self._set_up()
        except SetupError as failed:
            await self._fail(str(failed))
            return False
        except OSError as error:
            logger.exception("setting up failed")
            await self._fail(f"The workspace could not be set up: {error.strerror or error}.")
            return False
        self.state = SetupState(phase=SetupPhase.READY)
        return True

    async def claim(self, request: ClaimWorkspace) -> None:
        """Give a held workspace to its owner; one that has an owner is not changed.

        Raises:
            EngineRefusedError: CONFLICT while it is not prepared yet, or failed.
        """
        if self._memory.claimed or not self._config.setup.hold:
            return
        if self.state.phase != SetupPhase.HELD:
            raise EngineRefusedError.conflict("The workspace is not prepared yet.")
        await rename_branches(self._config.repositories, request.branch, self._environment)
        self.credentials.update(request.credentials)
        await self._journal.append(was_claimed(), durable=True, refusable=True)
        self._memory.claimed = True
        self._claimed.set()

    def close(self) -> None:
        """Release processes that hooks left running."""
        self._runner.close()

    async def _set_up(self) -> None:
        if reason := too_large(self._environment):
            raise SetupError(reason)
        home = Path(self._environment.get("HOME", "/"))
        await asyncio.to_thread(
            install, self._config.setup, home, self._state_dir, self._config.agents
        )
        await make_ready(self._config.repositories, self._environment)
        await carry_origins(self._config.repositories, self._environment)
        if self._config.setup.co_author:
            await name_co_authors(self._config.repositories, self._environment)
        self.state = SetupState(phase=SetupPhase.WARM_HOOKS)
        await self._hooks.warm()
        if self._config.setup.hold and not self._memory.claimed:
            await self._hold()
        self.state = SetupState(phase=SetupPhase.START_HOOKS)
        await self._hooks.start()

    async def _hold(self) -> None:
        self.state = SetupState(phase=SetupPhase.HELD)
        status = HooksChanged.model_validate({"running": [], "completed": [], "held": True})
        await self._journal.append(
            event(EventType.HOOKS_STATUS, status.model_dump(exclude_unset=True))
        )
        await self._claimed.wait()

    async def _fail(self, reason: str) -> None:
        self.state = SetupState(phase=SetupPhase.FAILED, failure=reason)
        error = ErrorEvent(code=ErrorCode.INTERNAL_ERROR, message=reason)
        await self._journal.append(event(EventType.ERROR, error), durable=True)
