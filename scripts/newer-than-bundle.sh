#!/bin/sh
# Prints one source that is newer than the bundle in dist/; nothing if the bundle is current. Checks directories, too,
# because a removed file changes only its directory, and V8's flags, because compiled code is valid only under them.
set -eu
cd "$(dirname -- "$0")/.."
if [ -f dist/podwright.js ]; then
  find src web package.json package-lock.json scripts/build.ts scripts/bundled-packages.ts scripts/launch.ts \
    scripts/warm-up.ts \
    ! -name '*.test.ts' -newer dist/podwright.js | head -n 1
else
  echo "all of it: there is no bundle"
fi
