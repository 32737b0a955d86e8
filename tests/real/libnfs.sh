#!/usr/bin/env bash
# Debian's libnfs, its tools and a program of ours on its library, against a server on the loopback interface: see README.md.
# Needs no privileges but for installing packages.
set -euo pipefail
# shellcheck disable=SC2034 # for server.sh
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
server_address=127.0.0.1
# shellcheck source=tests/real/machines.sh
. "$here/machines.sh"
# shellcheck source=tests/real/server.sh
. "$here/server.sh"
# shellcheck source=tests/real/results.sh
. "$here/results.sh"

libnfs_packages() {
    local wanted=()
    command -v nfs-cp >/dev/null || wanted+=(libnfs-utils)
    [ -e /usr/include/nfsc/libnfs.h ] || wanted+=(libnfs-dev)
    command -v gcc >/dev/null && [ -e /usr/include/stdlib.h ] || wanted+=(gcc libc6-dev)
    install_packages "${wanted[@]}"
}

free_port() { # one below the range that connections take theirs from
    local port
    for _ in {1..50}; do
        port=$((20000 + RANDOM % 10000))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    return 1
}

url() { # VERSION PATH
    case $1 in
    3) echo "nfs://127.0.0.1/export$2?version=3&nfsport=$server_port&mountport=${MOUNT_PORT:-$server_port}&auto-traverse-mounts=0" ;;
    4) echo "nfs://127.0.0.1/export$2?version=4&nfsport=$server_port" ;;
    esac
}

# The tools say what is wrong in words and do not all tell it by their status.
refused() { # WORDS COMMAND...
    local words=$1 output
    shift
    output=$("$@" 2>&1) || true
    [[ $output == *$words* ]] || { echo "expected $words from $*, got: $output"; return 1; }
}

copied() { # VERSION SIZE: there and back
    local name=copy-$1-$2 writer=$1
    # libnfs 4.0 cannot encode a WRITE of 4 KiB with version 4.
    [ "$2" -lt 4000 ] || writer=3
    head -c "$2" /dev/urandom >"$work/$name"
    nfs-cp "$work/$name" "$(url "$writer" "/$name")"
    rm -f "$work/$name.back"
    nfs-cp "$(url "$1" "/$name")" "$work/$name.back"
    cmp "$work/$name" "$work/$name.back"
    nfs-cat "$(url "$1" "/$name")" | cmp - "$work/$name"
    nfs-ls "$(url "$1" /)" | grep -E "^-rw.* $2 .*$name\$"
    rm "$work/$name" "$work/$name.back"
}

one_version() {
    local version=$1 size scenario other=$((7 - $1))
    check "libnfs/$version/list_root" nfs-ls "$(url "$version" /)"
    for size in 0 1 3000 4096 1048577 50000000; do check "libnfs/$version/copy_$size" copied "$version" "$size"; done
    for scenario in attributes names links directories positions truncation many_files access; do
        check "libnfs/$version/$scenario" "$work/client" "$(url "$version" /)" "$scenario" "program-$version-$scenario"
    done
    check "libnfs/$version/large" timeout 200 "$work/client" "$(url "$version" /)" large "program-$version-large"
    [ "$version" != 4 ] || check "libnfs/$version/locks" "$work/client" "$(url "$version" /)" locks "program-$version-locks"
    check "libnfs/$version/no_such_file" refused NOENT nfs-cat "$(url "$version" /nothing-here)"
    # nfs-ls mounts the directory itself.
    check "libnfs/$version/no_such_directory" refused "$([ "$version" = 3 ] && echo Failed to mount || echo NOENT)" nfs-ls "$(url "$version" /nothing-here/)"
    check "libnfs/$version/no_such_export" refused "Failed to mount" nfs-ls "$(url "$version" / | sed s,/export/,/elsewhere/,)"
    check "libnfs/$version/seen_by_version_$other" seen_by_other "$version" "$other"
}

seen_by_other() { # the versions show the same files
    head -c 3000 /dev/urandom >"$work/seen"
    nfs-cp "$work/seen" "$(url "$1" "/seen-$1")"
    nfs-cat "$(url "$2" "/seen-$1")" | cmp - "$work/seen"
}

if ! reason=$(find_server) || ! reason=$(libnfs_packages); then skip "$reason"; fi
work=$(mktemp -d "${TMPDIR:-/tmp}/benchmaster-libnfs.XXXXXX")
failed=1
finish() {
    server_stop || true
    if [ "$failed" = 0 ]; then rm -rf "$work"; else echo "logs are kept in $work"; fi
}
trap finish EXIT
trap 'exit 130' INT TERM
gcc -O2 -Wall -Wextra -o "$work/client" "$here/libnfs.c" -lnfs
server_port=$(free_port)
server_start
sleep "${SERVER_GRACE:-0}" # libnfs does not repeat what is refused in a grace period; set this for servers that have one at their first start
for version in 3 4; do one_version "$version"; done
status=0
server_stop || status=$?
if [ "$status" = 0 ]; then result ok libnfs/server; else result FAILED libnfs/server "did not end well: status $status"; fi
if summary; then failed=0; fi
exit "$failed"
