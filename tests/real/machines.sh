# shellcheck shell=bash
# Machines with the real Linux NFS client: user-mode Linux guests on a bridge, in namespaces of their own.
# Sourced by `run`. Functions: packages, build_guest, network, boot, on, halt; see README.md for the traps they avoid.

gateway=10.78.0.1
declare -A guest_address=([a]=10.78.0.11 [b]=10.78.0.12)
declare -A guest_process=()

# Installs what is missing. Fails, saying why, where this machine cannot do it.
packages() {
    local -A package_of=([linux.uml]=user-mode-linux [mount.nfs]=nfs-common [rpcbind]=rpcbind [kmod]=kmod [cpio]=cpio [ip]=iproute2
        [gcc]=gcc [unshare]=util-linux [busybox]=busybox-static
        [krb5kdc]=krb5-kdc [kadmin.local]=krb5-admin-server [kinit]=krb5-user)
    local command wanted=()
    export PATH=$PATH:/usr/sbin:/sbin
    for command in "${!package_of[@]}"; do
        command -v "$command" >/dev/null || wanted+=("${package_of[$command]}")
    done
    [ -e /usr/include/stdlib.h ] || wanted+=(libc6-dev)
    [ -e /usr/include/gnutls/gnutls.h ] || wanted+=(libgnutls28-dev)
    if command -v busybox >/dev/null && [ -n "$(libraries "$(command -v busybox)")" ]; then wanted+=(busybox-static); fi
    install_packages "${wanted[@]}"
}

