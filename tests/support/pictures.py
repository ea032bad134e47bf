"""Pictures of a screen, drawn from the emulator's cells: SVG as text, PNG on an exact grid."""

from dataclasses import dataclass
from html import escape
from pathlib import Path

import pyte
from PIL import Image, ImageDraw, ImageFont
from rich.cells import cell_len

FONTS = (
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
    "/usr/share/fonts/TTF/DejaVuSansMono.ttf",
    "/Library/Fonts/Menlo.ttc",
)
SIZE = 15
WIDTH, HEIGHT = 9, 19
FOREGROUND, BACKGROUND = "e0e0e0", "121212"
NAMED = {
    "black": "000000",
    "red": "cd3131",
    "green": "0dbc79",
    "brown": "e5e510",
    "yellow": "e5e510",
    "blue": "2472c8",
    "magenta": "bc3fbc",
    "cyan": "11a8cd",
    "white": "e5e5e5",
    "brightblack": "7f7f7f",  # muted text; black is not seen on the background
}


@dataclass(frozen=True)
class Cell:
    """One character with its colors, as six hexadecimal digits."""

    text: str
    foreground: str
    background: str
    bold: bool
    underline: bool


def _color(name: str, default: str) -> str:
    if name == "default":
        return default
    return NAMED.get(name) or NAMED.get(name.removeprefix("bright"), name)


def cells(screen: pyte.Screen) -> list[list[Cell]]:
    """The screen as rows of cells; the second half of a wide character is an empty text."""
    rows: list[list[Cell]] = []
    for y in range(screen.lines):
        row: list[Cell] = []
        for x in range(screen.columns):
            char = screen.buffer[y][x]
            front, back = _color(char.fg, FOREGROUND), _color(char.bg, BACKGROUND)
            if char.reverse:
                front, back = back, front
            row.append(Cell(char.data, front, back, char.bold, char.underscore))
        rows.append(row)
    return rows


def write_png(screen: pyte.Screen, path: Path) -> None:
    """Draws the screen as a PNG.

    Raises:
        FileNotFoundError: no monospaced font with box drawing characters is installed.
    """
    font_path = next((name for name in FONTS if Path(name).exists()), None)
    if font_path is None:
        raise FileNotFoundError("DejaVu Sans Mono is needed (Debian: fonts-dejavu-core)")
    font = ImageFont.truetype(font_path, SIZE)
    bold_path = font_path.replace("Mono.ttf", "Mono-Bold.ttf")
    bold = ImageFont.truetype(bold_path, SIZE) if Path(bold_path).exists() else font
    size = (screen.columns * WIDTH, screen.lines * HEIGHT)
    image = Image.new("RGB", size, f"#{BACKGROUND}")
    draw = ImageDraw.Draw(image)
    for y, row in enumerate(cells(screen)):
        for x, cell in enumerate(row):
            left, top = x * WIDTH, y * HEIGHT
            span = max(1, cell_len(cell.text)) if cell.text else 0
            if not span:
                continue
            box = (left, top, left + span * WIDTH - 1, top + HEIGHT - 1)
            draw.rectangle(box, fill=f"#{cell.background}")
            if cell.text.strip():
                chosen = bold if cell.bold else font
                draw.text((left, top + 1), cell.text, fill=f"#{cell.foreground}", font=chosen)
            if cell.underline:
                line = top + HEIGHT - 2
                draw.line((left, line, left + span * WIDTH, line), fill=f"#{cell.foreground}")
    image.save(path, optimize=True)


def write_svg(screen: pyte.Screen, path: Path) -> None:
    """Writes the screen as SVG: a rectangle per run of background, a text per run of style."""
    width, height = screen.columns * WIDTH, screen.lines * HEIGHT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="{SIZE}">',
        f'<rect width="{width}" height="{height}" fill="#{BACKGROUND}"/>',
    ]
    for y, row in enumerate(cells(screen)):
        x = 0
        while x < len(row):
            first = row[x]
            end = x + 1
            while end < len(row) and _same_style(first, row[end]):
                end += 1
            parts += _svg_run(row[x:end], x, y)
            x = end
    parts.append("</svg>\n")
    path.write_text("\n".join(parts), encoding="utf-8")


def _same_style(one: Cell, other: Cell) -> bool:
    return (one.foreground, one.background, one.bold, one.underline) == (
        other.foreground,
        other.background,
        other.bold,
        other.underline,
    )


def _svg_run(run: list[Cell], x: int, y: int) -> list[str]:
    first, left, top, width = run[0], x * WIDTH, y * HEIGHT, len(run) * WIDTH
    parts: list[str] = []
    if first.background != BACKGROUND:
        parts.append(
            f'<rect x="{left}" y="{top}" width="{width}" height="{HEIGHT}" '
            f'fill="#{first.background}"/>'
        )
    text = "".join(cell.text for cell in run)
    if text.strip():
        weight = ' font-weight="bold"' if first.bold else ""
        line = ' text-decoration="underline"' if first.underline else ""
        parts.append(
            f'<text x="{left}" y="{top + SIZE - 1}" textLength="{width}" xml:space="preserve" '
            f'fill="#{first.foreground}"{weight}{line}>{escape(text)}</text>'
        )
    return parts
