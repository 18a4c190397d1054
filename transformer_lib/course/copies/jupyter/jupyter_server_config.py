"""What the course's JupyterLab adds to the user's own settings; `transformer_lib.course.copies.lab` points to it.

It imports nothing of the library, which would bring PyTorch into the server's process.
"""

# mypy: ignore-errors

c = get_config()  # noqa: F821 - Jupyter defines it

VIEW = "application/vnd.jupyter.widget-view+json"


def drop_widget_views(model, **kwargs):
    """Save, of an output that is a widget and something else, the something else.

    A view names a model of the kernel, by a random id. JupyterLab prefers it to the stored picture or text even when
    that kernel has ended, and can then only say that the model is not found.
    """
    if model["type"] != "notebook" or not model.get("content"):
        return
    for cell in model["content"]["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if VIEW in data and "text/html" in data:
                del data[VIEW]


c.FileContentsManager.pre_save_hook = drop_widget_views
