-- Version 2: what went over the wire, who served it, and what lay between.

CREATE TABLE services (
    run_id INTEGER PRIMARY KEY REFERENCES runs,
    url TEXT NOT NULL,
    server TEXT NOT NULL,
    network TEXT NOT NULL,
    delay_ns INTEGER NOT NULL,
    network_note TEXT NOT NULL
) STRICT;

CREATE TABLE server_use (
    run_id INTEGER NOT NULL REFERENCES runs,
    ordinal INTEGER NOT NULL,
    workload TEXT NOT NULL,
    calls INTEGER NOT NULL,
    connections INTEGER NOT NULL,
    replayed INTEGER NOT NULL,
    cpu_ns INTEGER,
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
    version TEXT NOT NULL,
    rsize INTEGER NOT NULL,
    wsize INTEGER NOT NULL,
    nconnect INTEGER NOT NULL,
    slots INTEGER,
    clients INTEGER NOT NULL,
    threads INTEGER,
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
