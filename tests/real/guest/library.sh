# What the scenarios' commands in a guest build on. Sourced before every one of them.
# shellcheck shell=dash
. /host/guest/environment # SERVER, set by the host

# mount_version VERSION [OPTIONS]: at /mnt/VERSION, or at $AT
mount_version() {
    at=${AT:-/mnt/$1}
    mkdir -p "$at"
    mount -t nfs -o "vers=$1,proto=tcp${2:+,$2}" "$SERVER:/export" "$at"
}

# forget: drops what the client has cached
forget() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}

# same_tree DIRECTORY DIRECTORY: the same names, contents and link targets. One file after the other: programs that keep much
# in memory (busybox's diff and sort) crash in guests on processors with AMX, see uml.c.
same_tree() {
    same_names=/tmp/same_names
    (cd "$1" && find .) >$same_names
    [ "$(cd "$2" && find . | wc -l)" = "$(wc -l <$same_names)" ]
    (cd "$1" && find . -type f -exec md5sum {} +) >/tmp/same_sums
    (cd "$2" && md5sum -c /tmp/same_sums) >/tmp/same_result || { grep -v ': OK$' /tmp/same_result; return 1; }
    while IFS= read -r name; do
        [ -L "$1/$name" ] || { [ ! -d "$1/$name" ] || [ -d "$2/$name" ]; } || { echo "$name is no directory"; return 1; }
        [ ! -L "$1/$name" ] || [ "$(readlink "$1/$name")" = "$(readlink "$2/$name")" ] || { echo "link $name"; return 1; }
    done <$same_names
}

# calls DIRECTORY OPERATION...: how often these operations were sent for this mount
calls() {
    at=$1
    shift
    awk -v at="$at" -v operations=" $* " '$1 == "device" { here = $5 == at }
        here && sub(":$", "", $1) && index(operations, " " $1 " ") { sum += $2 } END { print sum + 0 }' /proc/self/mountstats
}

# transports DIRECTORY: the lines of the mount's connections
transports() {
    awk -v at="$1" '$1 == "device" { here = $5 == at } here && $1 == "xprt:"' /proc/self/mountstats
}

# hold NAME COMMAND...: starts it in the background; returns with its first output
hold() {
    held=$1
    shift
    rm -f "/tmp/$held.out"
    "$@" >"/tmp/$held.out" 2>&1 </dev/null &
    echo $! >"/tmp/$held.process"
    [ -z "${WAIT-yes}" ] || output "$held"
}

# output NAME: what a held command has printed, as soon as there is something, within 40 s
output() {
    for _ in $(seq 800); do
        [ -s "/tmp/$1.out" ] && break
        usleep 50000
    done
    cat "/tmp/$1.out"
}

# release NAME: ends the held command
release() {
    kill -9 "$(cat "/tmp/$1.process")"
    for _ in $(seq 200); do
        [ -d "/proc/$(cat "/tmp/$1.process")" ] || return 0
        usleep 50000
    done
    echo "held command $1 does not end"
    return 1
}

# same A B: both arguments, or says so
same() {
    [ "$1" = "$2" ] || { echo "'$1' is not '$2'${3:+: $3}"; return 1; }
}
