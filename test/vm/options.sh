# The arguments of run.sh: its parts, the shape of the machine, and what a failed run says. Sourced by it.
# shellcheck shell=sh disable=SC2034 # run.sh uses what is set here

bad() {
  say "$*"
  exit 2
}

# $1 the option, $2 its value
whole_number() {
  case $2 in
    0) [ "${3:-}" = 0 ] || bad "$1 must be at least 1" ;;
    '' | 0* | *[!0-9]* | ??????*) bad "$1 must be a whole number, not '$2'" ;;
  esac
}

# Sets `mebibytes`. $1 the option, $2 its value, $3 the least value in MiB
size() {
  count=${2%[MG]}
  case $2 in
    *[MG]) case $count in '' | 0* | *[!0-9]* | ??????*) count= ;; esac ;;
    *) count= ;;
  esac
  [ -n "$count" ] || bad "$1 must be a size such as 512M or 4G, not '$2'"
  mebibytes=$count
  [ "${2#*G}" = "$2" ] || mebibytes=$((count * 1024))
  [ "$mebibytes" -ge "$3" ] || bad "$1 must be at least $3M"
}

# Sets the options, and `option_words` to how many words they were.
read_options() {
  suite=forky # the oldest with runc 1.2, which mounts with ids mapped
  rebuild= name= cgroup_driver=systemd
  cpus=2 numa=1 memory=3072 hugepages=0 swap=0 disk=0
  given=$#
  same= # for the runs of parts, and for repeating tests
  while :; do
    case ${1:-} in
      --list)
        list_parts
        exit 0
        ;;
      --rebuild)
        rebuild=1
        shift
        continue
        ;;
      --suite | --cpus | --numa | --memory | --hugepages | --swap | --disk | --cgroup-driver | --name) ;;
      -*) bad "unknown option $1" ;;
      *) break ;;
    esac
    [ $# -ge 2 ] || bad "$1 needs a value"
    case $1 in
      --suite) suite=$2 ;;
      --name) name=$2 ;;
      --cgroup-driver)
        case $2 in cgroupfs | systemd) cgroup_driver=$2 ;; *) bad "$1 must be cgroupfs or systemd, not '$2'" ;; esac
        ;;
      --cpus) whole_number "$1" "$2" && cpus=$2 ;;
      --numa) whole_number "$1" "$2" && numa=$2 ;;
      --hugepages) whole_number "$1" "$2" 0 && hugepages=$2 ;;
      --memory) size "$1" "$2" 1024 && memory=$mebibytes ;;
      --swap) size "$1" "$2" 16 && swap=$mebibytes ;;
      --disk) size "$1" "$2" 16 && disk=$mebibytes ;;
    esac
    case $2 in '' | *[!A-Za-z0-9._-]*) bad "$1 cannot be '$2'" ;; esac
    [ "$1" = --name ] || same="$same $1 $2"
    shift 2
  done
  option_words=$((given - $#))
  check_shape
}

check_shape() {
  [ "$cpus" -le 64 ] || bad "--cpus must be at most 64"
  [ $((cpus % numa)) -eq 0 ] || bad "--cpus $cpus cannot be divided evenly among --numa $numa nodes"
  [ $((memory / numa)) -ge 512 ] || bad "--memory must be at least 512M for each of --numa $numa nodes"
  [ $((hugepages * 2)) -le $((memory / 2)) ] || bad "--hugepages $hugepages are more than half of --memory ${memory}M"
  free=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  [ "$memory" -le "$free" ] || bad "--memory ${memory}M is more than the ${free}M that are free here"
}

# The lines of parts.txt: `PART SECONDS FILE`, `PART options OPTION…`, and `- FILE REASON` for those that cannot run.
part_names() { awk '/^[a-z]/ && !seen[$1]++ { print $1 }' "$parts"; }
files_of() { awk -v part="$1" '$1 == part && $2 != "options" { print $3 }' "$parts"; }
options_of() { awk -v part="$1" '$1 == part && $2 == "options" { $1 = $2 = ""; print }' "$parts"; }
left_out() { sed -n 's/^- \([^ ]*\) \(.*\)/\1: \2/p' "$parts"; }

is_part() { [ "$1" = all ] || part_names | grep -qxF -e "$1"; }

list_parts() {
  awk '/^[a-z]/ && $2 == "options" {
      shape[$1] = $0
      next
    }
    /^[a-z]/ {
      if (!($1 in seconds)) order[++count] = $1
      seconds[$1] += $2; files[$1]++
    }
    END {
      for (i = 1; i <= count; i++) {
        part = order[i]; sub(/^[^ ]* [^ ]*/, "", shape[part])
        printf "%-12s about %2d minutes, %d %s%s\n", part, seconds[part] * 11 / 60 + 1, files[part], files[part] == 1 ? "file" : "files", shape[part]
      }
    }' "$parts"
  left_out | sed 's/^/not here: /'
}

