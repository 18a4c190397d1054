#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image. Beside this file lies what the archive holds.
set -euo pipefail
source=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
course=$(dirname "$source")/course

# The course needs Python 3.11 or later.
for python in python3.14 python3.13 python3.12 python3.11 python3 none; do
  "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null && break
done
if [ "$python" = none ]; then
  apt-get update
  DEBIAN_FRONTEND=noninteractive apt-get install --yes python3.12 python3.12-venv \
    || DEBIAN_FRONTEND=noninteractive apt-get install --yes python3.11 python3.11-venv
  python=$(command -v python3.12 || command -v python3.11)
fi

# What students' programs may read: the course and its packages. What they may not stays in this folder.
mkdir -p "$course"
cp -R "$source/course/." "$course"
"$python" -m venv "$course/venv"
offered=()
if [ -d "$source/wheels" ]; then
  offered=(--no-index --find-links "$source/wheels")
elif [ -f "$source/index.txt" ]; then
  offered=(--extra-index-url "$(cat "$source/index.txt")")
fi
"$course/venv/bin/python" -m pip install --no-cache-dir "${offered[@]}" -r "$course/requirements-grading.txt"
echo "$course" > "$("$course/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/course.pth"
"$course/venv/bin/python" -m compileall -q "$course/transformer_lib"
chmod -R a+rX "$course"

# Submissions run as this user, whom nothing but the course is open to.
id student > /dev/null 2>&1 || useradd --system --shell /usr/sbin/nologin student
chmod -R go-rwx "$source"
# An image that could grade nobody is not built.
(cd "$course" && runuser -u student -- "$course/venv/bin/python" -c 'import torch, transformer_lib.course.exercises')
