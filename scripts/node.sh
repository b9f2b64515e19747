#!/bin/sh
# Runs the Node.js that podwright is built for: the one that the set-up brought into node_modules, otherwise the system's when
# it is 24 or newer. In this order, as asking the system's for its version costs every start 30 ms.
case $0 in
*/*/*) root=${0%/*/*} ;;
*) root=$(dirname -- "$0")/.. ;;
esac
own=$root/node_modules/node/bin/node
[ ! -x "$own" ] || exec "$own" "$@"
version=$(node --version 2>/dev/null) # "v24.1.0"
version=${version#v}
major=${version%%.*}
[ "${major:-0}" -lt 24 ] 2>/dev/null || [ -z "$version" ] || exec node "$@"
echo "podwright needs Node.js 24 or newer; run 'sh scripts/setup.sh' in $root to bring it into node_modules" >&2
exit 3
