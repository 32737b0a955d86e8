# Before every commit: format, lints, fast tests, licences of the dependencies.
check: format lint test licences

format:
    cargo fmt --all --check
    cargo fmt --manifest-path fuzz/Cargo.toml --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings
    CARGO_TARGET_DIR=target/fuzz cargo clippy --manifest-path fuzz/Cargo.toml -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# The fast tier: pure tests and tests on the loopback interface.
test:
    cargo test --workspace --no-fail-fast

# The full tier: real kernels, nfs-ganesha, ssh, Slurm, Chromium, every study, planted conditions, simulations. Parts that
# are not installed are named and skipped; `.ci/run` installs and requires them.
full: test
    RUST_TEST_THREADS=4 cargo test --workspace --no-fail-fast -- --ignored --skip quiet::
    RUST_TEST_THREADS=1 cargo test --workspace --no-fail-fast --test cli --test full -- --ignored quiet::

# Needs cargo-deny (`cargo install cargo-deny --locked`).
licences:
    cargo deny check licenses bans sources

# What a release consists of, into target/packages: see docs/install.md.
dist:
    packaging/build

# Installs the packages in bare roots, as root, and measures with each of them.
dist-test:
    packaging/test

# Regenerate docs/study-schema.json from the types of the study file.
schema:
    UPDATE_SCHEMA=1 cargo test -p benchmaster-study schema

# Regenerate the list of metrics in docs/metrics.md from the samplers.
metrics:
    UPDATE_METRICS=1 cargo test -p benchmaster-telemetry --test it

# A million random mutations of recorded traffic through every decoder and the NFS server.
mutate:
    CARGO_TARGET_DIR=target/fuzz cargo run --release --manifest-path fuzz/Cargo.toml -- 1000000

# An hour of new seeds: client and server under faults.
explore:
    cargo run --release -- explore --seconds 1h --first "$(date +%s)000"

# Real parts: the NFS server against the Linux kernel's client in user-mode Linux and against libnfs, the NFS client against the
# Linux kernel's server. Installs Debian's packages as root.
real:
    cargo build --release
    tests/real/libnfs.sh
    tests/real/run
    SERVER_COMMAND="exec $PWD/tests/real/servers/linux" tests/real/run client

# The figures of docs/performance.md.
bench:
    cargo bench -p benchmaster-workload --bench executor
    cargo bench -p benchmaster --bench against_fio
    cargo bench -p benchmaster --bench imported_fio
    cargo bench -p benchmaster-nfs-server --bench against_ganesha
    cargo bench -p benchmaster-nfs-server --bench scaling
    cargo bench -p benchmaster-workload --bench against_nfs_clients
    cargo bench -p benchmaster-telemetry --bench sampling

# Diagnosis measured like a medical test: conditions are planted in studies that are really run. Prints the confusion matrix and
# writes the figures of docs/diagnose.md; takes half an hour, on a host with nothing else to do.
pathology *NAMES:
    BENCHMASTER_PATHOLOGY=all UPDATE_PATHOLOGY=1 cargo test --release -p benchmaster --test full -- {{NAMES}}

# Conditions that seeds draw, each really run and diagnosed: prints a line for each, and how many were named (`just random 0..40`).
# A quarter of a minute for each seed, on a host with nothing else to do.
random SEEDS:
    BENCHMASTER_RANDOM={{SEEDS}} cargo test --release -p benchmaster --test full

# The papers' studies, scaled to minutes, on a host with nothing else to do: writes the table of docs/papers.md.
papers *NAMES:
    cargo build --release
    BENCHMASTER_PROGRAM="$PWD/target/release/benchmaster" BENCHMASTER_PAPERS=all UPDATE_PAPERS=1 cargo test --workspace --test full -- {{NAMES}}
