# Scenarios of one client: `sh -eu files.sh SCENARIO`, in the directory $D on a mount of version $V at $M.
# A scenario says what is wrong and fails, or says nothing.
# shellcheck shell=dash disable=SC2317
. /host/guest/library.sh

tree() { # a source tree there, compared after the caches are dropped, and back
    cp -a /host/tree "$D/tree"
    forget
    same_tree /host/tree "$D/tree"
    helper alike /host/tree "$D/tree"
    cp -a "$D/tree" /tmp/back
    same_tree /host/tree /tmp/back
    rm -rf /tmp/back "$D/tree"
    [ ! -e "$D/tree" ]
}

unlink_under_open() { helper unlink-open "$D"; }
rename_under_open() { helper rename-open "$D"; }
names() { mkdir "$D/names"; helper names "$D/names"; }

hard_links() {
    echo content >"$D/one"
    for i in $(seq 50); do ln "$D/one" "$D/link-$i"; done
    forget
    same "$(stat -c %h "$D/one")" 51 "links"
    same "$(stat -c %i "$D/link-7")" "$(stat -c %i "$D/one")" "inode"
    rm "$D/one"
    echo more >>"$D/link-1"
    same "$(cat "$D/link-50")" "content
more"
    rm "$D"/link-[1-4]*
    forget
    same "$(stat -c %h "$D/link-5")" 6 "links left"
}

symbolic_links() {
    long=$(head -c 1000 /dev/zero | tr '\0' l)
    mkdir "$D/sub"
    echo content >"$D/sub/target"
    ln -s sub/target "$D/to-file"
    ln -s sub "$D/to-directory"
    ln -s nowhere "$D/dangling"
    ln -s "$long" "$D/long"
    ln -s loop "$D/loop"
    forget
    same "$(cat "$D/to-file")" content
    same "$(cat "$D/to-directory/target")" content
    same "$(readlink "$D/dangling")" nowhere
    same "$(readlink "$D/long")" "$long"
    ! cat "$D/dangling" 2>/dev/null
    ! cat "$D/loop" 2>/dev/null
    rm "$D/to-directory"
    [ -e "$D/sub/target" ]
}

large_directory() {
    helper many "$D/many" 4000
    helper listed "$D/many" 4000
    forget
    helper listed "$D/many" 4000
    same "$(find "$D/many" -type f | wc -l)" 4000
    forget
    helper thin "$D/many" 4000
    rm -r "$D/many"
}

attributes() {
    helper attributes "$D/file"
    forget
    helper attributes-are "$D/file"
}

special_files() {
    mkfifo "$D/fifo"
    mknod "$D/character" c 1 3
    mknod "$D/block" b 259 70000
    forget
    same "$(stat -c '%F %t %T' "$D/fifo" "$D/character" "$D/block")" "fifo 0 0
character special file 1 3
block special file 103 11170"
    same "$(cd "$D" && find . -type p)" ./fifo
}

sizes() { helper sizes "$D/file"; }

mapped() {
    helper mmap "$D/file"
    forget
    helper check "$D/file" 0 300000 5
}

exclusive_create() {
    mkdir "$D/race"
    rm -f /tmp/won.*
    for i in 1 2 3 4; do helper claim "$D/race" 200 >/tmp/won.$i & done
    wait
    same "$(cat /tmp/won.? | awk '{ n += $1 } END { print n }')" 200 "files won"
    rm -r "$D/race"
}

permissions() {
    : >"$D/private"
    chmod 600 "$D/private"
    mkdir -m 700 "$D/closed"
    echo seen >"$D/public"
    chmod 755 "$D"
    helper as 1000 1000 /bin/helper denied "$D/private" r
    helper as 1000 1000 /bin/helper denied "$D/public" w
    helper as 1000 1000 /bin/helper denied "$D/new" w 2>/dev/null || helper as 1000 1000 /bin/sh -c "! touch '$D/new' 2>/dev/null"
    helper as 1000 1000 /bin/sh -c "! ls '$D/closed' 2>/dev/null"
    same "$(helper as 1000 1000 /bin/cat "$D/public")" seen
    chown 1000 "$D/private"
    helper as 1000 1000 /bin/sh -c "echo mine >'$D/private'"
    chmod 660 "$D/private"
    chown 0:77 "$D/private"
    same "$(helper as 1000 77 /bin/cat "$D/private")" mine
    chmod 1777 "$D"
    helper as 1001 1001 /bin/sh -c "! rm -f '$D/public' 2>/dev/null"
    [ -e "$D/public" ]
}

