# shellcheck shell=bash
# The Linux client with Kerberos, rpc.gssd and tickets of users, in every version and with every service: whose files are whose,
# who is refused, and that contexts may end. What one client does is in guest/kerberos.sh and guest/files.sh.
# shellcheck source=tests/real/realm.sh
. "$here/realm.sh"

kerberos() {
    local version service server_options="$server_options --export /safe:sec=krb5p --sec krb5:krb5i:krb5p \
        --keytab '$work/realm/nfs-$server_name.keytab' --map '$work/realm/users' --state '$work/server/state'"
    if [ -n "${SERVER_COMMAND:-}" ]; then
        echo "skipped: only benchmaster serve is set up with Kerberos here"
        return
    fi
    server_stop || true
    check kerberos/realm realm_make
    realm_start
    server_start
    boot a b
    check kerberos/gssd realm_guests
    for version in ${KERBEROS_VERSIONS:-3 4.0 4.1 4.2}; do
        for service in krb5 krb5i krb5p; do kerberos_service "$version" "$service"; done
        check "kerberos/$version/flavours" kerberos_flavours "$version"
    done
    for version in 4.1 4.2; do check "kerberos/$version/delegation_recalled" kerberos_recall "$version"; done
    check kerberos/expiry kerberos_expiry
    check kerberos/restart/before kerberos_writers
    server_stop || result FAILED kerberos/restart/stop "status $? after SIGTERM"
    server_start
    check kerberos/restart/after kerberos_written
    halt a b
    realm_stop
}

realm_guests() {
    realm_guest a b
    ticket a alice 1000
    ticket a bob 1001
}

kerberos_service() { # VERSION SERVICE
    local name=kerberos/$1/$2 scenario
    check "$name/mount" kerberos_mount a "$1" "$2"
    [ "$outcome" = ok ] || return 0
    for scenario in owners refused groups without_ticket large tree locks; do
        check "$name/$scenario" kerberos_client kerberos "$1" "$2" "$scenario"
    done
    if [ "$2" = krb5p ]; then # these take longer: one service is enough
        for scenario in sizes mapped many_writers; do
            check "$name/$scenario" kerberos_client files "$1" "$2" "$scenario"
        done
    fi
    check "$name/unmount" on a "umount /mnt/$1"
}

kerberos_mount() { # GUEST VERSION SERVICE [OPTIONS]
    on "$1" "SERVER=$server_name mount_version $2 sec=$3${4:+,$4}
        grep -q ' /mnt/$2 .*,sec=$3,' /proc/mounts"
}

kerberos_client() { # FILE VERSION SERVICE SCENARIO
    TIME=90 on a "export V=$2 M=/mnt/$2 D=/mnt/$2/$2-$3-$4
        mkdir -m 777 \$D
        chmod 777 \$D
        sh -eu /host/guest/$1.sh $4
        rm -rf \$D"
}

# An export is used by what it allows alone; a client that asks for nothing gets that.
kerberos_flavours() { # VERSION
    on a "SERVER=$server_name
        mkdir -p /mnt/safe
        for flavour in sys krb5 krb5i; do
            ! mount -t nfs -o vers=$1,proto=tcp,sec=\$flavour $server_name:/safe /mnt/safe 2>/dev/null || { echo /safe by \$flavour; exit 1; }
        done
        ! mount -t nfs -o vers=$1,proto=tcp,sec=sys $server_name:/export /mnt/safe 2>/dev/null || { echo /export by sys; exit 1; }
        mount -t nfs -o vers=$1,proto=tcp $server_name:/safe /mnt/safe
        grep ' /mnt/safe .*,sec=krb5p,' /proc/mounts
        echo content >/mnt/safe/file-$1
        forget
        same \"\$(cat /mnt/safe/file-$1)\" content
        umount /mnt/safe"
}

# shellcheck source=tests/real/scenarios/delegations.sh
. "$here/scenarios/delegations.sh"
# shellcheck source=tests/real/scenarios/restart.sh
. "$here/scenarios/restart.sh"

kerberos_recall() { # VERSION
    kerberos_mount a "$1" krb5i
    kerberos_mount b "$1" krb5p
    delegation_recalled "/mnt/$1" write 'helper put FILE new'
    on a "umount /mnt/$1"
    on b "umount /mnt/$1"
}

contexts() { on a "grep -c 'krb5_not_machine_creds.*uid 1000 ' /tmp/gssd.log"; } # that rpc.gssd was asked for in alice's name

# Alice writes files while her tickets, which live for five seconds, end and are renewed. What fails without one she does again;
# what was written stays.
kerberos_expiry() {
    local version before ready
    ticket a alice 1000 5s
    before=$(contexts)
    for version in 3 4.0 4.1 4.2; do
        kerberos_mount a "$version" krb5i
        on a "mkdir -m 777 /mnt/$version/expiry-$version
            WAIT= hold expiry-$version helper as 1000 1000 /bin/sh -c 'for n in \$(seq 40); do
                until helper write /mnt/$version/expiry-$version/\$n 0 5000 \$n; do usleep 200000; done 2>/dev/null; usleep 400000; done; echo done'"
    done
    for _ in {1..40}; do
        sleep 3
        ticket a alice 1000 5s
        ready=$(on a "cat /tmp/expiry-*.out | wc -l")
        [ "$ready" != 4 ] || break
    done
    equal "$ready" 4 "writers that have ended"
    for version in 3 4.0 4.1 4.2; do
        on a "forget; for n in \$(seq 40); do helper check /mnt/$version/expiry-$version/\$n 0 5000 \$n; done"
    done
    # In sixteen seconds three tickets end at least.
    more_than 11 $(($(contexts) - before)) "contexts of alice"
    on a "umount -a -t nfs,nfs4"
}

# The server forgets all contexts, as servers do that start again, while files are written.
kerberos_writers() {
    local version
    ticket a alice 1000
    for version in 3 4.0 4.1 4.2; do
        kerberos_mount a "$version" krb5p
        on a "mkdir -m 777 /mnt/$version/restart-$version
            WAIT= hold restart-$version helper as 1000 1000 /bin/sh -c 'helper write /mnt/$version/restart-$version/file 0 24M 7 300 && echo written'"
    done
    contexts >"$work/contexts"
}

kerberos_written() {
    local version
    for version in 3 4.0 4.1 4.2; do
        has_written "restart-$version" "the writer with version $version"
        on a "forget
            helper as 1000 1000 /bin/helper check /mnt/$version/restart-$version/file 0 24M 7
            same \"\$(stat -c '%u %g' /mnt/$version/restart-$version/file)\" '1000 1000'"
    done
    more_than 3 $(($(contexts) - $(cat "$work/contexts"))) "contexts of alice, made again"
    on a "umount -a -t nfs,nfs4"
}
