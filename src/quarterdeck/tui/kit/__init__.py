"""The parts that screens are made of, one of each.

A line is a tuple of spans that name a role (`spans`). `RowList` shows rows to choose from, `TextView` a
page of text, and `Reader` one with a title and a search field: all paint only the visible rows, however
many there are. `dialogs` ask a question with a button for each answer, `prompts` for
texts or one of several choices, and `highlight` colors program text.
"""
