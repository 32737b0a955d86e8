# Everything before a commit: format, lints, tests, licences of the dependencies.
check: format lint test licences

format:
    cargo fmt --all --check

lint:
    cargo clippy --workspace --all-targets -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

test:
    cargo test --workspace

# Needs cargo-deny (`cargo install cargo-deny --locked`).
licences:
    cargo deny check licenses bans sources

# Write docs/study-schema.json anew from the types of the study file.
schema:
    UPDATE_SCHEMA=1 cargo test -p benchmaster-study schema

# A million random mutations of recorded traffic through every decoder and the NFS server.
mutate:
    cargo run --release --manifest-path fuzz/Cargo.toml -- 1000000

# The NFS server against real clients: the Linux kernel's in user-mode Linux, and libnfs. Installs Debian's packages as root.
real:
    cargo build --release
    tests/real/libnfs.sh
    tests/real/run

# The figures of docs/performance.md.
bench:
    cargo bench -p benchmaster-workload --bench executor
    cargo bench -p benchmaster --bench against_fio
    cargo bench -p benchmaster-nfs-server --bench against_ganesha
    cargo bench -p benchmaster-nfs-server --bench scaling
