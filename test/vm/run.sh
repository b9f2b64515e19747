#!/bin/sh
# Runs tests in a virtual machine as podwright's users have it: systemd is process 1, cgroups are v2, containerd is the
# machine's own and leaves cgroups to systemd, and so does the containerd of `podwright kubelet` in integration tests.
# QEMU needs no KVM (everything is slower then).
#
#   run.sh [OPTION…] [PART…|all|PATH…]
#   run.sh --list
#
# PART: a part of the suite, as --list prints them (test/vm/parts.txt); each has a machine of its own, `all` is every one of
# them. PATH: test files whose path holds it, together in one machine. Neither: the tests of this folder.
#
# --list: prints the parts, the minutes that each is expected to take without KVM, and the files that cannot run here.
# --suite SUITE: of Debian (default: forky). --rebuild: makes the machine's disk anew.
# --cpus N: processors (2). --memory SIZE: of the machine, in M or G (3G). --numa N: NUMA nodes, among which both are
# divided evenly (1). --hugepages N: huge pages of 2 MiB that the kernel sets aside at boot (0).
# --swap SIZE: swap space (none). --disk SIZE: another disk with ext4, whose mount point is in PODWRIGHT_VM_DISK (none).
# --cgroup-driver cgroupfs|systemd: of the containerd of `podwright kubelet` in integration tests (systemd).
# --name NAME: of the run, in the name of its logs.
#
# The disk is made once, from Debian's packages, and kept in .cache/vm/; the machine works on a copy that is thrown away.
# The tests' output goes to stdout; its last line is `N passed, N failed`. It and what the machine said are kept in
# .cache/vm/SUITE/logs/, of the last runs. A failed run ends with the tests that failed, its logs, and the command that
# repeats them. Exit status: 0 all passed, 1 not, 2 bad arguments, 3 something is missing here.
#
# test/vm/packages/deb and test/vm/packages/npm install podwright as users do and reboot the machine, so each needs a run
# of its own, on the Debian of --suite. PODWRIGHT_VM_EARLIER is an earlier .deb to upgrade from (default: the same one).
# PODWRIGHT_CONTROL_PLANE is a directory with Kubernetes' programs, etcd and kubeadm, which some tests need.
set -eu
root=$(CDPATH= cd -- "$(dirname -- "$0")/../.." && pwd)
cd "$root"
parts=test/vm/parts.txt
limit_minutes=45
kept_runs=20 # whose logs are kept

say() { printf '%s\n' "vm: $*" >&2; }
fail() {
  say "$*"
  exit 3
}
# shellcheck source=test/vm/options.sh
. test/vm/options.sh
read_options "$@"
shift "$option_words"
! has_part "$@" || run_parts "$@"
check_paths "$@"

[ "$(id -u)" -eq 0 ] || fail "run this as root: it makes a Debian system in a folder"
for program in debootstrap:debootstrap qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs; do
  command -v "${program%%:*}" >/dev/null || fail "${program%%:*} is missing; run: apt-get install --no-install-recommends ${program#*:}"
done
[ -x node_modules/node/bin/node ] || fail "node_modules is not complete; run: sh scripts/setup.sh --test"

case ${1:-} in
  *packages*) packages=1 ;;
  *) packages= ;;
