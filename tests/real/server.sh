# shellcheck shell=bash
# The server under test. Sourced by `run` and `libnfs.sh`, which set server_address, server_port and work.
#   BENCHMASTER       the binary (default: target/release/benchmaster)
#   SERVER_COMMAND    another server: a command for bash, run with $SERVER_ADDRESS, $SERVER_PORT and $SERVER_DIRECTORY (its
#                     own, empty at first, kept over restarts); it exports /export read-write without root squashing,
#                     runs in the foreground, ends on SIGTERM
server_process=

# Prints why there is no server to test, and fails.
find_server() {
    [ -z "${SERVER_COMMAND:-}" ] || return 0
    local binary=${BENCHMASTER:-$repository/target/release/benchmaster}
    if ! [ -x "$binary" ]; then
        echo "no server: $binary does not exist (cargo build --release)"
        return 1
    fi
    if ! "$binary" serve --help >/dev/null 2>&1; then
        echo "no server: $binary has no command serve"
        return 1
    fi
}

# server_start [OPTIONS]: options are for benchmaster serve.
server_start() {
    local command=${SERVER_COMMAND:-}
    export BENCHMASTER_REAL_WORK=$work BENCHMASTER_REAL_IMAGE=${image:-}
    export SERVER_ADDRESS=$server_address SERVER_PORT=$server_port SERVER_DIRECTORY=$work/server
    mkdir -p "$SERVER_DIRECTORY"
    if [ -z "$command" ]; then
        command="exec '${BENCHMASTER:-$repository/target/release/benchmaster}' serve --allow-remote --listen '$server_address:$server_port' \
            --export /export --lease 10s ${server_options:-} $*"
    fi
    bash -c "$command" >>"$work/server.log" 2>&1 </dev/null &
    server_process=$!
    for _ in {1..300}; do
        if (exec 3<>"/dev/tcp/$server_address/$server_port") 2>/dev/null; then return 0; fi
        kill -0 "$server_process" 2>/dev/null || break
        sleep 0.1
    done
    echo "the server does not listen; its log:"
    tail -n 20 "$work/server.log"
    return 1
}

# Ends the server with SIGTERM; its status, or 137 when it had to be killed after 20 s.
server_stop() {
    [ -n "$server_process" ] || return 0
    local status=0 process=$server_process
    server_process=
    kill -TERM "$process" 2>/dev/null || true
    for _ in {1..200}; do
        kill -0 "$process" 2>/dev/null || break
        sleep 0.1
    done
    kill -KILL "$process" 2>/dev/null || true
    wait "$process" || status=$?
    return "$status"
}
