# shellcheck shell=bash
# Our own client with Kerberos, from this side of the bridge, against the Linux kernel's server: data that are verified, with every
# version and service, and files that belong to whom the ticket says. SERVER_COMMAND="exec tests/real/servers/linux".
# shellcheck source=tests/real/realm.sh
. "$here/realm.sh"
# shellcheck source=tests/real/scenarios/client.sh
. "$here/scenarios/client.sh"

client_kerberos() {
    local version service
    if [ -z "${SERVER_COMMAND:-}" ]; then
        echo "skipped: it is for the kernel's server"
        return
    fi
    guest_address[server]=$server_address
    check client_kerberos/realm realm_make
    realm_start
    server_stop || true # the server that starts now finds the realm
    server_start
    for version in ${CLIENT_VERSIONS:-3 4.0 4.1 4.2}; do
        for service in krb5 krb5i krb5p; do
            check "client_kerberos/$version/$service/verified" kerberos_verified "$version" "$service"
        done
        check "client_kerberos/$version/owner" kerberos_owner "$version"
        check "client_kerberos/$version/sys" kerberos_by_sys "$version"
    done
    realm_stop
}

kerberos_url() { # VERSION SERVICE
    echo "nfs://$server_address/export?version=$1&sec=$2&krb5_server=nfs/$server_name&krb5_keytab=$work/realm/alice.keytab"
}

kerberos_study() { # FILE URL DURATION: random writes of stamped blocks, read back; then reads of them
    cat >"$1" <<END
[study]
name = "verified"
[target]
url = "$2"
[design]
replicates = 1
response = "write.throughput"
[workload.write]
use = "random-write"
fileset = "data"
file_size = "2MiB"
io_size = "64KiB"
workers = 4
verify = true
duration = "$3"
[workload.read]
use = "random-read"
fileset = "data"
file_size = "2MiB"
io_size = "64KiB"
workers = 4
verify = true
duration = "300ms"
END
}

kerberos_verified() { # VERSION SERVICE
    local study=$work/$1-$2.toml
    kerberos_study "$study" "$(kerberos_url "$1" "$2")" 300ms
    client_run run "$study" -o "$work/results-$1-$2"
}

# While it writes, all files are of alice, at the server.
kerberos_owner() { # VERSION
    local study=$work/$1-owner.toml run found
    kerberos_study "$study" "$(kerberos_url "$1" krb5p)" 4s
    client_run run "$study" -o "$work/results-$1-owner" >"$work/owner-$1.log" 2>&1 &
    run=$!
    for _ in {1..100}; do
        found=$(on server "find /export -mindepth 1 -type f -exec stat -c %u {} + | sort -u")
        [ -z "$found" ] || break
        sleep 0.2
    done
    wait "$run"
    equal "$found" 1000 "users that files belong to"
}

kerberos_by_sys() { # VERSION
    local output
    ! output=$(client_run quick "nfs://$server_address/export?version=$1" --duration 100ms -o "$work/results-$1-sys" 2>&1)
    [[ $output == *"it allows sec=krb5"* ]] || { echo "$output"; return 1; }
}