esac
cache=$root/.cache/vm/$suite
mkdir -p "$cache/logs"
work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# A Debian with what a node needs and nothing of podwright, as a disk with its kernel beside it.
make_machine() {
  say "making a machine of Debian $suite (a minute or two)"
  system=$work/system
  # debootstrap may be older than the suite; it makes all of them by the same script.
  debootstrap --variant=minbase "$suite" "$system" http://deb.debian.org/debian /usr/share/debootstrap/scripts/sid
  printf '#!/bin/sh\nexit 101\n' >"$system/usr/sbin/policy-rc.d" # starts no services in here
  chmod 755 "$system/usr/sbin/policy-rc.d"
  chroot "$system" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install \
    systemd systemd-sysv dbus udev kmod procps iproute2 iptables uidmap initramfs-tools linux-image-cloud-amd64 \
    containerd runc containernetworking-plugins catatonit busybox-static libatomic1 libstdc++6 xfsprogs \
    e2fsprogs python3
  # Only its program: its set-up needs /proc, and its service is of no use.
  chroot "$system" sh -e -c "cd /tmp && apt-get -q download docker-registry && dpkg -x docker-registry_*.deb . && mv usr/bin/docker-registry /usr/bin"
  rm -rf "$system"/tmp/*
  rm "$system/usr/sbin/policy-rc.d"
  mkdir "$system/podwright"
  echo 'LABEL=podwright /podwright ext4 x-systemd.device-timeout=900 0 0' >"$system/etc/fstab"
  cp "$system"/boot/vmlinuz-* "$work/vmlinuz"
  cp "$system"/boot/initrd.img-* "$work/initrd"
  rm -rf "$system"/var/cache/apt/archives/*.deb "$system"/boot/*
  mke2fs -q -t ext4 -L system -d "$system" "$work/system.img" 3G
  rm -rf "$system"
  mv "$work/vmlinuz" "$work/initrd" "$work/system.img" "$cache/"
  echo "$recipe" >"$cache/recipe"
}

# What test/vm/packages installs. npm itself is this machine's, which is complete without downloads.
make_packages() {
  mkdir "$project/packages"
  sh scripts/node.sh scripts/deb.ts --out "$project/packages" >&2
  mv "$project"/packages/*.deb "$project/packages/podwright.deb"
  cp "${PODWRIGHT_VM_EARLIER:-$project/packages/podwright.deb}" "$project/packages/earlier.deb"
  npm pack --silent --pack-destination "$project/packages" >&2
  mv "$project"/packages/*.tgz "$project/packages/podwright.tgz"
  cp -r "$(npm root --global)/npm" "$project/packages/npm"
}

# The project as a second disk: the bundle, the tests with the sources that they use, and Node.js.
make_project_disk() {
  project=$work/project
  mkdir -p "$project/node_modules"
  cp -r bin docs examples scripts src test web ./*.md package.json package-lock.json "$project/"
  sh scripts/node.sh scripts/build.ts "$project/dist" >&2
  # What the bundle is made of, which the tests import from its sources, and the tests' own.
  bundled=$(sed -n 's/^ *"name": "\(.*\)",$/\1/p' "$project/dist/packages.json")
  for package in node fast-check pure-rand $bundled; do
    mkdir -p "$project/node_modules/$(dirname "$package")"
    cp -r "node_modules/$package" "$project/node_modules/$package"
  done
  # Only with this feature does ext4 account for projects.
  mke2fs -q -t ext4 -I 256 -O project,quota -E quotatype=prjquota "$project/projects.ext4" 64M
  printf '%s\n' "$@" >"$project/test-arguments"
  environment >"$project/environment"
  # The versions that scripts/fetch-runtimes.sh brought, where tests look for them.
  for kubectl in .cache/runtimes/*/usr/bin/kubectl; do
    [ ! -x "$kubectl" ] || install -D "$kubectl" "$project/$kubectl"
  done
  [ -z "$packages" ] || make_packages
  if [ -n "${PODWRIGHT_CONTROL_PLANE:-}" ]; then
    cp -rL "$PODWRIGHT_CONTROL_PLANE" "$project/control-plane"
    cp -L "$(command -v kubectl)" "$project/control-plane/kubectl"
  fi
  mke2fs -q -t ext4 -L podwright -d "$project" "$work/project.img" 2G
  rm -rf "$project"
}

# A disk that an earlier version of make_machine made is made anew.
recipe=$(sed -n '/^make_machine() {/,/^}/p' "$0" | cksum)
[ -z "$rebuild" ] && [ "$(cat "$cache/recipe" 2>/dev/null)" = "$recipe" ] || rm -f "$cache/system.img"
if ! [ -f "$cache/system.img" ]; then
  # Within a condition it would go on after a command that failed.
  set +e
  (
    set -e
    make_machine
  ) >"$cache/make.log" 2>&1
  made=$?
  set -e
  [ "$made" -eq 0 ] || {
    tail -n 15 "$cache/make.log" >&2
    fail "the machine could not be made (see $cache/make.log)"
  }
fi
make_project_disk "$@"

say "starting the machine"
logs=$cache/logs/$(date +%Y%m%d-%H%M%S)-${name:-tests}
mkdir -p "$logs"
console=$logs/console.log
output=$logs/output.log
for log in console output; do ln -sfn "$logs/$log.log" "$cache/$log.log"; done
find "$cache/logs" -mindepth 1 -maxdepth 1 -type d | sort -r | tail -n "+$((kept_runs + 1))" | xargs -r rm -rf
if [ -n "$packages" ]; then
  # All that a machine starts at boot, and the tests beside it, once more after their reboot.
  boot="systemd.unit=multi-user.target systemd.wants=kernel-command-line.service"
  end=none # the script ends the machine itself
  guest=test/vm/packages/guest.sh
  runs=2
  reboots=
else
  boot=
  end=poweroff-force
  guest=test/vm/guest.sh
  runs=1
  reboots=-no-reboot
fi
[ "$hugepages" -eq 0 ] || boot="$boot hugepagesz=2M hugepages=$hugepages"
make_extra_disks
# One thread emulates all processors: with a thread each, V8 aborts now and then when it checks its compiled code.
# The second serial line is for the tests; `systemd.run` is what the machine is for, and it ends with that.
# shellcheck disable=SC2046,SC2086 # options or none
timeout "${limit_minutes}m" qemu-system-x86_64 -accel tcg,thread=single -cpu Nehalem $(shape_options) $reboots -nic none \
  -display none -monitor none -serial "file:$console" -serial stdio -snapshot \
  -drive "file=$cache/system.img,format=raw,if=virtio" -drive "file=$work/project.img,format=raw,if=virtio" \
  $(extra_disk_options) -kernel "$cache/vmlinuz" -initrd "$cache/initrd" \
  -append "root=LABEL=system rw console=ttyS0 panic=-1 quiet systemd.show_status=error systemd.default_device_timeout_sec=900 \
$boot systemd.run=\"/bin/sh /podwright/$guest\" \
systemd.run_success_action=$end systemd.run_failure_action=$end" </dev/null |
  sed -u 's,\r$,,' | tee "$output"
[ "$(grep -c '^[1-9][0-9]* passed, 0 failed' "$output")" -eq "$runs" ] || {
  report_failure "$@"
  exit 1
}
