# shellcheck shell=bash
# A Kerberos realm beside the guests: the KDC answers at the gateway, its database and keytabs are below $work/realm, which guests
# see as /host/realm. Sourced by scenarios.
#   realm_make             makes the realm
#   realm_start            starts its KDC
#   realm_guest GUEST...   starts rpc.gssd there, with a keytab for the machine
#   ticket GUEST USER UID [LIFETIME]   gives this user of the guest a ticket
realm=BENCHMASTER.TEST
domain=benchmaster.test
server_name=server.$domain
kdc_process=
# For the programs of this side: the KDC, its tools, the server.
export KRB5_CONFIG=$work/realm/krb5.conf KRB5_KDC_PROFILE=$work/realm/kdc.conf

realm_make() {
    local principal directory=$work/realm
    mkdir -p "$directory"
    cat >"$directory/krb5.conf" <<END
[libdefaults]
 default_realm = $realm
 dns_lookup_realm = false
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 ticket_lifetime = 10h
[realms]
 $realm = {
  kdc = $gateway:88
 }
END
    cat >"$directory/kdc.conf" <<END
[kdcdefaults]
 kdc_listen = $gateway:88
 kdc_tcp_listen = $gateway:88
[realms]
 $realm = {
  database_name = $directory/principal
  key_stash_file = $directory/stash
  max_life = 10h
 }
END
    kdb5_util create -s -r "$realm" -P "only for tests"
    for principal in "nfs/$server_name" "nfs/client-a.$domain" "nfs/client-b.$domain" alice bob; do
        kadmin.local -q "addprinc -randkey $principal"
        kadmin.local -q "ktadd -k $directory/${principal//\//-}.keytab $principal"
    done
    # Who the principals are at the server; bob is not in the map.
    cat >"$directory/users" <<END
nfs/client-a.$domain@$realm 0 0
nfs/client-b.$domain@$realm 0 0
alice@$realm 1000 1000,77
END
}

realm_start() {
    krb5kdc -n -r "$realm" >"$work/kdc.log" 2>&1 &
    kdc_process=$!
}

realm_stop() {
    kill "$kdc_process"
    wait "$kdc_process" || true
}

realm_guest() {
    local guest
    for guest in "$@"; do
        on "$guest" "echo '$server_address $server_name' >>/etc/hosts
            echo '${guest_address[$guest]} client-$guest.$domain client-$guest' >>/etc/hosts
            cp /host/realm/krb5.conf /etc/krb5.conf
            cp /host/realm/nfs-client-$guest.$domain.keytab /etc/krb5.keytab
            mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
            modprobe rpcsec_gss_krb5
            rpc.gssd -vv -f >/tmp/gssd.log 2>&1 &"
    done
}

ticket() {
    local cache=$work/realm/$1-$2.cache
    rm -f "$cache"
    kinit -k -t "$work/realm/$2.keytab" -c "FILE:$cache" ${4:+-l "$4"} "$2"
    # Under its name at once: rpc.gssd may be reading it.
    on "$1" "cp /host/realm/$1-$2.cache /tmp/new.cache && chmod 600 /tmp/new.cache && chown $3 /tmp/new.cache && mv /tmp/new.cache /tmp/krb5cc_$3"
}
