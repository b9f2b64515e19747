#!/bin/sh
# Runs the Node.js that podwright is built for: the one in its own node_modules, from the set-up or the Debian package,
# otherwise the system's if it is 24 or newer. In this order, because querying the system's version costs 30 ms at every
# start.
case $0 in
*/*/*) root=${0%/*/*} ;;
*) root=$(dirname -- "$0")/.. ;;
esac
own=$root/node_modules/node/bin/node
[ ! -x "$own" ] || exec "$own" "$@"
# Installed by npm: a Node.js package beside it (see the advice below), and npm's own Node.js, which sudo's PATH may
# lack.
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
  # npm's own prefix may be another than the one that this podwright lies in.
  root=$(cd -- "$root" && pwd)
  case $root in
  */lib/node_modules/*) scope=--global prefix=${root%/lib/node_modules/*} ;;
  */node_modules/*) scope="" prefix=${root%/node_modules/*} ;;
  *) scope=--global prefix="" ;;
  esac
  case $prefix in *[!A-Za-z0-9@%+=:,./_-]*) prefix="'$(printf %s "$prefix" | sed "s/'/'\\\\''/g")'" ;; esac
  remedy="run: npm install${scope:+ $scope}${prefix:+ --prefix $prefix} --no-bin-links node-linux-$arch@26"
fi
echo "podwright needs Node.js 24 or newer and found ${found:-none}; $remedy" >&2
exit 3
