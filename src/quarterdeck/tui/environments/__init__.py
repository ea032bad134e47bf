"""The screen of environments: what workspaces are created from.

    EnvironmentsScreen -> list of environments | one Section at a time -> dialogs made from forms

State is in `store.environments` and its siblings; nothing is read before it is shown.
"""
