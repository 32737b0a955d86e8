# shellcheck shell=bash
# Delegations, seen in what the client sends: a holder opens without OPEN; another's change makes it send DELEGRETURN.

delegations() {
    local version
    boot a b
    for version in 4.0 4.1 4.2; do
        check "delegations/$version/mount" sharing_mount "$version"
        check "delegations/$version/granted" delegation_granted "/mnt/$version" granted
        check "delegations/$version/recalled_by_write" delegation_recalled "/mnt/$version" write 'helper put FILE new'
        check "delegations/$version/recalled_by_truncate" delegation_recalled "/mnt/$version" truncate 'truncate -s 1 FILE'
        check "delegations/$version/recalled_by_remove" delegation_recalled "/mnt/$version" remove 'rm FILE'
        check "delegations/$version/recalled_by_rename" delegation_recalled "/mnt/$version" rename 'mv FILE FILE.away'
        check "delegations/$version/recalled_by_mode" delegation_recalled "/mnt/$version" mode 'chmod 600 FILE'
        check "delegations/$version/own_write" delegation_own_write "/mnt/$version"
        check "delegations/$version/both_read" delegation_both "/mnt/$version"
    done
    halt a b
}

sharing_mount() {
    on a "mount_version $1"
    on b "mount_version $1"
}

# delegate FILE: b writes it, a reads it until it has a delegation.
delegate() {
    local directory=${1%/*} before after
    on b "echo old >$1"
    # Servers may find that a file is worth a delegation only after some opens, or some time after it was written.
    for _ in {1..10}; do
        before=$(on a "calls $directory OPEN OPEN_NOATTR") # the second is OPEN by file handle
        equal "$(on a "helper reopen $1 20")" o "content"
        after=$(on a "calls $directory OPEN OPEN_NOATTR")
        [ $((after - before)) -gt 0 ] || return 0
        sleep 1
    done
    echo "$((after - before)) OPEN calls for 20 opens by a client that should hold a delegation"
    return 1
}

delegation_granted() { delegate "$1/${1##*/}-$2"; }

delegation_recalled() { # DIRECTORY NAME COMMAND: of b, on a file that a holds a delegation of
    local file=$1/${1##*/}-$2 before after took
    delegate "$file"
    before=$(on a "calls $1 DELEGRETURN")
    took=$(date +%s%N)
    on b "${3//FILE/$file}"
    took=$((($(date +%s%N) - took) / 1000000))
    after=$(on a "calls $1 DELEGRETURN")
    more_than 0 $((after - before)) "DELEGRETURN calls of the holder"
    at_most 8000 "$took" "milliseconds that the change took"
    case $2 in
    write) equal "$(on a "cat $file")" new "read by the former holder" ;;
    truncate) equal "$(on a "cat $file")" o "read by the former holder" ;;
    mode) equal "$(on a "cat $file; stat -c %a $file")" "old
600" "mode that the former holder sees once it has opened the file" ;;
    remove) on a "! cat $file 2>/dev/null" ;;
    rename) equal "$(on a "cat $file.away")" old "read by the former holder under the new name" ;;
    esac
}

delegation_own_write() { # the holder's own writing need not wait for anything
    local file=$1/${1##*/}-own
    delegate "$file"
    at_most 2000 "$(on a "helper put $file own")" "milliseconds that the holder's own write took"
    equal "$(on b "cat $file")" own "read by b"
}

delegation_both() { # several clients may hold read delegations of one file; a write by one takes the other's
    local file=$1/${1##*/}-both before after
    delegate "$file"
    before=$(on a "calls $1 DELEGRETURN")
    equal "$(on b "helper reopen $file 20")" o "read by b"
    after=$(on a "calls $1 DELEGRETURN")
    equal $((after - before)) 0 "DELEGRETURN calls of a because b reads"
    on b "helper put $file new" >/dev/null
    equal "$(on a "cat $file")" new "read by a"
    equal "$(on b "cat $file")" new "read by b"
}
