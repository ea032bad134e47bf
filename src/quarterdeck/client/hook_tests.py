"""Testing the hooks of environments. `environment` is an id, or `global`."""

from collections.abc import AsyncGenerator
from uuid import UUID

from pydantic import ValidationError

from quarterdeck.client.connection import Connection
from quarterdeck.client.environments import PATH
from quarterdeck.client.errors import ProtocolError
from quarterdeck.wire.environment_hooks import SaveHook
from quarterdeck.wire.hook_tests import (
    HookTest,
    HookTestAnswer,
    HookTestEvent,
    SavedHookTest,
    TestHook,
)

TEST_SECONDS = 2000.0
"""A test takes as long as its hooks may, and the making of a workspace besides."""


class HookTests:
    """`/v1/environments/{id}/warm-hooks/test` and its like.

    Without content the version in force is tested. Each call raises `Conflict` when the workspace
    of the test could not be set up.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def warm(self, environment: UUID | str, content: str | None = None) -> HookTest:
        """Runs a warm hook in a workspace of its own."""
        return await self._test(f"{PATH}/{environment}/warm-hooks/test", content)

    async def start(self, environment: UUID | str, content: str | None = None) -> HookTest:
        """Runs a start hook, after the warm ones, in a workspace of its own."""
        return await self._test(f"{PATH}/{environment}/start-hooks/test", content)

    async def save_warm(self, environment: UUID | str, content: str) -> SavedHookTest:
        """Tests a warm hook and saves it; it is in force only when it ended with 0."""
        return await self._connection.call(
            "POST",
            f"{PATH}/{environment}/warm-hooks/save-test",
            SavedHookTest,
            body=SaveHook(content=content),
            timeout=TEST_SECONDS,
        )

    def stream_warm(
        self, environment: UUID | str, content: str | None = None
    ) -> AsyncGenerator[HookTestEvent]:
        """Runs a warm hook and tells of it while it runs; closing the generator ends the test.

        Not every service has it: `NotFound` may mean that.
        """
        return self._stream(f"{PATH}/{environment}/warm-hooks/test/stream", content)

    def stream_start(
        self, environment: UUID | str, content: str | None = None
    ) -> AsyncGenerator[HookTestEvent]:
        """Runs a start hook and tells of it while it runs; closing the generator ends the test."""
        return self._stream(f"{PATH}/{environment}/start-hooks/test/stream", content)

    async def _stream(self, path: str, content: str | None) -> AsyncGenerator[HookTestEvent]:
        async with self._connection.listen(path, body=_body(content)) as messages:
            async for message in messages:
                if message.data:
                    yield _read(message.data)

    async def _test(self, path: str, content: str | None) -> HookTest:
        answer = await self._connection.call(
            "POST", path, HookTestAnswer, body=_body(content), timeout=TEST_SECONDS
        )
        return answer.test


def _read(data: str) -> HookTestEvent:
    try:
        return HookTestEvent.model_validate_json(data)
    except ValidationError as error:
        raise ProtocolError(
            "A message of the test could not be read.", next_step="Test it without the stream."
        ) from error


def _body(content: str | None) -> TestHook:
    return TestHook() if content is None else TestHook(content=content)
