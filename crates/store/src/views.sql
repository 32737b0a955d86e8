-- `run_responses` is created by the program, with one column per factor. Only SQL that other engines reading SQLite files
-- understand too: no min() or max() of two values.

CREATE VIEW treatment_settings AS
SELECT t.treatment, t.label, f.name AS factor, l.name AS level, s.parameter, s.value
FROM treatments t
JOIN treatment_levels tl USING (treatment)
JOIN factors f USING (factor)
JOIN levels l USING (factor, level)
LEFT JOIN settings s USING (factor, level);

CREATE VIEW run_checks AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.kind, c.severity, c.workload, c.message
FROM checks c
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

CREATE VIEW run_operations AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, o.series_id, o.worker_group,
    o.label AS series, o.operation, o.count, o.bytes, o.errors, c.length_ns / 1e9 AS seconds,
    o.count * 1e9 / c.length_ns AS operations_per_second, o.bytes * 1e9 / c.length_ns AS bytes_per_second,
    o.min_ns, o.mean_ns, o.p50_ns, o.p99_ns, o.p999_ns, o.max_ns
FROM operations o
JOIN recordings c USING (recording_id)
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

-- The last interval ends with the recording, so its rates are over its real length.
CREATE VIEW run_intervals AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, o.series_id, o.worker_group,
    o.label AS series, o.operation, i.interval, i.interval * c.interval_ns / 1e9 AS start_s,
    i.interval * c.interval_ns >= c.cut_ns AS counted, i.count, i.bytes, i.errors,
    i.count * 1e9 / CASE WHEN (i.interval + 1) * c.interval_ns <= c.length_ns THEN c.interval_ns
        ELSE nullif(c.length_ns - i.interval * c.interval_ns, 0) END AS operations_per_second,
    i.bytes * 1e9 / CASE WHEN (i.interval + 1) * c.interval_ns <= c.length_ns THEN c.interval_ns
        ELSE nullif(c.length_ns - i.interval * c.interval_ns, 0) END AS bytes_per_second,
    i.min_ns, i.mean_ns, i.p50_ns, i.p99_ns, i.p999_ns, i.max_ns
FROM intervals i
JOIN operations o USING (series_id)
JOIN recordings c USING (recording_id)
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

CREATE VIEW run_workers AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, w.client, w.worker_group, w.worker,
    o.label AS series, o.operation, w.start_ns, w.end_ns, w.stop, p.count, p.bytes, p.errors,
    p.sum_ns * 1.0 / nullif(p.count, 0) AS mean_ns, p.first_latency_ns, p.first_start_ns, p.last_end_ns
FROM worker_operations p
JOIN workers w USING (worker_id)
JOIN operations o USING (series_id)
JOIN recordings c ON c.recording_id = w.recording_id
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

-- One row per kind of call and phase; means per call.
CREATE VIEW run_rpcs AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, n.version, n.clients, h.phase, p.program,
    p.operation, p.ops, p.transmissions, p.timeouts, p.bytes_sent, p.bytes_received, p.errors,
    p.queue_ns * 1.0 / nullif(p.ops, 0) AS mean_queue_ns, p.rtt_ns * 1.0 / nullif(p.ops, 0) AS mean_rtt_ns,
    p.execute_ns * 1.0 / nullif(p.ops, 0) AS mean_execute_ns
FROM rpcs p
JOIN rpc_phases h ON h.recording_id = p.recording_id AND h.ordinal = p.phase_ordinal
JOIN rpc_clients n ON n.recording_id = p.recording_id
JOIN recordings c ON c.recording_id = p.recording_id
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

CREATE VIEW run_server_operations AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, u.workload, o.protocol, o.operation, o.ops, o.errors,
    o.bytes_received, o.bytes_sent, o.service_ns * 1.0 / nullif(o.ops, 0) AS mean_service_ns
FROM server_operations o
JOIN server_use u ON u.run_id = o.run_id AND u.ordinal = o.use_ordinal
JOIN runs r ON r.run_id = o.run_id
JOIN treatments t USING (treatment);

CREATE VIEW run_agents AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, a.name AS agent, a.host, a.first_client,
    a.clients, a.offset_ns, a.bound_ns, a.exchanges, a.drift, a.process_user_ns, a.process_system_ns, a.host_busy,
    a.host_steal
FROM agents a
JOIN recordings c USING (recording_id)
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

CREATE VIEW run_clients AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, w.client, a.name AS agent, a.host,
    min(p.first_start_ns) AS first_start_ns, max(p.last_end_ns) AS last_end_ns, sum(p.count) AS count,
    sum(p.bytes) AS bytes, sum(p.errors) AS errors
FROM worker_operations p
JOIN workers w USING (worker_id)
JOIN recordings c ON c.recording_id = w.recording_id
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment)
LEFT JOIN agents a ON a.recording_id = w.recording_id AND w.client >= a.first_client
    AND w.client < a.first_client + a.clients
GROUP BY r.run_id, r.treatment, t.label, r.replicate, r.position, c.ordinal, c.workload, w.client, a.name, a.host;

CREATE VIEW run_starts AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, s.spread_ns, s.bound_ns, s.server_spread_ns,
    s.stagger_ns
FROM starts s
JOIN recordings c USING (recording_id)
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

CREATE VIEW run_samples AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, g.agent, m.sampler, m.metric, m.instance,
    m.kind, m.unit, s.time_ns / 1e9 AS time_s, s.value
FROM samples s
JOIN sample_series q USING (sample_series_id)
JOIN metrics m USING (metric_id)
JOIN samplings g USING (sampling_id)
JOIN recordings c USING (recording_id)
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);

-- Of counters: how fast they grew from the point before. One that was set back has no rate there.
CREATE VIEW run_sample_rates AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, g.agent, m.sampler, m.metric, m.instance,
    m.unit, b.time_ns / 1e9 AS start_s, s.time_ns / 1e9 AS end_s,
    CASE WHEN s.value >= b.value THEN (s.value - b.value) * 1e9 / (s.time_ns - b.time_ns) END AS per_second
FROM samples s
JOIN samples b ON b.sample_series_id = s.sample_series_id
JOIN sample_series q ON q.sample_series_id = s.sample_series_id
JOIN metrics m USING (metric_id)
JOIN samplings g USING (sampling_id)
JOIN recordings c USING (recording_id)
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment)
WHERE m.kind = 'counter' AND b.time_ns = (SELECT max(p.time_ns) FROM samples p
    WHERE p.sample_series_id = s.sample_series_id AND p.time_ns < s.time_ns);

CREATE VIEW run_collected AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.workload, o.name, o.agent, o.command, o.ended,
    o.start_ns / 1e9 AS start_s, o.end_ns / 1e9 AS end_s, o.output, o.lost
FROM collected o
JOIN recordings c USING (recording_id)
JOIN runs r USING (run_id)
JOIN treatments t USING (treatment);