install_packages() {
    [ $# -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "these packages are missing, and only root on Debian installs them here: $*"
        return 1
    fi
    export DEBIAN_FRONTEND=noninteractive
    echo "installing $*"
    timeout 300 apt-get update -qq && timeout 600 apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# The shared libraries of a program, one per line; nothing for a static one.
libraries() { ldd "$1" 2>/dev/null | grep -o '/[^ ]*' || true; }

# Sets `uml`, the command that runs user-mode Linux here: see uml.c.
find_uml() { # CACHE
    uml=(linux.uml)
    grep -qw amx_tile /proc/cpuinfo || return 0
    local program
    program=$1/uml-$(sha256sum "$here/uml.c" | cut -c1-16)
    [ -x "$program" ] || { gcc -O2 -Wall -Wextra -static -o "$program.$$" "$here/uml.c" && mv "$program.$$" "$program"; }
    # What is not a parameter of the kernel goes into init's environment, and from there to all programs.
    uml=("$program" linux.uml "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-XSAVE,-XSAVEC")
}

# The guests' root file system as an initramfs: busybox, the tools of the NFS client, the kernel's modules, our helper.
# Sets `image` and `uml`. It is kept in the cache, under a name made of all that goes into it.
build_guest() {
    local cache=${XDG_CACHE_HOME:-$HOME/.cache}/benchmaster-lab
    local modules version key root program module
    modules=$(find /usr/lib/uml/modules -mindepth 1 -maxdepth 1 | sort -V | tail -n 1)
    version=${modules##*/}
    key=$({ echo "$version"; dpkg-query -W nfs-common nfs-kernel-server libgssapi-krb5-2 libgnutls30 rpcbind busybox-static kmod iproute2 libc6; cat "$here"/machines.sh "$here"/{helper,handshake}.c "$here"/guest/{init,shell}; } 2>/dev/null | sha256sum | cut -c1-16)
    image=$cache/guest-$key.cpio
    mkdir -p "$cache"
    find_uml "$cache"
    # Two runs at once: the second one waits for what the first one makes.
    exec 9>"$cache/lock"
    flock 9
    [ ! -e "$image" ] || { exec 9>&-; return 0; }
    echo "building the guests' root file system: $image"
    root=$(mktemp -d "$cache/root.XXXXXX")
    chmod 755 "$root"
    mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,etc,proc,sys,dev,tmp,run,mnt,host,var/lib/nfs/{sm,sm.bak,v4recovery,rpc_pipefs,nfsdcld}}
    cp "$(command -v busybox)" "$root/bin/busybox"
    for program in $("$root/bin/busybox" --list); do
        [ "$program" = busybox ] || ln -s busybox "$root/bin/$program"
    done
    for program in /sbin/ip /sbin/mount.nfs /bin/mount /bin/umount /sbin/rpc.statd /usr/sbin/rpc.gssd /usr/sbin/rpcinfo /sbin/rpcbind /bin/kmod; do
        rm -f "$root/bin/${program##*/}"
        add_program "$root" "$program"
    done
    # Programs of the kernel's server, where they are installed: see servers/linux.
    for program in exportfs rpc.mountd rpc.nfsd nfsdcld rpc.svcgssd; do
        ! command -v "$program" >/dev/null || add_program "$root" "$(command -v "$program")" "/usr/sbin/$program"
    done
    # What rpc.svcgssd opens to find a principal's user.
    for program in /usr/lib/*/libnfsidmap/nsswitch.so; do add_program "$root" "$program"; done
    ln -sf mount.nfs "$root/sbin/mount.nfs4"
    ln -sf mount.nfs "$root/sbin/umount.nfs"
    ln -sf mount.nfs "$root/sbin/umount.nfs4"
    for program in modprobe insmod lsmod; do
        rm -f "$root/bin/$program"
        ln -s ../bin/kmod "$root/sbin/$program"
    done
    gcc -O2 -Wall -Wextra -static -o "$root/bin/helper" "$here/helper.c"
    gcc -O2 -Wall -Wextra -o "$root.handshake" "$here/handshake.c" -lgnutls
    add_program "$root" "$root.handshake" /bin/handshake
    rm "$root.handshake"
    install -m 755 "$here/guest/init" "$root/init"
    install -m 755 "$here/guest/shell" "$root/bin/shell"

    printf 'root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n_rpc:x:101:65534::/run:/bin/false\nstatd:x:102:65534::/var/lib/nfs:/bin/false\n' >"$root/etc/passwd"
    printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
    printf 'passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\nrpc: files\n' >"$root/etc/nsswitch.conf"
    cp /etc/netconfig /etc/rpc "$root/etc/"
    printf 'tcp 6 TCP\nudp 17 UDP\n' >"$root/etc/protocols"
    printf 'sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\nnfs 2049/tcp\n' >"$root/etc/services"
    ln -s /proc/mounts "$root/etc/mtab"
    ln -s /run "$root/var/run"
    : >"$root/etc/nfs.conf"

    mkdir -p "$root/lib/modules/$version"
    # The ciphers of Kerberos are found by aliases.
    for module in nfs nfsv3 nfsv4 lockd nfsd nfs_layout_nfsv41_files nfs_layout_flexfiles rpcsec_gss_krb5 cbc cts hmac; do
        sed -n "s|^\([^:]*/$module\.ko[^:]*\): *|\1 |p" "$modules/modules.dep"
    done | tr ' ' '\n' | sort -u | sed '/^$/d' | while read -r module; do
        install -D -m 644 "$modules/$module" "$root/lib/modules/$version/$module"
        strip --strip-debug "$root/lib/modules/$version/$module" 2>/dev/null || true
    done
    cp "$modules"/modules.{builtin,builtin.modinfo,order} "$root/lib/modules/$version/"
    depmod -b "$root" "$version"

    (cd "$root" && find . | cpio -o -H newc --quiet) >"$root.cpio"
    mv "$root.cpio" "$image"
    rm -rf "$root"
    find "$cache" -maxdepth 1 -name 'guest-*.cpio' ! -path "$image" -mtime +30 -delete
    exec 9>&-
}

add_program() { # ROOT PROGRAM [PLACE]: with its shared libraries
    local library place=${3:-$2}
    mkdir -p "$1${place%/*}"
    cp -L "$2" "$1$place"
    while read -r library; do
        [ -n "$library" ] && [ ! -e "$1$library" ] || continue
        mkdir -p "$1${library%/*}"
        cp -L "$library" "$1$library"
    done < <(libraries "$2")
}

# A bridge with the server's address, and a TAP device per guest. The namespaces are ours alone, so names cannot collide.
network() {
    local guest
    ip link set lo up
    ip link add bridge type bridge
    ip addr add "$gateway/24" dev bridge
    ip addr add "$server_address/24" dev bridge
    ip link set bridge up
    for guest in "${!guest_address[@]}" server; do tap "tap-$guest"; done
}

tap() {
    ip tuntap add dev "$1" mode tap
    ip link set "$1" master bridge
    ip link set "$1" up
}

# boot NAME...: (re)starts these guests and waits until they answer.
boot() {
    local guest
    for guest in "$@"; do
        halt "$guest"
        start_guest "$guest" "${guest_address[$guest]}" 448M &
        guest_process[$guest]=$!
    done
    for guest in "$@"; do
        for _ in {1..150}; do
            kill -0 "${guest_process[$guest]}" 2>/dev/null || break
            if [ "$(TIME=2 on "$guest" 'echo up' 2>/dev/null)" = up ]; then continue 2; fi
            sleep 0.2
        done
        echo "guest $guest does not answer; its console:" >&2
        tail -n 20 "$work/guest-$guest.log" >&2
        return 1
    done
}

# start_guest NAME ADDRESS MEMORY [ARGUMENT...]: becomes the guest; its console goes to $work/guest-NAME.log.
start_guest() {
    local name=$1 address=$2 memory=$3
    shift 3
    # In a session of its own, so that halt reaches the processes that play the guest's.
    exec setsid "${uml[@]}" "mem=$memory" "initrd=$image" "vec0:transport=tap,ifname=tap-$name,depth=64,gro=1" \
        "real.name=client-$name" "real.address=$address" "real.gateway=$gateway" "real.share=$work" "$@" \
        con=null con0=null,fd:1 quiet "umid=benchmaster-$$-$name-$RANDOM" </dev/null >>"$work/guest-$name.log" 2>&1
}

# halt NAME...: as if the power failed.
halt() {
    local guest process
    for guest in "$@"; do
        process=${guest_process[$guest]:-}
        [ -n "$process" ] || continue
        kill -KILL -- "-$process" 2>/dev/null || true
        wait "$process" 2>/dev/null || true
        unset "guest_process[$guest]"
    done
}

# on GUEST COMMANDS: runs shell commands in the guest (`set -eu`), prints their output, returns their status.
# TIME: seconds until it is given up (default 60).
on() {
    local output status=
    output=$(printf '. /host/guest/library.sh\n%s\n' "$2" | timeout "${TIME:-60}" busybox nc "${guest_address[$1]}" 7) || true
    status=${output##*status }
    if [[ ! $status =~ ^[0-9]+$ ]]; then
        printf '%s\nno answer from guest %s within %s s\n' "$output" "$1" "${TIME:-60}"
        return 124
    fi
    output=${output%status *}
    printf '%s' "$output"
    return "$status"
}
