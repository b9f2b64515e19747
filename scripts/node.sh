#!/bin/sh
# Runs the Node.js that podwright is built for: the system's when it is 24 or newer, otherwise the one that
# the set-up brought into node_modules.
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
version=$(node --version 2>/dev/null) # "v24.1.0"; asking the program itself costs 30 ms more
version=${version#v}
major=${version%%.*}
if [ "${major:-0}" -ge 24 ] 2>/dev/null; then
  exec node "$@"
elif [ -x "$root/node_modules/node/bin/node" ]; then
  exec "$root/node_modules/node/bin/node" "$@"
fi
echo "podwright needs Node.js 24 or newer; run 'sh scripts/setup.sh' in $root to bring it into node_modules" >&2
exit 3
