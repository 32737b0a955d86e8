-- Schema version 1. Times ending in _ns are nanoseconds; `started`, `ended` and `time` are RFC 3339 in UTC.

CREATE TABLE studies (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT,
    text TEXT NOT NULL,
    seed TEXT NOT NULL,
    generator TEXT NOT NULL,
    design TEXT NOT NULL,
    run_order TEXT NOT NULL,
    replicates_min INTEGER NOT NULL,
    replicates_max INTEGER NOT NULL,
    relative_half_width REAL,
    confidence REAL NOT NULL,
    primary_response TEXT NOT NULL,
    version TEXT NOT NULL,
    design_details TEXT NOT NULL
) STRICT;

CREATE TABLE factors (
    factor INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE levels (
    factor INTEGER NOT NULL REFERENCES factors,
    level INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL,
    PRIMARY KEY (factor, level)
) STRICT, WITHOUT ROWID;

CREATE TABLE settings (
    factor INTEGER NOT NULL,
    level INTEGER NOT NULL,
    parameter TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (factor, level, parameter),
    FOREIGN KEY (factor, level) REFERENCES levels
) STRICT, WITHOUT ROWID;

CREATE TABLE treatments (
    treatment INTEGER PRIMARY KEY,
    label TEXT NOT NULL,
    stage INTEGER NOT NULL,
    block INTEGER,
    whole_plot INTEGER,
    centre INTEGER NOT NULL
) STRICT;

CREATE TABLE treatment_levels (
    treatment INTEGER NOT NULL REFERENCES treatments,
    factor INTEGER NOT NULL,
    level INTEGER NOT NULL,
    PRIMARY KEY (treatment, factor),
    FOREIGN KEY (factor, level) REFERENCES levels
) STRICT, WITHOUT ROWID;

CREATE TABLE workloads (
    ordinal INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    use_name TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
    session INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    ended TEXT,
    outcome TEXT,
    lost_treatment INTEGER REFERENCES treatments,
    lost_replicate INTEGER,
    command TEXT NOT NULL
) STRICT;

CREATE TABLE environments (
    session INTEGER NOT NULL REFERENCES sessions,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    benchmaster TEXT NOT NULL,
    kernel TEXT NOT NULL,
    distribution TEXT,
    cpu_model TEXT,
    processors INTEGER NOT NULL,
    processors_allowed INTEGER NOT NULL,
    memory_total INTEGER,
    memory_available INTEGER,
    clock_source TEXT,
    virtualization TEXT,
    governor TEXT,
    target_path TEXT,
    target_mount_point TEXT,
    target_source TEXT,
    target_file_system TEXT,
    target_options TEXT,
    target_mount_line TEXT,
    target_total_bytes INTEGER,
    target_free_bytes INTEGER,
    target_free_files INTEGER,
    target_read_ahead_kib INTEGER,
    PRIMARY KEY (session, name)
) STRICT;

CREATE TABLE sysctls (
    session INTEGER NOT NULL,
    environment TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (session, environment, name),
    FOREIGN KEY (session, environment) REFERENCES environments ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- At most one row: the run being done now, or lost when its session was killed.
CREATE TABLE in_flight (
    slot INTEGER PRIMARY KEY CHECK (slot = 0),
    session INTEGER NOT NULL REFERENCES sessions,
    treatment INTEGER NOT NULL REFERENCES treatments,
    replicate INTEGER NOT NULL,
    position INTEGER NOT NULL
) STRICT;

CREATE TABLE runs (
    run_id INTEGER PRIMARY KEY,
    treatment INTEGER NOT NULL REFERENCES treatments,
    replicate INTEGER NOT NULL,
    position INTEGER NOT NULL UNIQUE,
    session INTEGER NOT NULL REFERENCES sessions,
    started TEXT NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    failure TEXT,
    stage INTEGER NOT NULL,
    block INTEGER,
    whole_plot INTEGER,
    parameters TEXT NOT NULL,
    UNIQUE (treatment, replicate)
) STRICT;

CREATE TABLE recordings (
    recording_id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES runs,
    ordinal INTEGER NOT NULL,
    workload TEXT NOT NULL,
    timed INTEGER NOT NULL,
    started_unix_ns INTEGER NOT NULL,
    length_ns INTEGER NOT NULL,
    interval_ns INTEGER NOT NULL,
    cut_ns INTEGER NOT NULL,
    cut_reason TEXT NOT NULL,
    cache_requested TEXT NOT NULL,
    cache_done TEXT NOT NULL,
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
    read_ahead_kib INTEGER,
    written_back_bytes INTEGER,
    null_rate REAL,
    verified_bytes INTEGER,
    corruption TEXT,
    operations_hash TEXT,
    UNIQUE (run_id, ordinal),
    UNIQUE (run_id, workload)
) STRICT;

-- Of workloads with a durability witness. `details` is JSON: how the server was cut, and the first that were broken.
CREATE TABLE witnesses (
    recording_id INTEGER PRIMARY KEY REFERENCES recordings,
    durability TEXT NOT NULL,
    blocks INTEGER NOT NULL,
    names INTEGER NOT NULL,
    lost INTEGER NOT NULL,
    old INTEGER NOT NULL,
    torn INTEGER NOT NULL,
    newer INTEGER NOT NULL,
    details TEXT NOT NULL
) STRICT;

CREATE TABLE phases (
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    phase TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    operations INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE filesets (
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    files INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    reused INTEGER NOT NULL,
    cached_bytes INTEGER,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE error_details (
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE operations (
    series_id INTEGER PRIMARY KEY,
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    worker_group TEXT NOT NULL,
    label TEXT NOT NULL,
    operation TEXT NOT NULL,
    count INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    sum_ns INTEGER NOT NULL,
    min_ns INTEGER,
    mean_ns REAL,
    p50_ns INTEGER,
    p99_ns INTEGER,
    p999_ns INTEGER,
    max_ns INTEGER,
    histogram BLOB NOT NULL,
    service_histogram BLOB,
    first_start_ns INTEGER,
    last_end_ns INTEGER,
    UNIQUE (recording_id, ordinal)
) STRICT;

CREATE TABLE operation_errors (
    series_id INTEGER NOT NULL REFERENCES operations,
    error TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (series_id, error)
) STRICT, WITHOUT ROWID;

CREATE TABLE intervals (
    series_id INTEGER NOT NULL REFERENCES operations,
    interval INTEGER NOT NULL,
    count INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    sum_ns INTEGER NOT NULL,
    min_ns INTEGER,
    mean_ns REAL,
    p50_ns INTEGER,
    p99_ns INTEGER,
    p999_ns INTEGER,
    max_ns INTEGER,
    histogram BLOB NOT NULL,
    PRIMARY KEY (series_id, interval)
) STRICT;

CREATE TABLE workers (
    worker_id INTEGER PRIMARY KEY,
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    client INTEGER NOT NULL,
    worker_group TEXT NOT NULL,
    worker INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    cpu_user_ns INTEGER,
    cpu_system_ns INTEGER,
    stop TEXT NOT NULL,
    stream_operations INTEGER NOT NULL,
    stream_hash TEXT NOT NULL,
    operations_hash TEXT NOT NULL,
    UNIQUE (recording_id, ordinal)
) STRICT;

CREATE TABLE worker_operations (
    worker_id INTEGER NOT NULL REFERENCES workers,
    ordinal INTEGER NOT NULL,
    series_id INTEGER NOT NULL REFERENCES operations,
    count INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    sum_ns INTEGER NOT NULL,
    first_latency_ns INTEGER,
    first_start_ns INTEGER,
    last_end_ns INTEGER,
    PRIMARY KEY (worker_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE parts (
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    part TEXT NOT NULL,
    label TEXT NOT NULL,
    key INTEGER NOT NULL,
    count INTEGER NOT NULL,
    sum_ns INTEGER NOT NULL,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE slow_operations (
    recording_id INTEGER NOT NULL REFERENCES recordings,
    ordinal INTEGER NOT NULL,
    series INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    start_ns INTEGER NOT NULL,
    latency_ns INTEGER NOT NULL,
    since INTEGER,
    since_own INTEGER,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE responses (
    run_id INTEGER NOT NULL REFERENCES runs,
    ordinal INTEGER NOT NULL,
    response TEXT NOT NULL,
    value REAL NOT NULL,
    unit TEXT NOT NULL,
    PRIMARY KEY (run_id, ordinal),
    UNIQUE (run_id, response)
) STRICT, WITHOUT ROWID;

CREATE TABLE checks (
    run_id INTEGER NOT NULL REFERENCES runs,
    ordinal INTEGER NOT NULL,
    kind TEXT NOT NULL,
    severity TEXT NOT NULL,
    workload TEXT,
    message TEXT NOT NULL,
    PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE check_evidence (
    run_id INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    position INTEGER NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    unit TEXT NOT NULL,
    PRIMARY KEY (run_id, ordinal, position),
    FOREIGN KEY (run_id, ordinal) REFERENCES checks
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    run_id INTEGER NOT NULL REFERENCES runs,
    ordinal INTEGER NOT NULL,
    time TEXT NOT NULL,
    kind TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE traces (
    run_id INTEGER NOT NULL REFERENCES runs,
    workload TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (run_id, workload)
) STRICT, WITHOUT ROWID;

CREATE TABLE services (
    run_id INTEGER PRIMARY KEY REFERENCES runs,
    url TEXT NOT NULL,
    server TEXT NOT NULL,
    network TEXT NOT NULL,
    delay_ns INTEGER NOT NULL,
    network_note TEXT NOT NULL,
    jitter_ns INTEGER NOT NULL,
    bandwidth INTEGER,
    loss REAL NOT NULL,
    base_rtt_ns INTEGER
) STRICT;

CREATE TABLE server_use (
    run_id INTEGER NOT NULL REFERENCES runs,
    ordinal INTEGER NOT NULL,
    workload TEXT NOT NULL,
    calls INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    replayed INTEGER NOT NULL,
    cpu_ns INTEGER,
    held_ns INTEGER,
    PRIMARY KEY (run_id, ordinal),
    UNIQUE (run_id, workload)
) STRICT, WITHOUT ROWID;

CREATE TABLE server_operations (
    run_id INTEGER NOT NULL,
    use_ordinal INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    protocol TEXT NOT NULL,
    operation TEXT NOT NULL,
    ops INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    bytes_sent INTEGER NOT NULL,
    service_ns INTEGER NOT NULL,
    PRIMARY KEY (run_id, use_ordinal, ordinal),
    FOREIGN KEY (run_id, use_ordinal) REFERENCES server_use (run_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE rpc_clients (
    recording_id INTEGER PRIMARY KEY REFERENCES recordings,
    source TEXT NOT NULL,
    server TEXT NOT NULL,
    version TEXT,
    rsize INTEGER NOT NULL,
    wsize INTEGER NOT NULL,
    nconnect INTEGER NOT NULL,
    slots INTEGER,
    clients INTEGER NOT NULL,
    threads INTEGER,
    tls TEXT,
    cpu_user_ns INTEGER NOT NULL,
    cpu_system_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE rpc_phases (
    recording_id INTEGER NOT NULL REFERENCES rpc_clients,
    ordinal INTEGER NOT NULL,
    phase TEXT NOT NULL,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE rpcs (
    recording_id INTEGER NOT NULL,
    phase_ordinal INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    program TEXT NOT NULL,
    operation TEXT NOT NULL,
    ops INTEGER NOT NULL,
    transmissions INTEGER NOT NULL,
    timeouts INTEGER NOT NULL,
    bytes_sent INTEGER NOT NULL,
    bytes_received INTEGER NOT NULL,
    queue_ns INTEGER NOT NULL,
    rtt_ns INTEGER NOT NULL,
    execute_ns INTEGER NOT NULL,
    errors INTEGER NOT NULL,
    PRIMARY KEY (recording_id, phase_ordinal, ordinal),
    FOREIGN KEY (recording_id, phase_ordinal) REFERENCES rpc_phases (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE rpc_events (
    recording_id INTEGER NOT NULL,
    phase_ordinal INTEGER NOT NULL,
    event TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (recording_id, phase_ordinal, event),
    FOREIGN KEY (recording_id, phase_ordinal) REFERENCES rpc_phases (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE rpc_problems (
    recording_id INTEGER NOT NULL REFERENCES rpc_clients,
    ordinal INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (recording_id, ordinal)
) STRICT, WITHOUT ROWID;

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
    read_ahead_kib INTEGER,
    written_back_bytes INTEGER,
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

CREATE TABLE stages (
    stage INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    replicates_min INTEGER NOT NULL,
    replicates_max INTEGER NOT NULL,
    relative_half_width REAL,
    made TEXT NOT NULL
) STRICT;

CREATE TABLE stage_treatments (
    stage INTEGER NOT NULL REFERENCES stages,
    treatment INTEGER NOT NULL REFERENCES treatments,
    PRIMARY KEY (stage, treatment)
) STRICT, WITHOUT ROWID;

CREATE TABLE labs (
    run_id INTEGER PRIMARY KEY REFERENCES runs,
    back_end TEXT NOT NULL,
    time TEXT NOT NULL,
    server TEXT NOT NULL,
    emulated INTEGER NOT NULL,
    image TEXT NOT NULL,
    wake_ups REAL NOT NULL
) STRICT;

CREATE TABLE lab_machines (
    run_id INTEGER NOT NULL REFERENCES labs,
    ordinal INTEGER NOT NULL,
    name TEXT NOT NULL,
    kernel TEXT NOT NULL,
    kernel_hash TEXT NOT NULL,
    kernel_origin TEXT NOT NULL,
    memory INTEGER NOT NULL,
    boot_ns INTEGER NOT NULL,
    console TEXT,
    PRIMARY KEY (run_id, ordinal)
) STRICT, WITHOUT ROWID;
