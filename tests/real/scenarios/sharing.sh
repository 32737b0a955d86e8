# shellcheck shell=bash
# Two clients on the same files: what one closed the other sees; who creates a name first has it.

sharing() {
    local version
    boot a b
    for version in 3 4.0 4.1 4.2; do
        check "sharing/$version/mount" sharing_mount "$version"
        check "sharing/$version/close_to_open" close_to_open "/mnt/$version/shared-$version"
        check "sharing/$version/exclusive_create" race "/mnt/$version/race-$version"
        check "sharing/$version/rename_and_remove" rename_and_remove "/mnt/$version/moved-$version"
        check "sharing/$version/large-$version" on_both_large "/mnt/$version/large-$version"
    done
    halt a b
}

sharing_mount() {
    on a "mount_version $1"
    on b "mount_version $1"
}

close_to_open() {
    local i
    on a "echo 0 >$1; cat $1" >/dev/null
    for i in 1 2 3 4 5 6; do
        on a "echo from a $i >$1"
        equal "$(on b "cat $1")" "from a $i" "read by b"
        on b "echo from b, longer, $i >>$1"
        equal "$(on a "cat $1")" "from a $i
from b, longer, $i" "read by a"
    done
}

race() {
    local first second
    on a "mkdir $1"
    on a "helper claim $1 300" >"$work/race.a" &
    on b "helper claim $1 300" >"$work/race.b"
    wait $!
    first=$(cat "$work/race.a") second=$(cat "$work/race.b")
    equal $((first + second)) 300 "names won by a ($first) and b ($second)"
}

rename_and_remove() { # seen by the other as soon as it opens or after its attribute cache ends
    on a "mkdir $1; echo one >$1/one"
    equal "$(on b "cat $1/one")" one
    on a "mv $1/one $1/two; echo changed >$1/two"
    equal "$(on b "cat $1/two")" changed "the renamed file"
    on b "rm $1/two"
    on a 'sleep 1; for i in $(seq 70); do [ -e '"$1"'/two ] || exit 0; sleep 1; done; echo still there; exit 1'
    on a "rmdir $1"
}

on_both_large() {
    on a "helper write $1 0 20M 4"
    on b "helper check $1 0 20M 4; helper write $1 5M 5M 5"
    on a "helper check $1 0 5M 4; helper check $1 5M 5M 5; helper check $1 10M 10M 4; rm $1"
}
