# shellcheck shell=bash
# The server is ended by SIGTERM in the middle of writes and started again with the state that it kept. Clients notice
# nothing but the pause: writes go on, open files stay open, locks are reclaimed in the grace period.

restart() {
    local version status=0 server_options="$server_options --state '$work/server/state'"
    # Started again with --state, so that there is something to keep.
    server_stop || true
    server_start
    boot a b
    for version in 3 4.0 4.1 4.2; do
        check "restart/$version/mount" sharing_mount "$version"
        check "restart/$version/before" restart_before "/mnt/$version"
    done
    sleep 1
    server_stop || status=$?
    if [ "$status" = 0 ]; then result ok restart/stop; else result FAILED restart/stop "status $status after SIGTERM"; fi
    sleep 2
    server_start
    for version in 3 4.0 4.1 4.2; do
        check "restart/$version/write_continues" restart_write "/mnt/$version"
        check "restart/$version/open_file" restart_open "/mnt/$version"
        [ "$version" = 3 ] || check "restart/$version/lock_kept" restart_lock "/mnt/$version"
        check "restart/$version/files_kept" restart_files "/mnt/$version"
    done
    halt a b
}

sharing_mount() {
    on a "mount_version $1"
    on b "mount_version $1"
}

restart_before() {
    on a "mkdir $1/kept-${1##*/}; cp -a /host/tree/Cargo.toml $1/kept-${1##*/}; ln -s x $1/kept-${1##*/}/link
        hold lock-${1##*/} helper lock $1/locked-${1##*/} w 0 10 try
        WAIT= hold write-${1##*/} sh -c 'helper write $1/written-${1##*/} 0 48M 7 100 && echo written'
        exec 3<>$1/open-${1##*/}; echo before >&3
        WAIT= hold open-${1##*/} sh -c 'sleep 6; echo after >&3; exec 3>&-; cat $1/open-${1##*/}'"
}

# A held command that wrote while the server was away, and said so.
has_written() { # NAME [WHAT]
    TIME=90 on a "output $1" # while the server is away it is silent
    TIME=90 equal "$(on a "output $1")" written "${2:-the writer}"
}

restart_write() {
    has_written "write-${1##*/}"
    on a "forget; helper check $1/written-${1##*/} 0 48M 7"
    on b "helper check $1/written-${1##*/} 0 48M 7"
}

restart_open() {
    equal "$(TIME=90 on a "output open-${1##*/}")" "before
after" "the file that was open"
}

restart_lock() {
    equal "$(on b "helper lock $1/locked-${1##*/} w 5 1 try")" conflict "b: the lock of a"
    on a "release lock-${1##*/}"
    equal "$(on b "hold free helper lock $1/locked-${1##*/} w 5 1 try; release free" | cut -d' ' -f1)" locked "b: after a has ended"
}

restart_files() {
    on a "forget; cmp /host/tree/Cargo.toml $1/kept-${1##*/}/Cargo.toml; [ \"\$(readlink $1/kept-${1##*/}/link)\" = x ]"
    on b "cmp /host/tree/Cargo.toml $1/kept-${1##*/}/Cargo.toml"
}
