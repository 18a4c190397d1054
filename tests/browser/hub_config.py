"""The class's own JupyterHub configuration (docs/teaching/hub), tried without accounts of the machine.

The test sets COURSE, CLASS, HUB_PASSWORD and HUB_PORTS; one password opens every student's account, and all servers
run under the tester's own.
"""

import os
from pathlib import Path

c = get_config()  # noqa: F821 - JupyterHub defines it
load_subconfig(str(Path(__file__).parents[2] / "docs/teaching/hub/jupyterhub_config.py"))  # noqa: F821 - so is this
public, hub, proxy = os.environ["HUB_PORTS"].split()

c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = os.environ["HUB_PASSWORD"]
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = os.environ["CLASS"] + "/home/{username}"
c.Spawner.args = ["--allow-root"]  # a container's tester is often root
c.JupyterHub.bind_url = f"http://127.0.0.1:{public}"
c.JupyterHub.hub_bind_url = f"http://127.0.0.1:{hub}"
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{proxy}"
