#!/bin/sh
# The root's first process: mounts what a machine has, runs the test binaries
# once per backend, and powers off. Results go to the second
# serial port, so that no kernel message can cut a result in two; lines that
# begin with "@@effectgate" are read by `xtask/src/vm/report.rs`.

export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root TERM=dumb LANG=C.UTF-8 TMPDIR=/tmp

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,gid=5 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
for directory in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$directory"; done
mount -t tmpfs -o mode=755 tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
ln -sf /proc/self/fd/0 /dev/stdin
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr

for controller in cpu memory pids; do
    echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control
done
chown -R 1000:1000 /home/worker
hostname effectgate-vm
# Sockets for pings are for nobody, unless one says otherwise.
echo "0 2147483647" > /proc/sys/net/ipv4/ping_group_range
ip link set lo up
# An oops is a failure of this run, not something to carry on from.
echo 1 > /proc/sys/kernel/panic_on_oops

report() { echo "@@effectgate $*" > /dev/ttyS1; }

. /etc/effectgate-vm
report "kernel $(uname -r)"
report "lsm $(cat /sys/kernel/security/lsm)"
export EFFECTGATE_BIN=/usr/bin/effectgate EFFECTGATE_TRIGGER=/usr/bin/trigger
# One daemon for all cases: an emulated machine loads the programs for seconds.
export CARGO=/root/.rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo
export EFFECTGATE_TEST_VM=1 EFFECTGATE_TEST_WAY=daemon RUST_BACKTRACE=1
cd /root || exit

# BACKEND BINARY ARG...
run_tests() {
    backend=$1 binary=$2
    shift 2
    run="$backend $binary"
    report "begin $run"
    # Building Rust takes an emulated machine long: once is enough.
    "/usr/bin/$binary" --test-threads=1 --color=never --skip real_rust_build \
        --skip profile_rust_through_rustup "$@" > /dev/ttyS1 < /dev/null
    report "end $run $?"
}

export EFFECTGATE_TEST_ACCEPT="$accepts" EFFECTGATE_TEST_RESULTS=/dev/ttyS1
for backend in $backends; do
    export EFFECTGATE_TEST_BACKEND="$backend"
    for measure in $measures; do
        /usr/bin/bench "$measure" > /dev/ttyS1 2>&1 < /dev/null
        report "measured $backend $measure $?"
    done
    for binary in $binaries; do
        # Where a file system has all that files can have.
        case "$binary" in evasion) TMPDIR=/srv ;; *) TMPDIR=/tmp ;; esac
        # Who asks for tests by name, or writes down what comes of them, gets them
        # everywhere.
        [ $# -eq 0 ] && [ "$accepts" = 0 ] ||
            { run_tests "$backend" "$binary" "$@"; continue; }
        # Every run loads the programs, for an emulated machine a third of a
        # minute, so not everything is tried everywhere.
        case "$binary $backend $(uname -r)" in
        "kernel lsm "*) run_tests "$backend" "$binary" ;;
        # It attaches to what `lsm` attaches to: one kernel shows that it does.
        "kernel fentry 6.12."*) run_tests "$backend" "$binary" ;;
        # Natively it is tried as well; the oldest verifier is the strictest.
        "kernel tracepoint 6.1."*) run_tests "$backend" "$binary" ;;
        "real lsm "* | "profiles lsm 6.12."*) run_tests "$backend" "$binary" ;;
        # What came of them elsewhere `cargo xtask evasions` has written down.
        "evasion lsm 6.12."*) run_tests "$backend" "$binary" ;;
        kernel* | real* | profiles* | storm* | evasion*) ;;
        *) run_tests "$backend" "$binary" "$@" ;;
        esac
    done
done
report "done"
poweroff -f
