#!/bin/sh
# As root: an account for everybody in teachers.txt and students.txt, a first password for each, and the exchange.
# Safe to run again: it adds who is new, and changes nobody. passwords.txt is for the teacher's eyes; its order keeps
# the user numbers the same when a container is made anew.
set -eu
cd "${CLASS:-/srv/class}"
chmod 755 .
(umask 077 && touch passwords.txt)
names=$(cat teachers.txt && echo && cat students.txt)
for name in $(echo "$names" | tr -d '\r'); do # a list may come from Windows
  cut -d: -f1 passwords.txt | grep -qxF -e "$name" || echo "$name:$(od -An -N6 -tx1 /dev/urandom | tr -d ' ')" >>passwords.txt
done
number=20000
while IFS=: read -r name password; do
  number=$((number + 1))
  id "$name" >/dev/null 2>&1 && continue
  useradd --uid "$number" --key HOME_MODE=0700 --create-home --shell /bin/bash "$name"
  echo "$name:$password" | chpasswd
done <passwords.txt
# Everybody may write into nbgrader's exchange, and nobody rename what is another's (the 1 of 1777). Submissions go
# into a folder that only the teacher can list; nbgrader makes it so.
mkdir -p exchange
chmod 1777 exchange
