#!/bin/sh
# record.sh CASE…: runs the real helm on the cases and keeps what it printed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
for case in "$@"; do
  cd "$here/$case" || exit 1
  rm -rf want && mkdir want
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    name=${line%%: *}
    set -f; set -- ${line#*: }; set +f
    if "${HELM:-helm}" template "$@" >"want/$name.out" 2>"want/$name.err"; then rm "want/$name.err"; else rm "want/$name.out"; fi
  done <runs.txt
done
