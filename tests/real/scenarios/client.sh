# shellcheck shell=bash
# Our own client and the `nfs` engine against the server, from this side of the bridge: the quick battery, and data that are
# verified, in every version the server has. Meant for other servers than ours: SERVER_COMMAND="exec tests/real/servers/linux".

client() {
    local version
    for version in ${CLIENT_VERSIONS:-3 4.0 4.1 4.2}; do
        check "client/$version/quick" client_quick "$version"
        check "client/$version/verified" client_verified "$version"
        check "client/$version/locks" client_locks "$version"
    done
}

client_run() { "${BENCHMASTER:-$repository/target/release/benchmaster}" "$@"; }

client_quick() {
    client_run quick "nfs://$server_address/export?version=$1" --duration 200ms -o "$work/quick-$1"
}

# Random writes of stamped blocks by two clients, read back; then reads of them.
client_verified() {
    local study=$work/verified-$1.toml
    cat >"$study" <<END
[study]
name = "verified"
[target]
url = "nfs://$server_address/export?version=$1&nconnect=2"
[clients]
count = 2
[design]
replicates = 2
response = "write.throughput"
[workload.write]
use = "random-write"
fileset = "data"
file_size = "8MiB"
io_size = "64KiB"
workers = 4
verify = true
duration = "500ms"
[workload.read]
use = "random-read"
fileset = "data"
file_size = "8MiB"
io_size = "64KiB"
workers = 4
verify = true
duration = "500ms"
END
    client_run run "$study" -o "$work/results-verified-$1"
}

# Workers of two clients take turns on one file under a lock.
client_locks() {
    local study=$work/locks-$1.toml
    cat >"$study" <<END
[study]
name = "locks"
[target]
url = "nfs://$server_address/export?version=$1"
[clients]
count = 2
[design]
replicates = 2
response = "locked.operations"
[workload.locked]
until = { duration = "500ms" }
[workload.locked.filesets.shared]
files = 1
size = "4KiB"
sharing = "shared"
[[workload.locked.groups]]
name = "all"
workers = 2
setup = [{ op = "open", fileset = "shared", file = "random", flags = ["write"] }]
flow = [
    { op = "lock", lock = "write" },
    { op = "read", io_size = "4KiB", offset = "random" },
    { op = "write", io_size = "4KiB", offset = "random" },
    { op = "unlock" },
]
END
    client_run run "$study" -o "$work/results-locks-$1"
}
