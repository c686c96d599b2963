#!/bin/sh
# bench/helm.sh BINARY HELM CHART [ARGS…]: `helm template` of the real helm against ours, in one run.
#
# CHART is the large chart (a folder or archive); the small one is bench/helm-small. Prints time and peak memory of
# both and their ratios. Targets: at least 10 times faster on both, at most a quarter of the memory on the large one.
set -eu
ours=$1; helm=$2; large=$3; shift 3
here=$(cd "$(dirname "$0")" && pwd)
exec python3 "$here/helm.py" "$ours" "$helm" "$here/helm-small" "$large" "$@"
