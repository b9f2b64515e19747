import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const scripts = join(import.meta.dirname, "../../scripts/deb");

/**
 * A machine of its own, as far as the scripts look, with something like podwright: `podwright WORD…` is a process that ends
 * when told, and writes that into /mnt/told. A client (`run`) ends without being told once there is no engine.
 */
const machine = `set -e
awk '$2 ~ "^/(run|var/lib)/" { print $2 }' /proc/mounts | sort -r | xargs -r umount -l 2>/dev/null || true
for directory in /run /var/lib /sys/fs/cgroup /mnt; do mount -t tmpfs tmpfs $directory; done
for directory in /usr/lib /etc; do
  mkdir -p /mnt/up$directory /mnt/work$directory
  mount -t overlay -o "lowerdir=$directory,upperdir=/mnt/up$directory,workdir=/mnt/work$directory" overlay $directory
done
lib=/usr/lib/podwright
rm -rf $lib /etc/podwright
mkdir -p $lib/node_modules/node/bin $lib/dist /var/lib/podwright /run/podwright
cp /bin/sh $lib/node_modules/node/bin/node
cat >$lib/dist/podwright.js <<'END'
trap 'echo "$*" >>/mnt/told; exit' TERM
while [ "$1" != run ] || pgrep -f 'podwright.js engine' >/dev/null; do sleep 0.1; done
END
podwright() {
  $lib/node_modules/node/bin/node $lib/dist/podwright.js "$@" >/dev/null &
}
# A process that has these words, and sees another's files or not.
words() {
  sh -c 'while :; do sleep 0.1; done' "$@" >/dev/null &
}
# Once each: a child that does not run its own program yet has its parent's words.
living() {
  pgrep -fa "$1" | cut -d ' ' -f 2- | sort -u
}
`;

