"""Queued uploads outlive every kill, and each is written once (operation 14)."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.installation import Installation, block
from tests.support.waiting import until

pytestmark = pytest.mark.long

COUNT = 12


def upload(deck: Installation, id: str, name: str, content: bytes) -> dict[str, Any]:
    answer = deck.ask(
        "POST", f"/v1/workspaces/{id}/canvas", files={"file": content}, data={"filename": name}
    )
    assert answer.status_code == 202, answer.text
    return answer.json()


def listed(deck: Installation, id: str) -> dict[str, int]:
    answer = deck.ask("GET", f"/v1/workspaces/{id}/canvas")
    if answer.status_code != 200:
        return {}
    return {one["filename"]: one["sizeBytes"] for one in answer.json()["items"]}


def has_files(directory: Path, count: int) -> bool:
    return len(list(directory.glob("*"))) >= count


def asleep(deck: Installation) -> str:
    id = deck.create()
    deck.post(f"/v1/workspaces/{id}/sleep")
    return id


def test_killed_again_and_again_while_uploads_are_written(own: Installation) -> None:
    id = asleep(own)
    ids = [
        upload(own, id, "plan.md", bytes([65 + n]) * (200_000 + n))["uploadId"]
        for n in range(COUNT)
    ]
    own.kill()
    own.start()
    text = block("cat ~/.quarterdeck/canvas/* | wc -c")
    message = own.send(id, text, canvasUploadIds=ids)["message_id"]
    canvas = own.place(id) / "home" / ".quarterdeck" / "canvas"
    for count in (1, 3, 5, 8):
        until(partial(has_files, canvas, count), "another upload")
        own.kill()
        own.start()
    own.result(id, message)
    names = ["plan.md", *(f"plan-{n}.md" for n in range(2, COUNT + 1))]
    assert listed(own, id) == {name: 200_000 + n for n, name in enumerate(names)}


def test_the_engine_is_killed_while_uploads_are_written(own: Installation) -> None:
    id = asleep(own)
    for n in range(COUNT):
        upload(own, id, f"{n}.bin", os.urandom(3 << 20))
    own.post(f"/v1/workspaces/{id}/wake", status=202)
    canvas = own.place(id) / "home" / ".quarterdeck" / "canvas"
    until(lambda: len(list(canvas.glob("*"))) > 2, "some uploads")
    os.kill(own.engine(id), signal.SIGKILL)
    until(lambda: len(listed(own, id)) == COUNT, "all uploads")
    assert set(listed(own, id).values()) == {3 << 20}
    until(lambda: not list((canvas.parent / "uploads").glob("*")), "no copy left behind")


def test_the_memory_of_uploads_is_flat(own: Installation) -> None:
    from tests.support.installation import megabytes

    id = asleep(own)
    content = b"x" * (5 << 20)
    for n in range(3):
        upload(own, id, f"{n}.bin", content)
    before = megabytes(own.pid, "VmHWM")
    for n in range(10):
        upload(own, id, f"more-{n}.bin", content)
        answer = own.ask(
            "POST",
            f"/v1/workspaces/{id}/canvas",
            files={"file": content + b"y"},
            data={"filename": "over.bin"},
        )
        assert answer.status_code == 413
    assert megabytes(own.pid, "VmHWM") - before < 40
