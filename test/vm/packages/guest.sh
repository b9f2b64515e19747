#!/bin/sh
# What the machine of run.sh does at each start for the tests of this folder. A test that created /var/tmp/reboot runs once
# more after a restart of the machine.
exec </dev/null >/dev/ttyS1 2>&1
cd /podwright || exit
. ./environment
. test/vm/shape.sh
echo "$(. /etc/os-release && echo "$PRETTY_NAME"), $(uname -r), $(systemctl --version | head -n 1), $(containerd --version)"
ip link set lo up
ip link add eth0 type dummy
ip address add 192.0.2.2/24 dev eth0
ip link set eth0 up
export SYSTEMD_BUS_TIMEOUT=600s # instead of 25
export TMPDIR=/var/tmp # /tmp holds no devices, which overlays need
. test/vm/patience.sh
xargs sh scripts/node.sh scripts/test.ts --vm <test-arguments
if [ -f /var/tmp/reboot ]; then
  rm /var/tmp/reboot
  systemctl reboot
else
  systemctl poweroff --force
fi
sleep infinity
