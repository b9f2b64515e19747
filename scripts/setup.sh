#!/bin/sh
# Installs what podwright needs and the machine lacks.
#
#   setup.sh [--test]      --test: also what the tests need
#
# It starts and enables no service, and overwrites no files but its own. Exit status: 0 ready, 3 something is missing
# that it cannot install.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
# Only the machine's programs: npm must not run on the Node.js that it is about to replace.
PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -v '/node_modules/' | paste -s -d ':' -):/usr/sbin:/sbin
log=$root/.cache/setup.log

for_tests=false
case ${1:-} in
--test) for_tests=true ;;
'') ;;
*)
  echo "usage: setup.sh [--test]" >&2
  exit 2
  ;;
esac

say() { printf '%s\n' "setup: $*" >&2; }

fail() {
  say "$*"
  exit 3
}

# Runs a command with its output in the log; shows the end of that if it fails.
logged() {
  if "$@" >>"$log" 2>&1 </dev/null; then return 0; fi
  tail -n 15 "$log" >&2
  return 1
}

has_program() { command -v "$1" >/dev/null 2>&1; }
has_catatonit() { has_program catatonit || [ -x /usr/libexec/catatonit/catatonit ] || [ -x /usr/libexec/podman/catatonit ]; }
has_cni_plugins() { [ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || [ -x /usr/libexec/cni/bridge ]; }
# `ldd` fails for a static program; its message depends on the C library.
has_static_busybox() { has_program busybox && ! ldd "$(command -v busybox)" >/dev/null 2>&1; }

# Debian's names of missing packages, determined by the programs themselves, whoever installed them.
missing_packages() {
  has_program containerd || echo containerd
  has_program runc || echo runc
  has_cni_plugins || echo containernetworking-plugins
  has_program iptables || echo iptables
  has_catatonit || echo catatonit
  has_static_busybox || echo busybox-static
  if [ "$for_tests" = true ]; then
    has_program docker-registry || echo docker-registry
    has_program chromium || echo chromium
    # A browser needs a font.
    [ -n "$(find /usr/share/fonts -name '*.ttf' -o -name '*.otf' 2>/dev/null | head -n 1)" ] || echo fonts-dejavu-core
    has_program unshare || echo util-linux
    has_program dbus-daemon || echo dbus-daemon
  fi
}

is_debian_12_or_newer() {
  [ -r /etc/os-release ] || return 1
  # Testing and unstable have no VERSION_ID.
  (
    . /etc/os-release
    [ "${ID:-}" = debian ] && [ "${VERSION_ID:-99}" -ge 12 ]
  )
}

# Debian's packages start their services on installation unless this file forbids it.
policy=/usr/sbin/policy-rc.d
made_policy=false
forbid_service_starts() {
  [ ! -e "$policy" ] || return 0
  made_policy=true
  printf '#!/bin/sh\n# Made by the set-up of podwright while it installs packages; removed right after.\nexit 101\n' >"$policy"
  chmod 755 "$policy"
}
allow_service_starts() {
  [ "$made_policy" = false ] || rm -f "$policy"
  made_policy=false
}

# Nor must they start at boot: podwright runs its own containerd.
disable_services_of() {
  has_program systemctl || return 0
  for package in "$@"; do
    case $package in
    containerd | docker-registry) systemctl disable "$package.service" >>"$log" 2>&1 || true ;;
    esac
  done
}

install_packages() {
  say "installing $*"
  trap allow_service_starts EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  export DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1
  logged apt-get -q -o DPkg::Lock::Timeout=300 update ||
    say "apt-get update failed; trying with the package lists at hand"
  forbid_service_starts
  # --no-remove: never remove installed packages that conflict.
  logged apt-get -q -y -o DPkg::Lock::Timeout=300 --no-install-recommends --no-remove install "$@" ||
    fail "apt-get could not install $* (see $log)"
  allow_service_starts
  trap - EXIT INT TERM HUP
  disable_services_of "$@"
}

set_up_packages() {
  missing=$(missing_packages | paste -s -d ' ' -)
  [ -n "$missing" ] || return 0
  is_debian_12_or_newer ||
    fail "missing here: $missing (Debian's names). Install containerd, runc, the CNI plugins, iptables, catatonit and a" \
      "statically linked busybox with your distribution's package manager, then run this again"
  [ "$(id -u)" -eq 0 ] || fail "missing: $missing. Run this as root, or: sudo apt-get install $missing"
  # shellcheck disable=SC2086 # a list of words
  install_packages $missing
  left=$(missing_packages | paste -s -d ' ' -)
  [ -z "$left" ] || fail "installed, but still not found: $left (see $log)"
}

# Node modules, including the Node.js that podwright is built for.
set_up_node_modules() {
  stamp=node_modules/.package-lock.json
  if [ -f "$stamp" ] && [ ! package-lock.json -nt "$stamp" ] && [ -x node_modules/node/bin/node ]; then return 0; fi
  has_program npm || fail "npm is missing; install Node.js 20 or newer with npm"
  say "installing Node.js packages"
  logged npm ci --include=dev --no-audit --no-fund || fail "npm ci failed (see $log)"
  # The package `node` gets its program from an install script, which npm's configuration may disable.
  [ -x node_modules/node/bin/node ] || logged npm rebuild --ignore-scripts=false node ||
    fail "npm did not bring node_modules/node/bin/node (see $log)"
  touch "$stamp"
}

set_up_bundle() {
  [ -n "$(sh scripts/newer-than-bundle.sh)" ] || return 0
  say "building dist/podwright.js"
  logged sh scripts/node.sh scripts/build.ts || fail "the build failed (see $log)"
}

# The pre-commit hook; only if this directory is the checkout and has no other hooks.
set_up_git_hooks() {
  [ -e .git ] && has_program git || return 0
  hooks=$(git rev-parse --git-path hooks 2>/dev/null) || return 0
  [ -z "$(git config --get core.hooksPath)" ] && [ ! -e "$hooks/pre-commit" ] || return 0
  git config core.hooksPath scripts/hooks
}

mkdir -p .cache
# Concurrent set-ups would remove each other's node_modules.
exec 9>.cache/setup.lock
! has_program flock || flock 9
: >"$log"

set_up_packages
set_up_node_modules
set_up_bundle
set_up_git_hooks
if [ "$for_tests" = true ]; then
  sh scripts/fetch-runtimes.sh >>"$log" || say "tests of the containerd versions that are missing will be skipped"
fi
