"""Finding: how places are counted, and the one that is shown told apart."""

from tests.tui_transcript.view_app import Host, say, settle, talk, tool, user


def marks(app: Host, part: str) -> list[str]:
    """The words that are drawn in a look of finding, from the top."""
    style = app.view.get_component_rich_style(f"transcript--{part}")
    return [
        segment.text
        for strip in app.view._window.strips
        for segment in strip
        if segment.style and segment.style.bgcolor == style.bgcolor
    ]


async def test_one_place_is_told_apart_and_counted() -> None:
    app = Host(user(0), say("a twig, a twig\n\nand a TWIG"))
    async with app.run_test(size=(60, 20)) as pilot:
        for number in (1, 2, 3):
            assert app.view.find("twig") if number == 1 else app.view.find_again(1)
            await settle(pilot)
            assert app.view.found == (number, 3)
            words = ["twig", "twig", "TWIG"]
            assert marks(app, "found-here") == [words.pop(number - 1)]
            assert marks(app, "found") == words
        assert not app.view.find_again(1)
        assert app.view.found == (3, 3)
        assert app.view.find_again(1, around=True)
        assert app.view.found == (1, 3)
        assert app.view.find_again(-1, around=True)
        assert app.view.found == (3, 3)
        app.view.find("")
        await settle(pilot)
        assert app.view.found is None
        assert not marks(app, "found-here")


async def test_places_of_what_is_folded_and_not_drawn_are_counted_one_by_one() -> None:
    told = {"type": "content", "content": {"type": "text", "text": "a twig\nmore\na twig"}}
    folded = tool("folded", title="cat log", kind="execute", status="completed", content=[told])
    app = Host(user(0), say("the first twig"), *talk(30), folded, *talk(30, 30), say("last twig"))
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.press("home")
        await settle(pilot)
        assert app.view.find("twig")
        seen = [app.view.found]
        while app.view.find_again(1):
            await settle(pilot)
            seen.append(app.view.found)
        assert seen == [(number, 4) for number in (1, 2, 3, 4)]
        while app.view.find_again(-1):
            seen.append(app.view.found)
        assert seen[4:] == [(number, 4) for number in (3, 2, 1)]


async def test_another_transcript_is_counted_anew() -> None:
    app, other = Host(say("a twig")), Host(say("twig twig"))
    async with app.run_test(size=(60, 20)) as pilot:
        assert app.view.find("twig")
        app.view.set_transcript(other.view.transcript)
        await settle(pilot)
        assert app.view.found is None
        assert app.view.find_again(1)
        assert app.view.found == (1, 2)