transfer_size() {
    awk -v at="$M" '$2 == at { print $4 }' /proc/mounts | tr ',' '\n' >/tmp/options
    grep -x -e "vers=$V" -e rsize=1048576 -e wsize=1048576 /tmp/options >/tmp/found || true
    same "$(sort /tmp/found | tr '\n' ' ')" "rsize=1048576 vers=$V wsize=1048576 " "options in /proc/mounts"
}

statistics() {
    # shellcheck disable=SC2046
    set -- $(stat -f -c '%b %f %a %c %l' "$D")
    [ "$1" -gt 0 ] && [ "$2" -gt 0 ] && [ "$3" -gt 0 ] && [ "$5" = 255 ] || { echo "statfs: $*"; return 1; }
}

large_file() { # 5 GiB, with data at its ends and across the limits of 31 and 32 bits
    f=$D/large
    helper write "$f" 0 3M 1
    truncate -s 5G "$f"
    for at in 2046 4080 5117; do helper write "$f" "${at}M" 3M 1; done
    helper write "$f" 4090M 16M 1
    forget
    same "$(stat -c %s "$f")" 5368709120 size
    for at in 2046 4080 5117 0; do helper check "$f" "${at}M" 3M 1; done
    helper check "$f" 4090M 16M 1
    for at in 3 2049 4083 4106 5100; do helper zeros "$f" "${at}M" 7M; done
    helper write "$f" 4294967290 12 9
    forget
    helper check "$f" 4294967290 12 9
    helper check "$f" 4294967302 1000 1
    # Reading all of it takes long: one version does.
    if [ "$V" = 4.1 ]; then dd if="$f" of=/dev/null bs=1M 2>&1 | grep -F '5120+0 records in'; fi
    truncate -s 4294967297 "$f"
    forget
    same "$(stat -c %s "$f")" 4294967297 "size after truncation"
    rm "$f"
}

bulk() { # more data than the client's memory takes in at once
    helper write "$D/bulk" 0 200M 3
    forget
    helper check "$D/bulk" 0 200M 3
    rm "$D/bulk"
}

model() { # thousands of random operations have the outcome that they have on a local file system
    for seed in 1 2; do
        mkdir -p "$D/model" /tmp/reference
        helper model "$D/model" /tmp/reference $seed 4000
        forget
        same_tree "$D/model" /tmp/reference
        rm -r "$D/model" /tmp/reference
    done
}

many_writers() { # several processes on files of their own in one directory
    for i in 1 2 3 4; do
        (for n in $(seq 50); do echo "$i $n" >"$D/$i.$n"; done; helper write "$D/large.$i" 0 4M $i) &
    done
    wait
    forget
    for i in 1 2 3 4; do
        for n in $(seq 50); do same "$(cat "$D/$i.$n")" "$i $n"; done
        helper check "$D/large.$i" 0 4M $i
    done
}

survives_unmount() {
    echo kept >"$D/kept"
    mkdir -p /tmp/second
    AT=/tmp/second mount_version "$V" nosharecache
    same "$(cat "/tmp/second/${D##*/}/kept")" kept
    umount /tmp/second
}

extended_attributes() {
    echo x >"$D/file"
    mkdir "$D/directory"
    helper xattr "$D/file"
    helper xattr "$D/directory"
    helper xattr-set "$D/file" user.kept value
    forget
    helper xattr-is "$D/file" user.kept value
}
allocate() { helper allocate "$D/file"; }
punch_hole() { helper punch "$D/file"; }
seek_hole() { helper seek "$D/file"; }
copy_range() {
    helper copy "$D/file"
    [ "$(calls "$M" COPY)" -gt 0 ] || { echo "no COPY was sent"; return 1; }
}
clone_range() { helper clone "$D/file"; }

several_connections() { # the only mount of its version: connections belong to the server, not to the mount
    for i in 1 2 3 4; do helper write "$D/$i" 0 16M "$i" & done
    wait
    forget
    for i in 1 2 3 4; do helper check "$D/$i" 0 16M "$i"; done
    same "$(transports "$M" | wc -l)" 4 connections
    # The ninth column counts the calls sent; every connection must carry some.
    same "$(transports "$M" | awk '$9 > 5' | wc -l)" 4 "connections in use: $(transports "$M")"
}

"$@"
