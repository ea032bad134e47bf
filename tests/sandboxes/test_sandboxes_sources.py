"""Reading addresses, without touching a repository."""

import re
from pathlib import Path

import pytest

from quarterdeck.sandboxes.errors import NotARepositoryError
from quarterdeck.sandboxes.sources import (
    local_path,
    name_from,
    safe_name,
    spellings,
    without_password,
)
from quarterdeck.wire.repositories import REPOSITORY_NAME


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("/a/b", Path("/a/b")),
        ("file:///a%20b/c", Path("/a b/c")),
        ("~/x", "~/x"),
        ("https://example.org/a/b.git", None),
        ("ssh://git@example.org:22/a.git", None),
        ("git@example.org:team/a.git", None),
        ("host:a", None),
    ],
)
def test_local_or_far(url, path):
    assert local_path(url) == (path and Path(path).expanduser())


@pytest.mark.parametrize(
    "url", ["", " ", "-u", "ext::sh", "a/b", "ftp://x/y", "/a\x1b[2J", "fd::17"]
)
def test_refused(url):
    with pytest.raises(NotARepositoryError):
        local_path(url)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org/team/tools.git", "tools"),
        ("git@example.org:team/tools", "tools"),
        ("/home/ann/tools/.git", "tools"),
        ("/home/ann/tools.git/", "tools"),
        ("host:tools", "tools"),
        ("/", "repository"),
        ("/srv/Ä ö", "repository"),
        ("https://ann:word@example.org", "example.org"),
    ],
)
def test_names(url, name):
    assert name_from(url) == name


@pytest.mark.parametrize(
    "name", ["..", ".", "", "a/../b", "\x1b[31m", "x" * 500, "-rf", ".git", "_x"]
)
def test_safe_names(name):
    assert re.fullmatch(REPOSITORY_NAME, safe_name(name))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:word@example.org/a", "https://example.org/a"),
        ("https://token@example.org:8443/a", "https://example.org:8443/a"),
        ("ssh://git@example.org/a", "ssh://git@example.org/a"),
        ("ssh://git:word@example.org/a", "ssh://git@example.org/a"),
        ("git@example.org:a/b", "git@example.org:a/b"),
        ("/home/a@b", "/home/a@b"),
    ],
)
def test_without_password(url, shown):
    assert without_password(url) == shown


@pytest.mark.parametrize(
    ("url", "others", "own"),
    [
        ("https://a.example/sea/shop.git", {"ssh://git@a.example", "git@a.example"}, True),
        ("https://a.example/sea/shop", {"ssh://git@a.example", "git@a.example", "https"}, False),
        ("git@a.example:sea/shop.git", {"ssh://git@a.example", "https"}, True),
        ("ssh://me@a.example/sea/shop.git", {"ssh", "https", "git@a.example"}, True),
        ("https://a.example:8443/sea/shop.git", set(), True),
        ("/home/me/shop", set(), False),
        ("https://a.example", set(), False),
    ],
)
def test_spellings_of_an_address(url: str, others: set[str], own: bool) -> None:
    found, prefix = spellings(url)
    assert prefix is own
    assert len(found) == len(others)
    assert all(any(one.startswith(other) for one in found) for other in others)
    assert all(one.endswith("sea/shop.git") and not url.startswith(one) for one in found)
