"""Only rows that differ are painted again, and none is forgotten."""

from collections.abc import Iterable

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip

from quarterdeck.tui.transcript_view.viewport import Window
from tests.tui_transcript.view_app import Host, say, settle, talk


def strips(texts: Iterable[str], known: dict[str, Strip]) -> list[Strip]:
    return [known.setdefault(text, Strip([Segment(text * 3)])) for text in texts]


def show(window: Window, texts: str, known: dict[str, Strip]) -> list[tuple[int, int]]:
    window.show(strips(texts, known), lambda strip: strip.crop(0, 2))
    return list(window.take_changes())


def test_rows_that_stay_are_not_painted() -> None:
    window, known = Window(), dict[str, Strip]()
    assert show(window, "abcd", known) == [(0, 4)]
    assert show(window, "abcd", known) == []
    assert show(window, "axcy", known) == [(1, 2), (3, 4)]
    assert show(window, "xcyz", known) == [(0, 4)]
    assert show(window, "xcyzz", known) == [(0, 5)]
    window.forget()
    assert show(window, "xcyzz", known) == [(0, 5)]


def test_a_row_that_may_have_been_painted_by_others_is_painted_again() -> None:
    window, known = Window(), dict[str, Strip]()
    show(window, "ab", known)
    window.show(strips("xb", known), lambda strip: strip)
    window.hand_over()
    assert show(window, "ab", known) == [(0, 1)]


async def test_a_token_paints_one_row() -> None:
    app = Host(*talk(50), say("word", "last"))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        app.view.refresh()
        app.view._exchange_repaint_regions()
        app.view.refresh_change(app.view.transcript.append(say(" more", "last")))
        height, width = app.view.size.height, app.view.size.width
        assert app.view._exchange_repaint_regions() == {Region(0, height - 1, width, 1)}
        assert app.view._exchange_repaint_regions() == ()


async def test_a_view_that_was_removed_before_its_frame_stays_as_it_was() -> None:
    app = Host(*talk(5), say("word", "last"))
    async with app.run_test(size=(60, 20)) as pilot:
        await settle(pilot)
        view = app.view
        region = view.size.region
        before = view.render_lines(region)
        await view.remove()
        view.refresh_change(view.transcript.append(say(" more", "last")))
        view._exchange_repaint_regions()
        assert view.render_lines(region) == before
