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

# The figures of docs/performance.md.
bench:
    cargo bench -p benchmaster-workload --bench executor
    cargo bench -p benchmaster --bench against_fio
