"""An extension of the Jupyter server: of a widget, a saved notebook keeps the picture.

It imports nothing of the library, which would bring PyTorch into the server's process. It is an extension rather than
a setting `pre_save_hook`, since the server reads its settings more than once and warns when such a hook is set again;
a user's own hook also stays in force.
"""

# mypy: ignore-errors

VIEW = "application/vnd.jupyter.widget-view+json"


def _jupyter_server_extension_points():
    return [{"module": __name__}]


def _load_jupyter_server_extension(server):
    server.contents_manager.register_pre_save_hook(drop_widget_views)


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
