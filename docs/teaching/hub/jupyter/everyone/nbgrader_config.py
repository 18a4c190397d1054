"""The class's nbgrader course, and the folder through which assignments are handed out and in."""

import os

c = get_config()  # noqa: F821 - nbgrader defines it
c.CourseDirectory.course_id = "transformer"
c.Exchange.root = os.environ["NBGRADER_EXCHANGE"]  # set by jupyterhub_config.py
