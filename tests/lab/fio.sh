#!/bin/bash
# Does Benchmaster measure what fio measures? Both do the same on the Linux kernel's client in one machine of a lab, in turns: random reads
# of 16 KiB and sequential writes of 1 MiB, past the client's cache, on one file each. Prints all rounds, the medians and their ratio;
# the exit status is 1 if one of them is further than LIMIT (0.10) from 1. Needs Debian's fio on this host, and what the lab needs.
#   tests/lab/fio.sh [ROUNDS]
# BENCHMASTER: the binary (default target/release/benchmaster); SECONDS_EACH: length of a measurement (5); BACK_END: of the lab.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
benchmaster=${BENCHMASTER:-$here/target/release/benchmaster}
rounds=${1:-5} seconds=${SECONDS_EACH:-5} limit=${LIMIT:-0.10}
lab=fio-$$
if ! command -v fio >/dev/null; then
    echo "skipped: fio is not installed"
    [ "${BENCHMASTER_REQUIRE_LAB:-0}" != 1 ]
    exit
fi
# shellcheck disable=SC2064 # the name of now
trap "'$benchmaster' lab down --name $lab >/dev/null 2>&1 || true" EXIT
"$benchmaster" lab up --name "$lab" --clients 1 ${BACK_END:+--back-end "$BACK_END"} >&2
share=$("$benchmaster" lab status | sed -n "/^$lab:/,/state and consoles/s/.*state and consoles: //p")/share
in_guest() { "$benchmaster" lab exec --name "$lab" c1 -- sh -euc "$1"; }

# fio and its libraries, with the loader that finds them there.
mkdir -p "$share/fio"
cp -L "$(command -v fio)" "$share/fio/"
ldd "$(command -v fio)" | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" "$share/fio/"; done
cat >"$share/study.toml" <<END
[study]
name = "beside-fio"
[target]
path = "/mnt/nfs"
[run]
cut = "none"
[design]
replicates = 1
[workload.read]
use = "random-read"
file_size = "64MiB"
io_size = "16KiB"
direct = true
duration = "${seconds}s"
[workload.write]
use = "sequential-write"
file_size = "64MiB"
io_size = "1MiB"
direct = true
duration = "${seconds}s"
END
in_guest 'mkdir -p /mnt/nfs && mount -t nfs -o vers=4.1 server:/export /mnt/nfs'

fio_of() { # RW SIZE FIELD: bytes per second; fields of the terse output count KiB
    in_guest "cd /mnt/nfs && /host/fio/ld-linux-x86-64.so.2 --library-path /host/fio /host/fio/fio --minimal --name=fio --filename=fio.$1 \
        --rw=$1 --bs=$2 --size=64m --direct=1 --ioengine=psync --time_based --runtime=$seconds --randrepeat=0 --norandommap" |
        cut -d';' -f"$3" | awk '{ print $1 * 1024 }'
}
declare -A values
for round in $(seq "$rounds"); do
    fio_read=$(fio_of randread 16k 7)
    fio_write=$(fio_of write 1m 48)
    in_guest 'rm -rf /tmp/r; cd /tmp; HOME=/tmp /benchmaster run /host/study.toml -o r >/dev/null 2>&1; /benchmaster export r --format csv -o /host/csv >/dev/null'
    own() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } $at["response"] == name { print $at["value"] }' "$share/csv/responses.csv"; }
    read_own=$(own read.throughput) write_own=$(own write.throughput)
    echo "round $round: read fio $fio_read benchmaster $read_own; write fio $fio_write benchmaster $write_own"
    values[fio_read]+=" $fio_read" values[read]+=" $read_own" values[fio_write]+=" $fio_write" values[write]+=" $write_own"
done
median() { tr ' ' '\n' | sed '/^$/d' | sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
status=0
for what in read write; do
    theirs=$(echo "${values[fio_$what]}" | median) ours=$(echo "${values[$what]}" | median)
    awk -v what=$what -v a="$theirs" -v b="$ours" -v limit="$limit" 'BEGIN {
        ratio = b / a; far = ratio < 1 - limit || ratio > 1 + limit
        printf "%s: fio %.1f MB/s, benchmaster %.1f MB/s (medians), ratio %.3f%s\n", what, a / 1e6, b / 1e6, ratio, far ? ": too far apart" : ""
        exit far }' || status=1
done
exit $status
