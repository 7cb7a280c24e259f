#!/usr/bin/env bash
# Unpacks what pack.sh made, whole or a part at a time:   unpack.sh PARTS_DIR SITE
set -euo pipefail
parts=$1 site=$2
mkdir -p "$site"
for archive in "$parts"/a/c.txz "$parts"/b/py.txz; do
  if [ -f "$archive" ]; then tar -xJf "$archive" -C "$site"; fi
done
shopt -s nullglob
wheels=("$parts"/b/deps/*.whl "$parts"/c/*.whl)
if [ ${#wheels[@]} -gt 0 ]; then
  python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \
    --target "$site" "${wheels[@]}"
fi
