#!/bin/sh
# Prints what of the sources is newer than the bundle in dist/, one of it; nothing when the bundle is of them as they are.
# Folders too: a removed file changes nothing but its folder. V8's flags, as compiled code counts under them only.
set -eu
cd "$(dirname -- "$0")/.."
if [ -f dist/podwright.js ]; then
  find src web package.json package-lock.json scripts/build.ts scripts/bundled-packages.ts scripts/launch.ts \
    scripts/warm-up.ts \
    ! -name '*.test.ts' -newer dist/podwright.js | head -n 1
else
  echo "all of it: there is no bundle"
fi
