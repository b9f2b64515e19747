#!/bin/sh
# Runs the Node.js that podwright is built for: the one in its own node_modules, where the set-up or the Debian package put it,
# otherwise the system's when it is 24 or newer. In this order, as asking the system's for its version costs every start 30 ms.
case $0 in
*/*/*) root=${0%/*/*} ;;
*) root=$(dirname -- "$0")/.. ;;
esac
own=$root/node_modules/node/bin/node
[ ! -x "$own" ] || exec "$own" "$@"
# Installed by npm: a Node.js beside it, as the advice below brings one, and that of npm itself, which sudo's PATH may lack.
for node in "$root"/../node-linux-*/bin/node node "$root/../../../bin/node"; do
  version=$("$node" --version 2>/dev/null) # "v24.1.0"
  major=${version#v}
  major=${major%%.*}
  [ "${major:-0}" -lt 24 ] 2>/dev/null || [ -z "$version" ] || exec "$node" "$@"
  found=${found:-$version}
done
if [ -f "$root/scripts/setup.sh" ]; then
  remedy="run 'sh scripts/setup.sh' in $root to bring it into node_modules"
else
  case $(uname -m) in aarch64) arch=arm64 ;; *) arch=x64 ;; esac
  remedy="run: npm install --global --no-bin-links node-linux-$arch@26"
fi
echo "podwright needs Node.js 24 or newer and found ${found:-none}; $remedy" >&2
exit 3
