"""The style of a part that a widget paints itself, over that of the widget.

Textual's own partial styles leave out what is transparent: a background of 30 % would be painted in
full, and a text that is to contrast with its background would be white on any.
"""

from rich.style import Style
from textual.widget import Widget


def part_style(widget: Widget, name: str) -> Style:
    """What the theme says of a component, mixed with what is behind it; the rest is left open."""
    cache = widget._rich_style_cache  # pyright: ignore[reportPrivateUsage] - emptied with the theme
    key = (f"part of {name}",)
    if key not in cache:
        style = _mixed(widget, name)
        cache[key] = (style, style)
    return cache[key][0]


def _mixed(widget: Widget, name: str) -> Style:
    styles = widget.get_component_styles(name)
    behind = widget.background_colors[1]
    has_background = styles.has_rule("background") and styles.background.a > 0
    if has_background:
        behind += styles.background
    color = None
    if styles.has_rule("color") and styles.color.a > 0:
        text = styles.color
        if styles.has_rule("auto_color") and styles.auto_color:
            text = behind.get_contrast_text(text.a)
        color = (behind + text).rich_color
    background = behind.rich_color if has_background else None
    return Style(color=color, bgcolor=background) + styles.text_style
