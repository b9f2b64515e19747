# Makes the machine's disks usable that options of run.sh added. Sourced by the scripts that the machine runs.
udevadm settle
if [ -e /dev/disk/by-id/virtio-swap ]; then
  mkswap -q /dev/disk/by-id/virtio-swap
  swapon /dev/disk/by-id/virtio-swap
fi
if [ -e /dev/disk/by-id/virtio-disk ]; then
  mkdir -p "$PODWRIGHT_VM_DISK"
  mount /dev/disk/by-id/virtio-disk "$PODWRIGHT_VM_DISK"
fi
