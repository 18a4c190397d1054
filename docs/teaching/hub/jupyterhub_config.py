"""JupyterHub for one class on one machine. Started as root: `jupyterhub -f docs/teaching/hub/jupyterhub_config.py`.

Two folders, which these variables may name:
    COURSE   the course, a git clone that everybody may read; this file lies in it
    CLASS    the class's own: students.txt, teachers.txt, exchange/ and the hub's data, hub/ (default: /srv/class)
"""

import os
import sys
from pathlib import Path
from urllib.parse import urlencode

c = get_config()  # noqa: F821 - JupyterHub defines it
HUB = Path(__file__).resolve().parent
COURSE = Path(os.environ.get("COURSE", HUB.parents[2])).resolve()
CLASS = Path(os.environ.get("CLASS", "/srv/class")).resolve()

# Who may come: the names of the two lists, as accounts of this machine, with their passwords (accounts.sh makes them).
# The lists are read when the hub starts.
STUDENTS, TEACHERS = (set((CLASS / f"{kind}.txt").read_text("utf-8").split()) for kind in ("students", "teachers"))
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allowed_users = STUDENTS | TEACHERS
c.Authenticator.admin_users = TEACHERS

# Where: all addresses of this machine. A name and a certificate belong in front of it before anybody types a password.
c.JupyterHub.bind_url = "http://:8000"

# Nobody else may read what the hub remembers.
OWN = CLASS / "hub"
OWN.mkdir(mode=0o700, exist_ok=True)
c.JupyterHub.db_url = f"sqlite:///{OWN / 'jupyterhub.sqlite'}"
c.JupyterHub.cookie_secret_file = str(OWN / "cookie_secret")
c.ConfigurableHTTPProxy.pid_file = str(OWN / "proxy.pid")

# What each person gets. "localprocess" ignores both limits; "systemd" (package jupyterhub-systemdspawner, on a machine
# that systemd runs) keeps them. classroom.md says what was measured.
c.JupyterHub.spawner_class = os.environ.get("SPAWNER", "localprocess")
c.Spawner.mem_limit = "3G"
c.Spawner.cpu_limit = 2
c.Spawner.http_timeout = 120  # seconds, for the morning when everybody logs in at once

# Each server begins by pulling the course into the person's own folder: what somebody has changed there is kept.
FIRST = "lab/tree/course/notebooks/00_start_here.ipynb"
c.Spawner.default_url = "/git-pull?" + urlencode({"repo": COURSE.as_uri(), "targetpath": "course", "urlpath": FIRST})


def jupyter_folders(spawner) -> str:
    """Return the folders of Jupyter settings that hold for a person; the first one wins."""
    role = "teacher" if spawner.user.name in TEACHERS else "student"
    return os.pathsep.join(str(HUB / "jupyter" / name) for name in (role, "everyone"))


c.Spawner.environment = {
    "JUPYTER_CONFIG_PATH": jupyter_folders,
    "NBGRADER_EXCHANGE": str(CLASS / "exchange"),
    # PyTorch would else start a thread for every core, for every student: together they would be many times slower.
    "OMP_NUM_THREADS": "1",
}

# A server that nobody has used for an hour is stopped: its files stay, its memory is free again.
c.JupyterHub.services = [
    {"name": "idle-culler", "command": [sys.executable, "-m", "jupyterhub_idle_culler", "--timeout=3600"]}
]
c.JupyterHub.load_roles = [
    {
        "name": "idle-culler",
        "services": ["idle-culler"],
        "scopes": ["list:users", "read:users:activity", "read:servers", "delete:servers"],
    }
]
