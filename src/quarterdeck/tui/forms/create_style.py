"""How the create dialog looks: it fits into 80x24, and scrolls where it does not."""

STYLE = """
CreateScreen {
    align: center middle;
    & > VerticalScroll {
        width: 76;
        max-width: 98%;
        height: auto;
        max-height: 98%;
        padding: 0 2;
        background: $surface;
        border: round $primary;
    }
    & Label { width: 14; color: $text-muted; }
    & .row { height: auto; }
    & Input, & Select { width: 1fr; }
    & TextArea { height: 5; border: round $panel-lighten-2; padding: 0 1; }
    & TextArea:focus { border: round $border; }
    & .error { color: $text-error; height: auto; display: none; margin-left: 14; }
    & ModelForm .help { display: none; }
    & ModelForm .help.said { display: block; height: auto; }
    & ModelForm .label { width: 14; }
    & ModelForm Editor { height: 4; }
    & ModelForm .error { margin-left: 14; }
    & #attached { color: $text-muted; height: auto; display: none; }
    & #message-error { margin-left: 0; }
    & #form-error { margin-left: 0; }
    & #hint { color: $text-muted; }
    & #buttons { height: auto; align-horizontal: right; }
    & Button { margin-left: 2; }
}
"""
