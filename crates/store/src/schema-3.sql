-- Version 3: many clients, emulated networks, the systems' counters beside the operations.

ALTER TABLE services ADD COLUMN jitter_ns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE services ADD COLUMN bandwidth INTEGER;
ALTER TABLE services ADD COLUMN loss REAL NOT NULL DEFAULT 0;
ALTER TABLE services ADD COLUMN base_rtt_ns INTEGER;

CREATE TABLE network_achieved (
    run_id INTEGER PRIMARY KEY REFERENCES services,
    packets INTEGER,
    lost INTEGER,
    overflowed INTEGER,
    lateness_p99_ns INTEGER,
    lateness_max_ns INTEGER
) STRICT;

CREATE TABLE baselines (
    baseline_id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions,
    time TEXT NOT NULL,
    client TEXT NOT NULL,
    target TEXT NOT NULL,
    network TEXT NOT NULL,
    delay_ns INTEGER NOT NULL,
    jitter_ns INTEGER NOT NULL,
    bandwidth INTEGER,
    loss REAL NOT NULL,
    base_rtt_ns INTEGER,
    network_note TEXT NOT NULL,
    rtt_count INTEGER,
    rtt_min_ns INTEGER,
    rtt_median_ns INTEGER,
    rtt_p99_ns INTEGER,
    result TEXT NOT NULL
) STRICT;

CREATE TABLE baseline_flows (
    baseline_id INTEGER NOT NULL REFERENCES baselines,
    ordinal INTEGER NOT NULL,
    flows INTEGER NOT NULL,
    direction TEXT NOT NULL,
    count INTEGER NOT NULL,
    throughput REAL NOT NULL,
    half_width REAL,
    fairness REAL,
    retransmissions INTEGER,
    PRIMARY KEY (baseline_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE hooks (
    hook_id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions,
    treatment INTEGER REFERENCES treatments,
    replicate INTEGER,
    step TEXT NOT NULL,
    agent TEXT NOT NULL,
    command TEXT NOT NULL,
    started TEXT NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    ended TEXT NOT NULL,
    succeeded INTEGER NOT NULL,
    output TEXT NOT NULL
) STRICT;

CREATE TABLE retries (
    run_id INTEGER NOT NULL REFERENCES runs,
    ordinal INTEGER NOT NULL,
    started TEXT NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    agent TEXT,
    reason TEXT NOT NULL,
    PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE agents (
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    first_client INTEGER NOT NULL,
    clients INTEGER NOT NULL,
    offset_ns INTEGER NOT NULL,
    bound_ns INTEGER NOT NULL,
    exchanges INTEGER NOT NULL,
    drift REAL,
    process_user_ns INTEGER NOT NULL,
    process_system_ns INTEGER NOT NULL,
    host_busy REAL,
    host_steal REAL,
    processors INTEGER NOT NULL,
    clock_step_ns INTEGER NOT NULL,
    clock_drift REAL,
    trace_stall_ns INTEGER NOT NULL,
    free_before_bytes INTEGER,
    free_after_bytes INTEGER,
    null_rate REAL,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE starts (
    recording_id INTEGER PRIMARY KEY REFERENCES recordings,
    spread_ns INTEGER NOT NULL,
    bound_ns INTEGER NOT NULL,
    server_spread_ns INTEGER,
    stagger_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE collected (
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    agent TEXT NOT NULL,
    command TEXT NOT NULL,
    ended TEXT NOT NULL,
    output BLOB NOT NULL,
    lost INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    PRIMARY KEY (recording_id, ordinal)
) STRICT;

CREATE TABLE samplings (
    sampling_id INTEGER PRIMARY KEY,
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    agent TEXT NOT NULL,
    ticks INTEGER NOT NULL,
    late INTEGER NOT NULL,
    cpu_ns INTEGER NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    UNIQUE (recording_id, ordinal)
) STRICT;

CREATE TABLE sampler_costs (
    sampling_id INTEGER NOT NULL REFERENCES samplings,
    sampler TEXT NOT NULL,
    cpu_ns INTEGER NOT NULL,
    reads INTEGER NOT NULL,
    PRIMARY KEY (sampling_id, sampler)
) STRICT, WITHOUT ROWID;

CREATE TABLE sampling_problems (
    sampling_id INTEGER NOT NULL REFERENCES samplings,
    ordinal INTEGER NOT NULL,
    sampler TEXT NOT NULL,
    problem TEXT NOT NULL,
    PRIMARY KEY (sampling_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE metrics (
    metric_id INTEGER PRIMARY KEY,
    sampler TEXT NOT NULL,
    metric TEXT NOT NULL,
    instance TEXT NOT NULL,
    kind TEXT NOT NULL,
    unit TEXT NOT NULL,
    UNIQUE (sampler, metric, instance, kind, unit)
) STRICT;

CREATE TABLE sample_series (
    sample_series_id INTEGER PRIMARY KEY,
    sampling_id INTEGER NOT NULL REFERENCES samplings,
    ordinal INTEGER NOT NULL,
    metric_id INTEGER NOT NULL REFERENCES metrics,
    UNIQUE (sampling_id, ordinal)
) STRICT;

-- Millions of rows: small ones, in the order of their key, without a look at the other table for each.
CREATE TABLE samples (
    sample_series_id INTEGER NOT NULL,
    time_ns INTEGER NOT NULL,
    value REAL,
    PRIMARY KEY (sample_series_id, time_ns)
) STRICT, WITHOUT ROWID;
