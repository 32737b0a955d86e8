# shellcheck shell=bash
# One client and its files, with every version of the protocol; what each scenario does is in guest/files.sh.

common=(tree unlink_under_open rename_under_open names hard_links symbolic_links large_directory attributes special_files sizes mapped
    exclusive_create permissions transfer_size statistics large_file bulk model many_writers survives_unmount)
of_4_2=(extended_attributes allocate punch_hole seek_hole copy_range clone_range)

files() {
    boot a b
    local streams=()
    files_of a 3 4.1 &
    streams+=($!)
    files_of b 4.0 4.2 &
    streams+=($!)
    wait "${streams[0]}"
    wait "${streams[1]}"
    halt a b
}

files_of() { # GUEST VERSION...
    local guest=$1 version scenario scenarios
    shift
    for version in "$@"; do
        check "files/$version/mount" on "$guest" "mount_version $version"
        [ "$outcome" = ok ] || continue
        scenarios=("${common[@]}")
        [ "$version" != 4.2 ] || scenarios+=("${of_4_2[@]}")
        for scenario in ${FILES_ONLY:-"${scenarios[@]}"}; do
            check "files/$version/$scenario" one_client "$guest" "$version" "$scenario"
        done
        check "files/$version/unmount" on "$guest" "umount /mnt/$version"
        check "files/$version/mount_with_several_connections" on "$guest" "mount_version $version nconnect=4"
        [ "$outcome" = ok ] || continue
        check "files/$version/several_connections" one_client "$guest" "$version" several_connections
        check "files/$version/unmount_several_connections" on "$guest" "umount /mnt/$version"
    done
}

one_client() { # GUEST VERSION SCENARIO
    TIME=90 on "$1" "export V=$2 M=/mnt/$2 D=/mnt/$2/$2-$3
        mkdir \$D
        sh -eu /host/guest/files.sh $3
        rm -rf \$D"
}
