#!/usr/bin/env python3
"""record.py KUSTOMIZE [CASE…]: builds the cases with the real kustomize and writes want.yaml or want-error."""
import pathlib
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
tool, names = sys.argv[1], sys.argv[2:]
for case in sorted(p for p in here.iterdir() if (p / "in").is_dir()):
    if names and case.name not in names:
        continue
    args = (case / "args").read_text().split() if (case / "args").exists() else ["."]
    done = subprocess.run([tool, "build", *args], cwd=case / "in", capture_output=True, text=True)
    for old in ("want.yaml", "want-error"):
        (case / old).unlink(missing_ok=True)
    if done.returncode == 0:
        (case / "want.yaml").write_text(done.stdout)
    else:
        (case / "want-error").write_text("refused\n")
