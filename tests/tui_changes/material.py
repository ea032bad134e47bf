"""Differences and a cockpit that shows them, without a service."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from textual.pilot import Pilot

from quarterdeck.store.changes_diff import RepositoryChange, parse_changes
from quarterdeck.store.review import Review
from quarterdeck.tui.panes.changes import ChangesPane
from tests.support.waiting import eventually
from tests.tui_shell.frozen import FrozenCockpit, screen_text, shows

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
WAIT_SECONDS = 60.0

LOGIN = """\
diff --git a/shop/login.py b/shop/login.py
index 1111111..2222222 100644
--- a/shop/login.py
+++ b/shop/login.py
@@ -1,7 +1,8 @@ import time
 import time
\x20
\x20
-def login(name, limit=3):
+def login(name, limit=30):
+    # Minutes, as everywhere.
     if not name:
         raise ValueError("no name")
     return time.time() + limit
@@ -40,3 +41,3 @@ def logout(name):
     forget(name)
-    return None
+    return True
\x20
"""
EVERYTHING = LOGIN + (
    """\
diff --git a/old.txt b/new.txt
similarity index 100%
rename from old.txt
rename to new.txt
diff --git a/tool.sh b/tool.sh
old mode 100644
new mode 100755
diff --git a/logo.png b/logo.png
index 1111111..2222222 100644
Binary files a/logo.png and b/logo.png differ
diff --git a/gone.md b/gone.md
deleted file mode 100644
index 1111111..0000000
--- a/gone.md
+++ /dev/null
@@ -1 +0,0 @@
-farewell
\\ No newline at end of file
diff --git a/trap.py b/trap.py
new file mode 100644
index 0000000..2222222
--- /dev/null
+++ b/trap.py
@@ -0,0 +1,3 @@
"""
    "+\x1b[2J\x1b]0;owned\x07if admin:\u202e# \u2066 then\r\n"
    "+\twide \u4f60\u597d \U0001f600 e\u0301\n"
    "+" + "long " * 30 + "\n"
)


def take(review: Review, *texts: str, branch: str = "main") -> None:
    """Gives a review the differences of one repository each."""
    found: list[RepositoryChange] = []
    for name, text in zip(("shop", "docs"), texts, strict=False):
        files = parse_changes(text)
        added, removed = sum(f.added for f in files), sum(f.removed for f in files)
        found.append(RepositoryChange(name, branch, added, removed, files))
    review.take(found)
    review.read_at = NOON


class Reading:
    """A frozen cockpit with one replica whose changes are looked at."""

    def __init__(self, app: FrozenCockpit, pilot: Pilot[Any]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def pane(self) -> ChangesPane:
        return self.app.screen.query_one(ChangesPane)

    @property
    def text(self) -> str:
        return screen_text(self.app)

    @property
    def at(self) -> str:
        """The line under the cursor."""
        return self.pane.view.shown_text

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def until(self, check: Callable[[], Any]) -> None:
        try:
            await eventually(check)
        except AssertionError as failure:
            failure.add_note(self.text)
            raise
        await self.pilot.pause()

    async def see(self, *texts: str) -> None:
        await self.until(lambda: shows(self.app, texts))

    async def open(self) -> None:
        """Goes to the changes of the only replica."""
        await self.pilot.pause()
        await self.press("3")
        await self.until(lambda: bool(self.app.screen.query(ChangesPane)))
        await self.pilot.pause()


def changing(app: FrozenCockpit, *texts: str, **fields: Any) -> Review:
    """A replica with changes that were read."""
    state = app.add("fix-login", **fields)
    review = app.app_state.reviews.of(state.id)
    take(review, *texts)
    review.settle()
    return review
