# shellcheck shell=bash
# Byte-range locks between two clients: NLM with version 3, LOCK and LOCKU with version 4.

locks() {
    local version
    boot a b
    for version in 3 4.0 4.1 4.2; do
        check "locks/$version/mount" sharing_mount "$version"
        for scenario in conflict shared split blocking whole_file counting; do
            check "locks/$version/$scenario" "locks_$scenario" "/mnt/$version/$scenario-$version"
        done
    done
    for version in 4.0 4.1; do # a client that is gone: its locks last as long as its lease
        boot b
        check "locks/$version/left_by_client" left_by_client "$version"
        halt b
        check "locks/$version/client_gone" client_gone "/mnt/$version/left-$version"
    done
    halt a
}

sharing_mount() {
    on a "mount_version $1"
    on b "mount_version $1"
}

locks_conflict() {
    equal "$(on a "hold one helper lock $1 w 10 20 try" | cut -d' ' -f1)" locked "a: write lock of 10 to 29"
    equal "$(on b "helper lock $1 w 29 1 try")" conflict "b: write lock of 29"
    equal "$(on b "helper lock $1 r 0 11 try")" conflict "b: read lock of 0 to 10"
    equal "$(on b "helper holder $1 r 0 0")" "w 10 20" "b: who holds it"
    equal "$(on b "helper holder $1 w 0 10")" none "b: who holds what is before"
    equal "$(on b "hold two helper lock $1 w 0 10 try" | cut -d' ' -f1)" locked "b: write lock of 0 to 9"
    equal "$(on b "hold three helper lock $1 w 30 9223372036854775777 try" | cut -d' ' -f1)" locked "b: write lock from 30 to the end"
    equal "$(on a "helper lock $1 w 9223372036854775806 1 try")" conflict "a: write lock of the last byte"
    on a "release one"
    equal "$(on b "hold four helper lock $1 w 10 20 try" | cut -d' ' -f1)" locked "b: after a has ended"
    on b "release two; release three; release four"
    equal "$(on a "helper holder $1 w 0 0")" none "a: who holds it after all have ended"
}

locks_shared() {
    equal "$(on a "hold one helper lock $1 r 0 100 try" | cut -d' ' -f1)" locked "a: read lock"
    equal "$(on b "hold two helper lock $1 r 50 100 try" | cut -d' ' -f1)" locked "b: read lock"
    equal "$(on b "helper lock $1 w 0 10 try")" conflict "b: write lock under a's"
    equal "$(on a "helper lock $1 w 120 1 try")" conflict "a: write lock under b's"
    equal "$(on a "helper holder $1 w 120 1")" "r 50 100" "a: who holds it"
    on a "release one"
    on b "release two"
}

locks_split() { # a holds 0-9 shared, 10-39 and 60-99 exclusively
    equal "$(on a "hold one helper split $1")" locked "a"
    equal "$(on b "hold two helper lock $1 w 40 20 try" | cut -d' ' -f1)" locked "b: what a gave back"
    equal "$(on b "helper lock $1 w 39 1 try")" conflict "b: before the gap"
    equal "$(on b "helper lock $1 w 60 1 try")" conflict "b: behind the gap"
    equal "$(on b "hold three helper lock $1 r 0 10 try" | cut -d' ' -f1)" locked "b: what a made shared"
    equal "$(on b "helper lock $1 w 9 1 try")" conflict "b: write lock of what is shared"
    equal "$(on b "helper lock $1 r 10 1 try")" conflict "b: read lock of what is not"
    on a "release one"
    on b "release two; release three"
}

locks_blocking() {
    local waited
    equal "$(on a "hold one helper lock $1 w 0 0 try" | cut -d' ' -f1)" locked "a"
    on b "WAIT= hold two helper lock $1 w 0 0 wait"
    sleep 2.5
    equal "$(on b "cat /tmp/two.out")" "" "b has the lock while a holds it"
    on a "release one"
    waited=$(on b "output two")
    equal "${waited% *}" locked "b"
    more_than 2000 "${waited#* }" "milliseconds until b was granted the lock"
    # Version 4 clients ask again after 1, 2, 4, ... seconds; with NLM the server calls, or the client asks after 30 s.
    at_most 9000 "${waited#* }" "milliseconds until b was granted the lock"
    equal "$(on a "helper lock $1 r 0 1 try")" conflict "a while b holds it"
    on b "release two"
}

locks_whole_file() {
    equal "$(on a "hold one helper flock $1")" locked "a"
    equal "$(on b "helper flock $1")" conflict "b"
    on a "release one"
    equal "$(on b "hold two helper flock $1")" locked "b after a has ended"
    on b "release two"
}

locks_counting() { # no update of a number under the lock is lost: the lock also makes the other's data seen
    on a "helper count $1 150" &
    on b "helper count $1 150"
    wait $!
    on a "helper counted $1 300"
    on b "helper counted $1 300"
}

left_by_client() {
    equal "$(on b "mount_version $1; hold one helper lock /mnt/$1/left-$1 w 0 0 try" | cut -d' ' -f1)" locked "b"
    equal "$(on a "helper lock /mnt/$1/left-$1 w 0 0 try")" conflict "a while b is there"
}

client_gone() {
    local second
    for second in {1..45}; do
        case $(on a "hold two helper lock $1 w 0 0 try; release two") in
        conflict*) sleep 1 ;;
        locked*) more_than 2 "$second" "seconds until the lease ended"; return ;;
        esac
    done
    echo "a does not get the lock of a client that is gone"
    return 1
}
