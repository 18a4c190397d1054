"""A teacher's: the folder in which assignments are written and graded, `grading` in the teacher's home."""

from pathlib import Path

c = get_config()  # noqa: F821 - nbgrader defines it
c.CourseDirectory.root = str(Path.home() / "grading")
