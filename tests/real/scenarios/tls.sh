# shellcheck shell=bash
# The Linux client with xprtsec=tls and mtls. `handshake` in the guests makes the handshakes: Debian 12 has no tlshd. Its kernel has no
# TLS for NFS either: the guests' is the one of `benchmaster lab kernel build 6.12`.
# shellcheck source=tests/real/scenarios/files.sh
. "$here/scenarios/files.sh"
# shellcheck source=tests/real/scenarios/delegations.sh
. "$here/scenarios/delegations.sh"
# shellcheck source=tests/real/scenarios/restart.sh
. "$here/scenarios/restart.sh"
server_name=server.benchmaster.test

tls() {
    local version scenario kernel uml=("${uml[@]}") plain_options=$server_options
    if [ -n "${SERVER_COMMAND:-}" ]; then
        echo "skipped: only benchmaster serve is set up with TLS here"
        return
    fi
    if ! kernel=$(tls_kernel); then
        local why="no kernel with TLS (benchmaster lab kernel build 6.12)"
        [ "${BENCHMASTER_REQUIRE_LAB:-0}" != 1 ] || result FAILED tls/kernel "$why"
        echo "skipped: $why"
        return
    fi
    uml=("${uml[@]/#linux.uml/$kernel}")
    check tls/certificates tls_certificates
    server_stop || true
    local server_options="$plain_options --state '$work/server/state' --tls '$work/tls/server.pem,$work/tls/server.key'"
    server_start
    boot a b
    check tls/handshakes tls_handshakes tls/ca.pem
    for version in 3 4.0 4.1 4.2; do
        check "tls/$version/mount" tls_mount a "$version" tls
        [ "$outcome" = ok ] || continue
        for scenario in sizes mapped many_writers hard_links; do
            check "tls/$version/$scenario" one_client a "$version" "$scenario"
        done
    done
    for version in 4.1 4.2; do
        check "tls/$version/mount_of_another" tls_mount b "$version" tls
        check "tls/$version/delegation_recalled" delegation_recalled "/mnt/$version" write 'helper put FILE new'
    done
    check tls/restart/before tls_writers
    server_stop || result FAILED tls/restart/stop "status $? after SIGTERM"
    server_start
    check tls/restart/after tls_written
    check tls/another_authority tls_another_authority

    server_stop || true
    server_options="$plain_options --require-tls --tls '$work/tls/server.pem,$work/tls/server.key,$work/tls/ca.pem'"
    server_start
    check tls/mutual/refused tls_refused
    check tls/mutual/handshakes tls_handshakes tls/ca.pem tls/client.pem tls/client.key
    for version in 4.0 4.1 4.2; do
        check "tls/mutual/$version/mount" tls_mount a "$version" mtls
        [ "$outcome" = ok ] || continue
        check "tls/mutual/$version/sizes" one_client a "$version" sizes
    done
    halt a b
}

# The newest kernel that was built with TLS.
tls_kernel() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/benchmaster/lab/kernels place
    # shellcheck disable=SC2012 # names of hexadecimal digits
    for place in $(ls -t "$cache" 2>/dev/null); do
        if grep -qx CONFIG_TLS=y "$cache/$place/config" 2>/dev/null; then
            echo "$cache/$place/linux"
            return
        fi
    done
    return 1
}

tls_certificates() {
    local directory
    for directory in tls other; do
        "${BENCHMASTER:-$repository/target/release/benchmaster}" certificates "$work/$directory" --name "$server_name"
    done
}

tls_handshakes() { # FILE...: below /host, for both guests
    local guest
    for guest in a b; do
        on "$guest" "grep -q $server_name /etc/hosts || echo '$server_address $server_name' >>/etc/hosts
            [ ! -e /tmp/handshake.process ] || release handshake
            cd /host
            WAIT= hold handshake handshake $*"
    done
}

# Linux 6.12 stops with a panic when a mount of version 3 does not say the protocol of MOUNT.
tls_mount() { # GUEST VERSION POLICY
    on "$1" "SERVER=$server_name mount_version $2 xprtsec=$3,mountproto=tcp
        grep -q ' /mnt/$2 .*,xprtsec=$3,' /proc/mounts"
}

handshakes() { on a "grep -c ^done /tmp/handshake.out"; }

tls_writers() {
    local version
    for version in 3 4.0 4.1 4.2; do
        on a "WAIT= hold restart-$version sh -c 'helper write /mnt/$version/restart-$version 0 24M 7 300 && echo written'"
    done
    handshakes >"$work/handshakes"
}

tls_written() {
    local version
    for version in 3 4.0 4.1 4.2; do
        has_written "restart-$version" "the writer with version $version"
        on a "forget; helper check /mnt/$version/restart-$version 0 24M 7"
    done
    more_than 3 $(($(handshakes) - $(cat "$work/handshakes"))) "handshakes of connections that were made again"
    on a "umount -a -t nfs,nfs4"
    on b "umount -a -t nfs,nfs4"
}

not_mounted() { # VERSION OPTIONS: and what the client says about it
    on a "mkdir -p /mnt/refused
        ! timeout 20 mount -t nfs -o vers=$1,proto=tcp,retry=0,$2 $server_name:/export /mnt/refused 2>&1
        ! grep -q /mnt/refused /proc/mounts"
}

# The server's certificate is not of the authority that the client trusts.
tls_another_authority() {
    local version
    tls_handshakes other/ca.pem
    for version in 3 4.0 4.1 4.2; do not_mounted "$version" xprtsec=tls,mountproto=tcp; done
    more_than 3 "$(on a "grep -c '^failed .*certificate' /tmp/handshake.out")" "handshakes that failed"
}

# Without TLS, and without a certificate, clients are refused.
tls_refused() {
    tls_handshakes tls/ca.pem
    not_mounted 4.1 xprtsec=none
    not_mounted 4.2 xprtsec=tls
    more_than 0 "$(grep -c 'the client presents no certificate' "$work/server.log")" "refusals in the server's log"
}
