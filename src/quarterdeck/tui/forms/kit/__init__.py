"""Forms made from the wire's models.

    Field (labels, help) + model (type, bounds) -> Spec -> FieldRow -> ModelForm -> body

`ModelForm` is a widget with one row per field; `FormScreen` a dialog around it that saves, shows a
refusal next to its field, and asks before typed values are dropped. What the model itself refuses is
shown next to the field before a request is sent.
"""

from quarterdeck.tui.forms.kit.form import FormScreen, ModelForm, settled
from quarterdeck.tui.forms.kit.spec import (
    FILL,
    Field,
    FieldKind,
    InvalidValueError,
    Refusal,
    Spec,
    refusal_of,
)

__all__ = [
    "FILL",
    "Field",
    "FieldKind",
    "FormScreen",
    "InvalidValueError",
    "ModelForm",
    "Refusal",
    "Spec",
    "refusal_of",
    "settled",
]
