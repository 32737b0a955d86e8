# shellcheck shell=bash
# Results: one line per scenario, `ok NAME` or `FAILED NAME: why`, and their sum. Sourced by `run` and `libnfs.sh`.

result() { # ok|FAILED NAME [WHY]
    printf '%s %s%s\n' "$1" "$2" "${3:+: $3}" | tee -a "$work/results"
}

# check NAME COMMAND...: runs the scenario; a failure's reason is the last lines that it printed. Sets outcome (ok, FAILED).
check() {
    local name=$1 output status=0 started=$SECONDS
    shift
    output=$(mktemp "$work/output.XXXXXX")
    # In a process of its own and not in a condition, so that `set -e` holds within.
    (set -euo pipefail; "$@") >"$output" 2>&1 &
    wait $! || status=$?
    if [ "$status" = 0 ]; then
        outcome=ok
        result ok "$name"
    else
        outcome=FAILED
        result FAILED "$name" "$(tail -n 4 "$output" | tr '\r\n' '  ' | cut -c1-500)(status $status after $((SECONDS - started)) s)"
    fi
    rm -f "$output"
}

summary() {
    local passed failed
    passed=$(grep -c '^ok ' "$work/results" || true)
    failed=$(grep -c '^FAILED ' "$work/results" || true)
    echo "$passed passed, $failed failed ($SECONDS s)"
    grep '^FAILED ' "$work/results" || true
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# skip WHY: ends the script; a failure where the tests are required.
skip() {
    if [ "${BENCHMASTER_REQUIRE_LAB:-0}" = 1 ]; then
        echo "FAILED: the tests with real clients cannot run: $1"
        exit 1
    fi
    echo "skipped the tests with real clients: $1"
    exit 0
}

# equal GOT EXPECTED [WHAT]
equal() { [ "$1" = "$2" ] || { echo "${3:-got}: '$1', expected '$2'"; return 1; }; }
# at_most LIMIT NUMBER [WHAT], more_than LIMIT NUMBER [WHAT]
at_most() { [ "$2" -le "$1" ] || { echo "${3:-value}: $2, expected at most $1"; return 1; }; }
more_than() { [ "$2" -gt "$1" ] || { echo "${3:-value}: $2, expected more than $1"; return 1; }; }
