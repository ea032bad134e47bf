"""Programs outside of the cockpit that cannot be given a text."""

import tempfile
from typing import Any, cast

import pytest

from quarterdeck.tui.outside import OutsideError, edit, look_at
from tests.support.disks import limited_files


async def test_a_full_disk_is_told() -> None:
    app = cast(Any, None)
    tempfile.gettempdir()  # is looked for once, by writing files
    with limited_files(0):
        with pytest.raises(OutsideError, match="File too large"):
            await edit(app, "a.md", "text")
        with pytest.raises(OutsideError, match="File too large"):
            await look_at(app, "a.md", b"text")
