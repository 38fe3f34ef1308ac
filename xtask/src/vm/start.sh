#!/bin/busybox sh
# First process of the virtual machine: mounts the disk with its root, copies
# into it what changes from run to run, and goes on there with `init.sh`.

mount() { busybox mount "$@"; }

mount -t devtmpfs devtmpfs /dev
# Disks are found in the background.
until [ -b /dev/nvme0n1 ]; do busybox usleep 20000; done
mount -t ext4 -o noatime,noinit_itable /dev/nvme0n1 /root || exit
for module in /modules/*.ko; do busybox insmod "$module"; done
busybox cp -R /given/. /root
mount -o move /dev /root/dev
exec busybox switch_root /root /init