has_part() {
  for argument; do ! is_part "$argument" || return 0; done
  return 1
}

# A machine for each part, one after the other.
run_parts() {
  for argument; do is_part "$argument" || bad "$argument is not a part (see --list), and parts cannot be mixed with paths"; done
  case " $* " in
    *" all "*)
      # shellcheck disable=SC2046 # names
      set -- $(part_names)
      left_out | while read -r line; do say "not here: $line"; done
      ;;
  esac
  result=0
  for part; do
    say "part $part"
    # shellcheck disable=SC2046,SC2086 # words
    sh "$0" ${rebuild:+--rebuild} $(options_of "$part") $same --name "$part" $(files_of "$part") || {
      [ $? -eq 1 ] || exit 3
      result=1
      failed="${failed:-} $part"
    }
    rebuild=
  done
  [ "$result" -eq 0 ] || say "failed parts:$failed"
  exit "$result"
}

# A wrong name should not cost the boot of a machine.
check_paths() {
  for argument; do
    [ -e "$argument" ] || find test/vm test/integration -name '*.test.ts' | grep -qF -e "$argument" ||
      bad "no part (see --list) and no test file is called $argument"
  done
}

# What tests find in their environment.
environment() {
  cat <<END
export PODWRIGHT_TEST_CGROUP_DRIVER=$cgroup_driver
export PODWRIGHT_VM_CPUS=$cpus PODWRIGHT_VM_NUMA=$numa PODWRIGHT_VM_MEMORY_MIB=$memory
export PODWRIGHT_VM_HUGEPAGES=$hugepages PODWRIGHT_VM_SWAP_MIB=$swap
END
  [ "$disk" -eq 0 ] || echo "export PODWRIGHT_VM_DISK=/mnt/podwright PODWRIGHT_VM_DISK_MIB=$disk"
}

# QEMU's options for processors and memory.
shape_options() {
  echo "-m ${memory}M -smp $cpus,sockets=$numa"
  [ "$numa" -gt 1 ] || return 0
  node=0
  while [ "$node" -lt "$numa" ]; do
    share=$((memory / numa))
    [ "$node" -gt 0 ] || share=$((memory - share * (numa - 1)))
    first=$((cpus / numa * node))
    echo "-object memory-backend-ram,id=node$node,size=${share}M"
    echo "-numa node,nodeid=$node,memdev=node$node,cpus=$first-$((first + cpus / numa - 1))"
    node=$((node + 1))
  done
}

make_extra_disks() {
  [ "$swap" -eq 0 ] || truncate -s "${swap}M" "$work/swap.img"
  [ "$disk" -eq 0 ] || mke2fs -q -t ext4 "$work/disk.img" "${disk}M"
}

# The machine finds them by these serial numbers (test/vm/shape.sh).
extra_disk_options() {
  [ "$swap" -eq 0 ] || echo "-drive file=$work/swap.img,format=raw,if=none,id=swap -device virtio-blk-pci,drive=swap,serial=swap"
  [ "$disk" -eq 0 ] || echo "-drive file=$work/disk.img,format=raw,if=none,id=disk -device virtio-blk-pci,drive=disk,serial=disk"
}

# The tests that failed, where their output is, and how to repeat them.
report_failure() {
  if ! grep -q '^[0-9]* passed, [0-9]* failed' "$output"; then
    say "the machine ended before its tests did; it has $limit_minutes minutes"
  fi
  awk '/^run  /{ unfinished[$2] = 1; file = $2; early = "" }
    /^  failed after /{ sub(/^[^:]*: /, ""); early = early "failed: " file ": " $0 "\n" }
    /^(ok|FAIL) /{ delete unfinished[$2] }
    /^  failed: /{ sub(/^  failed: /, ""); print "failed: " file ": " $0 }
    END { for (file in unfinished) printf "%snot finished: %s\n", early, file }' "$output" |
    while read -r line; do say "$line"; done
  again=$(awk '/^run  /{ bad[$2] = 1 } /^ok /{ delete bad[$2] } END { for (file in bad) printf " %s", file }' "$output")
  say "its output is in $output, what the machine itself said in $console"
  say "again: npm run test:vm --$same${again:-"${*:+ $*}"}"
}
