"""Which addresses the service calls for others."""

from ipaddress import ip_address
from urllib.parse import urlsplit

from quarterdeck.service.errors import ApiError
from quarterdeck.wire.errors import ErrorCode

URL_LENGTH = 2000


def check_webhook_url(url: str | None) -> None:
    """Takes `http` and `https` URLs with a host; loopback is allowed, this may be somebody's own machine.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if url is None:
        return
    problem = _problem(url)
    if problem:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "The webhook's address cannot be called.",
            f"webhook_url: {problem}",
        )


def _problem(url: str) -> str | None:
    if len(url) > URL_LENGTH:
        return f"at most {URL_LENGTH} characters"
    if not url.isascii() or not url.isprintable() or " " in url:
        return "it holds characters that no URL has; write them as %XX"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as e:
        return str(e)
    if parts.scheme not in ("http", "https"):
        return "it begins with http:// or https://"
    if not parts.hostname:
        return "it names no host"
    return _host_problem(parts.hostname)


def _host_problem(host: str) -> str | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    # Clouds answer with credentials there.
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return "this address cannot be a receiver"
    return None
