"""How a program inside a workspace finds its service: variables of all that runs there."""

URL_VARIABLE = "QD_URL"
WORKSPACE_VARIABLE = "QD_WORKSPACE_ID"
SECRET_VARIABLE = "QD_ENGINE_SECRET"
"""Opens what the service takes from within this workspace, and nothing of any other."""

WAY_OUT = (URL_VARIABLE, WORKSPACE_VARIABLE, SECRET_VARIABLE)
