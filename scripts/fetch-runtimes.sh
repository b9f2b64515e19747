#!/bin/sh
# Fetches containerd from Debian suites other than the system's into .cache/runtimes/<suite>/, for tests with several
# versions, and kubectl from sid, because bookworm has none. apt uses its own configuration under .cache/apt: the
# system's sources, lists and packages stay unchanged.
#
#   fetch-runtimes.sh [--refresh] [SUITE…]        default: trixie sid
#
# Exit status: 0 all present, 1 at least one could not be fetched or does not run here.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"

refresh=false
if [ "${1:-}" = --refresh ]; then
  refresh=true
  shift
fi
[ $# -gt 0 ] || set -- trixie sid

say() { printf '%s\n' "runtimes: $*" >&2; }

# The Debian mirrors of the system's sources, in either format; then the public one.
mirrors() {
  codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
  apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
    sed -n "s#^${codename:-sid} main \(https\{0,1\}://.*[^/]\)/*\$#\1#p"
  echo http://deb.debian.org/debian
}

# Writes an apt configuration for one suite of one mirror; $1 suite, $2 mirror, $3 folder.
configure_apt() {
  mkdir -p "$3/lists/partial" "$3/archives/partial" "$3/preferences.d"
  : >"$3/status"
  keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  signed=
  [ ! -r "$keyring" ] || signed="[signed-by=$keyring] "
  echo "deb ${signed}$2 $1 main" >"$3/sources.list"
  cat >"$3/apt.conf" <<EOF
Dir::Etc::SourceList "$3/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "$3/preferences.d";
Dir::State "$3";
Dir::State::Lists "$3/lists";
Dir::State::Status "$3/status";
Dir::Cache "$3";
Dir::Cache::Archives "$3/archives";
Dir::Log "$3";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "2";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
EOF
}

packages_of() {
  echo containerd
  [ "$1" != sid ] || echo kubectl
}

# The missing packages of a suite; all of them with --refresh.
missing_of() {
  for package in $(packages_of "$1"); do
    if [ "$refresh" = true ] || [ ! -x ".cache/runtimes/$1/usr/bin/$package" ]; then echo "$package"; fi
  done
}

# Downloads missing packages and unpacks them beside existing ones, which may be in use; $1 suite, $2 mirror.
fetch() {
  apt=$root/.cache/apt/$1
  rm -rf "$apt"
  configure_apt "$1" "$2" "$apt"
  log=$root/.cache/apt/$1.log
  packages=$(missing_of "$1")
  # shellcheck disable=SC2086 # a list of words
  {
    apt-get -c "$apt/apt.conf" -q update &&
      (cd "$apt/archives" && apt-get -c "$apt/apt.conf" -q download $packages) &&
      mkdir -p "$apt/unpacked" &&
      (for file in "$apt"/archives/*.deb; do dpkg -x "$file" "$apt/unpacked" || exit 1; done)
  } >"$log" 2>&1 || {
    rm -rf "$apt"
    return 1
  }
  mkdir -p ".cache/runtimes/$1"
  # Each file is replaced as a whole, so that running programs keep theirs.
  cp -a --remove-destination "$apt/unpacked/." ".cache/runtimes/$1"
  rm -rf "$apt"
}

fetch_from_any_mirror() {
  for mirror in $(mirrors | awk '!seen[$0]++'); do # in their order, each once
    say "fetching $(missing_of "$1" | paste -s -d ' ' -) of $1 from $mirror"
    ! fetch "$1" "$mirror" || return 0
  done
  say "$(missing_of "$1" | paste -s -d ' ' -) of $1 could not be fetched: $(sed -n 's/^[EW]: //p' "$log" | head -n 1) (see $log)"
  return 1
}

result=0
for suite in "$@"; do
  binary=.cache/runtimes/$suite/usr/bin/containerd
  if [ -n "$(missing_of "$suite")" ]; then
    command -v apt-get >/dev/null || {
      say "packages of $suite can only be fetched on Debian (apt-get is missing)"
      exit 1
    }
    fetch_from_any_mirror "$suite" || {
      result=1
      continue
    }
  fi
  if version=$("$binary" --version 2>&1); then
    echo "$suite $(echo "$version" | cut -d ' ' -f 3)"
  else
    say "containerd of $suite does not run here: $(echo "$version" | head -n 1)"
    result=1
  fi
done
exit "$result"
