"""Forms made from the wire's models.

    Field (what a person is told) + model (type, bounds) -> Spec -> FieldRow -> ModelForm -> body

`ModelForm` is a widget with one row per field; `FormScreen` a dialog around it that saves, places a
refusal beside the field it speaks of, and asks before something typed is dropped. What the model
itself refuses is said beside the field before anybody is asked.
"""

from quarterdeck.tui.forms.kit.errors import Refusal, Refused, refusal_of
from quarterdeck.tui.forms.kit.form import ModelForm
from quarterdeck.tui.forms.kit.guard import Unsaved, UnsavedScreen
from quarterdeck.tui.forms.kit.screen import FormScreen
from quarterdeck.tui.forms.kit.settling import settled
from quarterdeck.tui.forms.kit.spec import FILL, Field, Kind, Spec

__all__ = [
    "FILL",
    "Field",
    "FormScreen",
    "Kind",
    "ModelForm",
    "Refusal",
    "Refused",
    "Spec",
    "Unsaved",
    "UnsavedScreen",
    "refusal_of",
    "settled",
]