/** @returns what the script prints on such a machine */
async function onMachine(script: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "podwright-deb-scripts-"));
  try {
    const file = join(directory, "script");
    await writeFile(file, `${machine}${script}`);
    const spaces = ["--mount", "--net", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"];
    const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", SCRIPTS: scripts };
    return (await promisify(execFile)("unshare", [...spaces, "sh", file], { env, timeout: 120_000 })).stdout;
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Files and directories below one, mounts marked. */
const list = String.raw`
list() {
  find "$1" 2>/dev/null | sort | while read -r path; do
    ! mountpoint -q "$path" || path="$path (mount)"
    echo "$path"
  done
}
`;

test("removal tells the package's engines and kubelets to end, with whatever state directory, and no client", async () => {
  const printed = await onMachine(`
podwright engine --state-dir /var/lib/podwright
podwright engine --state-dir /srv/other
podwright kubelet
podwright "kubelet --config /srv/kubelet.yaml"
podwright run web.yaml
words engine --state-dir /var/lib/podwright
sleep 1
rm $lib/node_modules/node/bin/node # as by an upgrade: the processes are of the earlier version
sh $SCRIPTS/prerm remove
sort /mnt/told
echo living:
living 'podwright.js'
living '[e]ngine --state-dir'
`);
  assert.deepEqual(printed.trim().split("\n"), [
    "engine --state-dir /srv/other",
    "engine --state-dir /var/lib/podwright",
    "kubelet",
    "kubelet --config /srv/kubelet.yaml",
    "living:",
    "sh -c while :; do sleep 0.1; done engine --state-dir /var/lib/podwright",
  ]);
});

test("purging ends what runs the default state directory's pods, and leaves the pods of others", async () => {
  const printed = await onMachine(`
$lib/node_modules/node/bin/node -c 'trap "" TERM; while :; do sleep 0.1; done' engine --state-dir /var/lib/podwright &
words containerd --config /var/lib/podwright/containerd/config.toml
words shim -address /run/podwright/containerd/containerd.sock
words containerd --config /srv/other/containerd/config.toml
words shim -address /run/podwright/0123abcd/containerd/containerd.sock
sleep 1
sh $SCRIPTS/postrm purge
living '[s]leep 0.1; done' | sed 's/.*done //'
`);
  assert.deepEqual(printed.trim().split("\n"), [
    "containerd --config /srv/other/containerd/config.toml",
    "shim -address /run/podwright/0123abcd/containerd/containerd.sock",
  ]);
});

test("purging unmounts podwright's mounts only, and removes nothing of others' mounts and below them", async () => {
  const printed = await onMachine(`${list}
cd /var/lib/podwright
mkdir -p kubelet/pods/1/volumes/a 'kubelet/pods/1/volumes/b c' kubelet/plugins/driver containerd/root/tmpmounts/1 journal
mkdir -p mine/bound 'mine/a disk' mine/.hidden images .dot /mnt/mine /var/lib/kubelet/pods
mount --bind kubelet kubelet
for directory in kubelet/pods/1/volumes/a 'kubelet/pods/1/volumes/b c' kubelet/plugins/driver containerd/root/tmpmounts/1; do
  mount -t tmpfs tmpfs "$directory"
done
mount --bind kubelet/pods /var/lib/kubelet/pods
touch journal/1 /mnt/mine/file mine/bound/under mine/other 'mine/a disk/under' /var/lib/kubelet/config.yaml
mount --bind /mnt/mine mine/bound
mount -t tmpfs tmpfs 'mine/a disk'
touch 'mine/a disk/file'
mount -t tmpfs tmpfs images
mkdir -p /run/podwright/containerd/state/shm
mount -t tmpfs tmpfs /run/podwright/containerd/state/shm
cd /
sh $SCRIPTS/postrm purge
list /var/lib/podwright
list /var/lib/kubelet
list /run/podwright
umount /var/lib/podwright/mine/bound '/var/lib/podwright/mine/a disk'
find /var/lib/podwright -type f | sort
awk '$2 ~ "^/(run/podwright|var/lib/(podwright|kubelet))" { print "mounted: " $2 }' /proc/mounts
`);
  assert.deepEqual(printed.trim().split("\n"), [
    "podwright: /var/lib/podwright/images is a mount and stays",
    "podwright: /var/lib/podwright/mine/a disk is a mount and stays",
    "podwright: /var/lib/podwright/mine/bound is a mount and stays",
    "/var/lib/podwright",
    "/var/lib/podwright/images (mount)",
    "/var/lib/podwright/mine",
    "/var/lib/podwright/mine/a disk (mount)",
    "/var/lib/podwright/mine/a disk/file",
    "/var/lib/podwright/mine/bound (mount)",
    "/var/lib/podwright/mine/bound/file",
    "/var/lib/kubelet",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/podwright/mine/a disk/under",
    "/var/lib/podwright/mine/bound/under",
    "mounted: /var/lib/podwright/images",
  ]);
});

test("purging empties a disk with podwright's state, which stays mounted", async () => {
  const printed = await onMachine(`${list}
mount -t tmpfs tmpfs /var/lib/podwright
mkdir -p /var/lib/podwright/kubelet/pods /var/lib/podwright/.dot
mount --bind /var/lib/podwright/kubelet /var/lib/podwright/kubelet
sh $SCRIPTS/postrm purge
list /var/lib/podwright
`);
  assert.equal(printed, "/var/lib/podwright (mount)\n");
});

test("purging removes of /run/podwright what is of the default state directory, and all once no other uses it", async () => {
  const printed = await onMachine(`${list}
cd /run/podwright
mkdir -p locks roots subnets containerd/runc 0123abcd/containerd /mnt/other/kubelet /var/lib/podwright/kubelet /var/lib/kubelet
touch engine.sock engine.lock engine.pid 0123abcd/containerd/containerd.sock locks/held locks/free
echo /mnt/other/kubelet >roots/1
echo /var/lib/podwright/kubelet >roots/2
echo /var/lib/kubelet >roots/3
echo /mnt/gone/kubelet >roots/4
printf '10.88.0.0/16 /var/lib/podwright\\n' >subnets/default
printf '10.89.0.0/16 /mnt/other\\n' >subnets/0123abcd
flock locks/held sleep 1000 &
holder=$!
cd /
sleep 0.5
sh $SCRIPTS/postrm purge
list /run/podwright
pkill -P $holder
rm -r /run/podwright/0123abcd /mnt/other
sh $SCRIPTS/postrm purge
list /run/podwright
`);
  assert.deepEqual(printed.trim().split("\n"), [
    "/run/podwright",
    "/run/podwright/0123abcd",
    "/run/podwright/0123abcd/containerd",
    "/run/podwright/0123abcd/containerd/containerd.sock",
    "/run/podwright/locks",
    "/run/podwright/locks/held",
    "/run/podwright/roots",
    "/run/podwright/roots/1",
    "/run/podwright/subnets",
    "/run/podwright/subnets/0123abcd",
  ]);
});

test("in a chroot, removal and purging leave the machine's processes and mounts", async () => {
  const printed = await onMachine(`
podwright engine --state-dir /var/lib/podwright
words containerd --config /var/lib/podwright/containerd/config.toml
mkdir /mnt/root
mount -t tmpfs tmpfs /mnt/root
cp -a /bin /sbin /lib /lib64 /mnt/root/ 2>/dev/null || true
mkdir -p /mnt/root/usr /mnt/root/proc /mnt/root/dev /mnt/root/var/lib/podwright /mnt/root/etc
mount --rbind /usr /mnt/root/usr
mount --rbind /proc /mnt/root/proc
mount --rbind /dev /mnt/root/dev
cp $SCRIPTS/prerm $SCRIPTS/postrm /mnt/root/
sleep 0.5
chroot /mnt/root sh /prerm remove
chroot /mnt/root sh /postrm purge
ls /mnt/root/var/lib /mnt/told 2>/dev/null || true
living '/var/lib/[p]odwright' | sed 's/.*done //'
`);
  assert.deepEqual(printed.trim().split("\n"), [
    "/mnt/root/var/lib:",
    "/usr/lib/podwright/node_modules/node/bin/node /usr/lib/podwright/dist/podwright.js engine --state-dir /var/lib/podwright",
    "containerd --config /var/lib/podwright/containerd/config.toml",
  ]);
});
