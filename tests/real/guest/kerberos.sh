# Scenarios of users with tickets: `sh -eu kerberos.sh SCENARIO`, in the directory $D, which everyone can write to, on a mount of
# version $V. Users 1000 (alice) and 1001 (bob) have tickets, user 1002 has none; root is the machine. The server knows alice by
# her number, as a member of group 77 too; it does not know bob.
# shellcheck shell=dash disable=SC2317
. /host/guest/library.sh

user() { # UID COMMAND...: with a group that the server does not hear of
    uid=$1
    shift
    helper as "$uid" 4711 "$@"
}
owner() { same "$(stat -c '%u %g' "$1")" "$2" "owner of $1"; }

owners() { # files belong to whom the ticket says
    user 1000 /bin/sh -c "echo from alice >'$D/alice'; mkdir '$D/folder'; ln -s x '$D/link'"
    user 1001 /bin/sh -c "echo from bob >'$D/bob'"
    echo from the machine >"$D/machine"
    forget
    owner "$D/alice" "1000 1000"
    owner "$D/folder" "1000 1000"
    owner "$D/link" "1000 1000"
    owner "$D/bob" "65534 65534"
    owner "$D/machine" "0 0"
    same "$(user 1001 /bin/cat "$D/alice")" "from alice"
}

refused() { # to others, whatever they say they are
    user 1000 /bin/sh -c "umask 077; echo secret >'$D/private'; mkdir '$D/closed'; echo secret >'$D/closed/file'"
    forget
    user 1001 /bin/helper denied "$D/private" r
    user 1001 /bin/helper denied "$D/private" w
    user 1001 /bin/helper denied "$D/closed/file" r
    user 1001 /bin/sh -c "! chmod 666 '$D/private' 2>/dev/null && ! chown 1001 '$D/private' 2>/dev/null"
    same "$(user 1000 /bin/cat "$D/private")" secret
    # Of another user's number no ticket is known.
    user 1002 /bin/helper denied "$D/private" r
}

groups() { # those that the server knows, not those that the client says
    echo for the group >"$D/group"
    chown 0:77 "$D/group"
    chmod 640 "$D/group"
    owner "$D/group" "0 77"
    same "$(user 1000 /bin/cat "$D/group")" "for the group"
    helper as 1001 77 /bin/helper denied "$D/group" r
}

without_ticket() {
    user 1002 /bin/sh -c "! ls '$D' 2>/dev/null && ! touch '$D/nothing' 2>/dev/null"
    [ ! -e "$D/nothing" ]
}

large() { # more than one call carries, at odd places
    user 1000 /bin/helper write "$D/large" 12345 9M 5
    forget
    user 1000 /bin/helper check "$D/large" 12345 9M 5
    helper zeros "$D/large" 0 12345
}

tree() { # with links, modes and old times
    for part in extra crates/lab; do
        cp -a "/host/tree/$part" "$D/tree"
        forget
        same_tree "/host/tree/$part" "$D/tree"
        [ $part = extra ] || helper alike "/host/tree/$part" "$D/tree"
        rm -rf "$D/tree"
    done
}

locks() {
    : >"$D/locked"
    chmod 666 "$D/locked"
    hold lock helper as 1000 4711 /bin/helper lock "$D/locked" w 0 10 try
    same "$(cut -d' ' -f1 /tmp/lock.out)" locked "alice's lock"
    same "$(user 1001 /bin/helper lock "$D/locked" w 5 1 try)" conflict "bob's lock"
    release lock
    hold lock helper as 1001 4711 /bin/helper lock "$D/locked" w 5 1 try
    same "$(cut -d' ' -f1 /tmp/lock.out)" locked "bob's lock, once alice has ended"
    release lock
}

"$@"
