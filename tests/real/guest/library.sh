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
