//! The RPCs of many processes as one table.

use benchmaster_record::recording::{ConnectionFacts, Recording, RpcPhase, RpcRecording, RpcRow};

/// All RPCs together; `None` when no process called any.
pub(super) fn merge(parts: &[&Recording]) -> Option<RpcRecording> {
    let mut merged: Option<RpcRecording> = None;
    for rpc in parts.iter().filter_map(|part| part.rpc.as_ref()) {
        let merged = merged.get_or_insert_with(|| RpcRecording {
            phases: Vec::new(),
            client_cpu_ns: (0, 0),
            problems: Vec::new(),
            connection: ConnectionFacts {
                clients: 0,
                threads: rpc.connection.threads.map(|_| 0),
                ..rpc.connection.clone()
            },
            ..rpc.clone()
        });
        rpc.phases.iter().for_each(|phase| add(&mut merged.phases, phase));
        merged.client_cpu_ns.0 += rpc.client_cpu_ns.0;
        merged.client_cpu_ns.1 += rpc.client_cpu_ns.1;
        let (all, own) = (&mut merged.connection, &rpc.connection);
        all.clients += own.clients;
        all.threads = all.threads.zip(own.threads).map(|(a, b)| a + b);
        all.slots = [all.slots, own.slots].into_iter().flatten().min();
        // Of all, or of none.
        all.tls = all.tls.take().filter(|_| own.tls.is_some());
        all.rsize = all.rsize.min(own.rsize);
        all.wsize = all.wsize.min(own.wsize);
        merged.problems.extend(rpc.problems.iter().cloned());
    }
    merged
}

fn add(phases: &mut Vec<RpcPhase>, phase: &RpcPhase) {
    let Some(known) = phases.iter_mut().find(|known| known.phase == phase.phase) else {
        phases.push(phase.clone());
        return;
    };
    for row in &phase.rows {
        let same = |known: &&mut RpcRow| (&known.program, &known.operation) == (&row.program, &row.operation);
        match known.rows.iter_mut().find(same) {
            Some(known) => known.add(row.counters),
            None => known.rows.push(row.clone()),
        }
    }
    for (event, count) in &phase.events {
        *known.events.entry(event.clone()).or_default() += count;
    }
}
