"""Style of a form: one row per field, its error below it; the form scrolls where it does not fit."""

FIELD = """
FieldRow {
    height: auto;
    & > Horizontal { height: auto; }
    & .label { width: 16; color: $text-muted; }
    & .bounds { width: auto; max-width: 24; color: $text-muted; padding: 0 0 0 1; }
    & FieldInput, & ChoiceField, & SeveralField { width: 1fr; }
    & OnOff { width: 1fr; padding: 0 1; &:focus { text-style: reverse; } }
    & Editor { border: round $panel-lighten-2; padding: 0 1; }
    & Editor { border-title-color: $text-muted; border-subtitle-color: $text-muted; }
    & Editor:focus { border: round $border; }
    & .error { color: $text-error; height: auto; display: none; margin-left: 16; }
    & .note { color: $text-muted; height: auto; display: none; margin-left: 16; }
    &.lines .error, &.lines .note { margin-left: 2; }
    &.tall { height: 1fr; min-height: 6; }
    &.-changed .label { color: $text-warning; }
    &.-changed Editor { border-title-color: $text-warning; }
    &.-wrong Editor { border: round $error; }
}
"""

FORM = """
ModelForm {
    height: auto;
    & > VerticalScroll { height: auto; scrollbar-size-vertical: 1; }
    & .fold { color: $text-muted; }
    & .fold:focus { color: $text; text-style: reverse; }
    & .folded { height: auto; }
    & .help { color: $text-muted; height: auto; min-height: 1; max-height: 2; }
    & .general { color: $text-error; height: auto; display: none; }
    &.tall { height: 1fr; }
    &.tall > VerticalScroll { height: 1fr; }
}
"""

SCREEN = """
FormScreen {
    align: center middle;
    & > Vertical {
        width: 90;
        max-width: 98%;
        height: auto;
        max-height: 98%;
        padding: 0 2;
        background: $surface;
        border: round $primary;
    }
    & > Vertical.tall { height: 98%; width: 98%; }
    & #foot { height: 1; }
    & #keys { width: 1fr; color: $text-muted; }
    & Button { margin-left: 2; min-width: 10; }
}
"""
