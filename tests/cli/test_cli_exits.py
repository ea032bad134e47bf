"""What a program says about an error that none of its parts expects."""

import errno
import os

import pytest

from quarterdeck.cli.errors import Exit
from quarterdeck.cli.exits import guarded


def test_a_file_of_another_user_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Such as the home that root's service has made."""

    def look() -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/srv/deck/config.toml")

    assert guarded(look) == Exit.REFUSED
    said = capsys.readouterr().err
    assert said.startswith(
        "qd: /srv/deck/config.toml cannot be used: Permission denied.\n    Check"
    )
