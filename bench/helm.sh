#!/bin/sh
# bench/helm.sh BINARY HELM CHART [ARGS…]: see helm.py, which does the work.
exec python3 "$(dirname "$0")/helm.py" "$@"
