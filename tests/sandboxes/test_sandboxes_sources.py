"""Reading addresses, without touching a repository."""

from pathlib import Path

import pytest

from quarterdeck.sandboxes.port import NotARepositoryError
from quarterdeck.sandboxes.sources import local_path, name_from, safe_name, without_password


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


@pytest.mark.parametrize("name", ["..", ".", "", "a/../b", "\x1b[31m", "x" * 500, "-rf", ".git"])
def test_safe_names(name):
    safe = safe_name(name)
    assert safe
    assert "/" not in safe
    assert safe[0] not in ".-"
    assert len(safe) <= 100


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
