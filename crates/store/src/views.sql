-- Made anew with every migration. `run_responses` is made by the program, with one column per factor. Only what other
-- engines that read SQLite files understand too: no min() or max() of two values.

CREATE VIEW treatment_settings AS
SELECT t.treatment, t.label, f.name AS factor, l.name AS level, s.parameter, s.value
FROM treatments t
JOIN treatment_levels tl USING (treatment)
JOIN factors f USING (factor)
JOIN levels l USING (factor, level)
LEFT JOIN settings s USING (factor, level);

CREATE VIEW run_checks AS
SELECT r.run_id, r.treatment, t.label, r.replicate, r.position, c.name, c.severity, c.workload, c.message
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
