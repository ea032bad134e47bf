"""Requests to the API server of a cluster, with the credentials of a kubeconfig or of our own pod."""

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes_asyncio.client import ApiClient, Configuration
from kubernetes_asyncio.config import (
    ConfigException,
    load_incluster_config,  # pyright: ignore[reportUnknownVariableType]
    load_kube_config,  # pyright: ignore[reportUnknownVariableType]
)
from yaml import YAMLError

from quarterdeck.sandboxes.answers import REASON_CHARACTERS, read_answer

REQUEST_SECONDS = 30.0
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
_MERGE = "application/merge-patch+json"


class ClusterUnreachableError(Exception):
    """The API server does not answer, or not to these credentials. The text is for a person."""


class ApiRefusedError(Exception):
    """The API server refused a request. The text is its reason."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class KubernetesApi:
    """The API server that a context of the kubeconfig names, else that of the cluster we run in.

    Credentials are read again when they are not accepted: those of a plugin last for minutes.
    """

    def __init__(self, context: str | None) -> None:
        self._context = context
        self._client: ApiClient | None = None
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        """Disconnect."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> Any:
        """Return the answer: an object, or the text of a log.

        Args:
            body: for `PATCH`: what changes.

        Raises:
            ClusterUnreachableError: nothing answers, or the credentials are not accepted.
            ApiRefusedError: it refused.
            ValueError: its answer is too long, or no JSON.
        """
        known, is_log = self._client, path.endswith("/log")
        status, text = await self._try(method, path, body, query)
        if status == 401 and not is_log:
            async with self._reading:
                if self._client is known:
                    await self.close()
            status, text = await self._try(method, path, body, query)
        if status == 401 and not is_log:  # of a log it may be the node's answer to the API server
            raise ClusterUnreachableError(
                "The cluster does not accept the service's credentials. Renew those of the "
                f"{self._where()}."
            )
        if status >= 300:
            raise ApiRefusedError(status, _reason(text))
        return text if is_log else json.loads(text)

    def _where(self) -> str:
        return f"context {self._context}" if self._context else "current context"

    async def _try(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        query: Mapping[str, str] | None,
    ) -> tuple[int, str]:
        try:
            client = await self._opened()
            response: Any = await client.call_api(
                path,
                method,
                query_params=[*(query or {}).items()],
                header_params={"Content-Type": _MERGE} if method == "PATCH" else {},
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=REQUEST_SECONDS,
            )
            async with response:
                body_read = await read_answer(response.content)
                return response.status, body_read.decode(errors="replace")
        except ConfigException as e:
            raise ClusterUnreachableError(
                f"The cluster is not known: {e}. Name a context of the kubeconfig in "
                "[sandboxes.kubernetes], or set KUBECONFIG for the service."
            ) from e
        except (aiohttp.ClientError, OSError, TimeoutError) as e:
            host = self._client.configuration.host if self._client else self._where()
            raise ClusterUnreachableError(
                f"The API server of the cluster does not answer at {host}. ({e or 'time-out'})"
            ) from e

    async def _opened(self) -> ApiClient:
        if self._client is None:
            configuration = Configuration()
            named = os.environ.get("KUBECONFIG", "~/.kube/config")
            there = await asyncio.to_thread(_exists, named)
            if not there and self._context is None and _IN_CLUSTER in os.environ:
                load_incluster_config(client_configuration=configuration)
            elif not there:
                raise ConfigException(f"no kubeconfig at {named}")
            else:
                await _load(named, self._context, configuration)
            self._client = ApiClient(configuration)
        return self._client


async def _load(named: str, context: str | None, configuration: Configuration) -> None:
    try:
        await load_kube_config(named, context, configuration, persist_config=False)
    except (AssertionError, LookupError, TypeError, ValueError, YAMLError) as e:
        raise ConfigException(
            f"{named} is damaged, or lacks the user or the server of the context ({e})"
        ) from e


def _exists(named: str) -> bool:
    return any(Path(one).expanduser().exists() for one in named.split(":") if one)


def _reason(text: str) -> str:
    try:
        return str(json.loads(text)["message"])[:REASON_CHARACTERS]
    except (ValueError, KeyError, TypeError, RecursionError):
        return text[:500]
