#!/bin/sh
# Runs the Node.js that podwright is built for: the system's when it is 24 or newer, otherwise the one that
# the set-up brought into node_modules.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
major=$(node -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0)
if [ "$major" -ge 24 ]; then
  exec node "$@"
elif [ -x "$here/node_modules/node/bin/node" ]; then
  exec "$here/node_modules/node/bin/node" "$@"
fi
echo "podwright needs Node.js 24 or newer; run 'sh scripts/setup.sh' in $here to bring it into node_modules" >&2
exit 3
