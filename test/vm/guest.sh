#!/bin/sh
# What the machine of run.sh does once it is up: it becomes a node, and tests podwright.
exec </dev/null >/dev/ttyS1 2>&1
cd /podwright || exit
. ./environment
. test/vm/shape.sh
cp -rT test/vm/files /
echo "$(uname -r), $(systemctl --version | head -n 1), cgroups: $(stat -f -c %T /sys/fs/cgroup)"
containerd --version
runc --version | head -n 1
ip link set lo up
ip link add eth0 type dummy
ip address add 192.0.2.2/24 dev eth0
ip link set eth0 up
systemctl start dbus.socket # not part of the target that systemd.run makes
systemctl restart containerd
if [ -d control-plane ]; then
  export PODWRIGHT_CONTROL_PLANE=/podwright/control-plane PATH="$PATH:/podwright/control-plane"
fi
export SYSTEMD_BUS_TIMEOUT=600s # instead of 25
export TMPDIR=/var/tmp # /tmp holds no devices, which overlays need
. test/vm/patience.sh
xargs sh scripts/node.sh scripts/test.ts --vm <test-arguments
