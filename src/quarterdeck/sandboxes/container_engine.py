"""What the driver for containers needs of that which starts them: Docker, podman, a Swarm, Kubernetes."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol

from quarterdeck.sandboxes.errors import SandboxError
from quarterdeck.sandboxes.port import Absence, Isolation, Layout, Progress, Size


@dataclass(frozen=True)
class Launch:
    """One start of a workspace's container; `digest` is that of its token, to be recorded.

    `needs_files`: only where its files are, since there is no save of them.
    """

    workspace_id: str
    digest: str
    environment: Mapping[str, str]
    size: Size
    needs_files: bool = False


@dataclass(frozen=True)
class Container:
    """What the container engine says about a workspace's container."""

    state: Literal["running", "starting", "lost", "gone"]
    digest: str | None = None
    reason: str | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether it runs, or is meant to run soon."""
        return self.state in ("running", "starting")


class ContainerEngine(Protocol):
    """Starts containers with a volume for each workspace, and finds them again."""

    @property
    def absence(self) -> Absence | None:
        """Since when and why it does not answer; None while it does, as far as known."""
        ...

    @property
    def moves(self) -> bool:
        """Whether a container may start on another volume than the last time, with older files."""
        ...

    async def require(self) -> None:
        """Check that it answers.

        Raises:
            EngineAwayError: it does not.
        """
        ...

    def layout(self, workspace_id: str) -> Layout:
        """Return the paths inside; the parents of the first three are the same, on the volume."""
        ...

    async def isolation(self) -> Isolation:
        """Return how replicas are kept apart there."""
        ...

    async def start(self, launch: Launch, report: Progress) -> None:
        """Start a container in place of an earlier one.

        Raises:
            SandboxError: it cannot be started.
        """
        ...

    async def find(self, workspace_id: str) -> Container:
        """Return the state of a workspace's container.

        Raises:
            SandboxError: the container engine does not answer.
        """
        ...

    async def ended(self, workspace_id: str) -> str:
        """Wait for the end of a running container; return the end of its log."""
        ...

    async def stop(self, workspace_id: str) -> None:
        """End every process of a workspace; the volume stays."""
        ...

    async def has_volume(self, workspace_id: str) -> bool:
        """Return whether a start would find a workspace's newest files."""
        ...

    async def note_files(self, workspace_id: str) -> None:
        """Note, where containers move, that the running one has the newest files from now on.

        Raises:
            SandboxError: the container engine does not answer.
        """
        ...

    async def destroy(self, workspace_id: str) -> None:
        """Stop a workspace, and remove its volume."""
        ...

    def run(
        self,
        workspace_id: str,
        command: Sequence[str],
        *,
        directory: str = "/",
        data: bytes | AsyncIterator[bytes] = b"",
        environment: Mapping[str, str] = MappingProxyType({}),
        source_id: str | None = None,
    ) -> AsyncGenerator[bytes]:
        """Run a command on a workspace's volume in a container of its own; yield its output.

        It cannot be used where containers move. The volume is made when there is none. It ends with the generator.

        Args:
            data: the command's input. Parts are only for a command that knows its end by itself.
            source_id: a workspace whose volume is mounted at `/source`, read-only.

        Raises:
            ProcessError: its exit status was not 0.
            SandboxError: it cannot be run.
        """
        ...

    async def tidy(self) -> None:
        """Remove what a killed service left running."""
        ...


async def output_of(running: AsyncGenerator[bytes], most: int) -> bytes:
    """Return all that a command prints; end it when that is too much.

    Args:
        running: the command, of `ContainerEngine.run`.
        most: bytes.

    Raises:
        SandboxError: it prints more, or as `running`.
        ProcessError: as `running`.
    """
    output = bytearray()
    async with aclosing(running) as parts:
        async for part in parts:
            output += part
            if len(output) > most:
                raise SandboxError(
                    "A command in a container prints too much.", f"It has more than {most} bytes."
                )
    return bytes(output)
