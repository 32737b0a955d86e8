//! Checks of what was around: the emulated network, the host, the machines of a lab, the measurement itself.

use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Plot, Remedy};
use crate::results::rule::check;
use crate::results::stored::{Stored, Told, all_of_it, in_lab, nothing, sampled, warned, when, worth_it};

pub(super) static EMULATED_NETWORK: Stored = Stored {
    check: "emulated-network",
    explanation: Explanation {
        id: "emulated-network",
        group: Group::Doubt,
        title: "A relay delayed the data, and TCP did not see it",
        mechanism: "A relay ends TCP connections on both of its sides, so that acknowledgements come at once: windows, slow start and buffers limit nothing, as they would \
                    on a real network of that length. Latencies of single requests are right; throughput is higher than it would be.",
        formula: "found when data went through a relay with a delay, and rate · round trip / connections is more than TCP's initial window of 14,600 bytes",
        source: "the check `emulated-network`; RFC 6928, section 2",
    },
    confidence: Confidence::Certain,
    could: |measured| when(measured.network().is_some_and(|network| network.delay_ns > 0)),
    worth: warned,
    numbers: &[("delay_ns", "one-way delay", "ns"), ("in_flight", "bytes under way per connection", "B")],
    cost: nothing,
    remedy: |_| {
        Remedy::new("Emulate the network below TCP.")
            .by("[network] means = \"wire\"   # or \"netem\"; or a [lab], whose machines have a network of their own")
            .confirmed_by("the same study with `means = \"wire\"`")
    },
    plot: Some(Plot::Response),
};

pub(super) static LATE_NETWORK: Stored = Stored {
    check: "late-network",
    explanation: Explanation {
        id: "late-network",
        group: Group::Doubt,
        title: "The emulated network was late",
        mechanism: "Relay and wire are programs: when they do not get a processor in time, packets stay longer than they should, and round trips are longer than \
                    what was asked for.",
        formula: "found when one packet in a hundred left later than a tenth of the delay, and 0.1 ms, after its time, and that is 10 % or more of the 99th percentile of the latency, or of the mean \
                  times the share of operations that have a late packet",
        source: "the check `late-network`; docs/network.md",
    },
    confidence: Confidence::Certain,
    could: |measured| {
        let achieved = measured.run.service.as_ref().and_then(|service| service.achieved.as_ref());
        when(achieved.is_some_and(|achieved| achieved.lateness_p99_ns.is_some()))
    },
    worth: worth_it,
    numbers: &[
        ("lateness_p99_ns", "lateness that one packet in a hundred exceeded", "ns"),
        ("delay_ns", "one-way delay", "ns"),
        ("share", "that lateness, as a share of the latencies", "1"),
    ],
    cost: nothing,
    remedy: |_| {
        Remedy::new("Leave the emulation a processor of its own: fewer workers and clients on this host, or fewer threads of the embedded server.")
            .by("[server] threads = 1")
            .confirmed_by("`benchmaster wire` and `benchmaster relay` print how late they were")
    },
    plot: Some(Plot::Latency),
};

/// Share of the processors from which on server and clients are in each other's way.
const CROWDED: f64 = 0.9;

pub(super) static SHARED_HOST: Stored = Stored {
    check: "shared-host",
    explanation: Explanation {
        id: "shared-host",
        group: Group::Doubt,
        title: "Server and clients took the processors from each other",
        mechanism: "The embedded server runs on the host of the clients. That is what it is for when a client alone is to be measured; when both together use all \
                    processors, a rate is that of the host and not of one of them.",
        formula: "found when the CPU time of server and clients together is ≥ 90 % of the processors' time, and the check `cpu-limit` has not told it already",
        source: "the check `shared-host`; docs/server.md",
    },
    confidence: Confidence::Likely,
    could: |measured| when(measured.is_embedded()),
    worth: |told| {
        let used =
            told.number("server_processors").unwrap_or(0.0) + told.number("client_processors").unwrap_or(0.0);
        let processors = f64::from(told.measured.recording.host.processors.max(1));
        used >= CROWDED * processors && check(told.measured, "cpu-limit").is_none()
    },
    numbers: &[
        ("server_processors", "processors that the server used", "1"),
        ("client_processors", "processors that the clients used", "1"),
    ],
    cost: |told| {
        let (server, client) = (told.number("server_processors")?, told.number("client_processors")?);
        Some((
            server / (server + client),
            CostOf::Result,
            "the server's share of the CPU time, which clients alone would have",
        ))
    },
    remedy: |_| {
        Remedy::new("Serve from another host, or give server and clients processors of their own.")
            .by("benchmaster serve --allow-remote   # on another host; taskset -c 0 benchmaster serve … on this one")
    },
    plot: Some(Plot::Counters),
};

pub(super) static SAMPLING_COST: Stored = Stored {
    check: "sampling-cost",
    explanation: Explanation {
        id: "sampling-cost",
        group: Group::Doubt,
        title: "Reading counters took processor time",
        mechanism: "Each reading of a counter is a file that the kernel writes and this program parses; with hundreds of processors, queues or mounts that adds up.",
        formula: "found when sampling took ≥ 5 % of a processor on a host, in a lab ≥ 25 % (the check itself notes 0.5 %)",
        source: "the check `sampling-cost`; docs/performance.md, \"Sampling\"",
    },
    confidence: Confidence::Certain,
    could: sampled,
    worth: |told| {
        // A machine of a lab has one slow processor, and its host's load is in what reading takes.
        let least = if told.measured.run.lab.is_some() { 0.25 } else { 0.05 };
        told.number("share").is_some_and(|share| share >= least)
    },
    numbers: &[("share", "share of a processor that sampling took", "1")],
    cost: |told| {
        let processors = f64::from(told.measured.recording.host.processors.max(1));
        Some((
            told.number("share")? / processors,
            CostOf::Time,
            "processor time of sampling / processor time of the host",
        ))
    },
    remedy: |_| {
        Remedy::new("Read less often, or only what is looked at.")
            .by("[sampling] interval = \"5s\"   # or samplers = [\"cpu\", \"mountstats\"]")
    },
    plot: None,
};

pub(super) static LOST_WAKE_UPS: Stored = Stored {
    check: "lost-wake-ups",
    explanation: Explanation {
        id: "lost-wake-ups",
        group: Group::Doubt,
        title: "Packets waited in a machine of the lab that was not woken up",
        mechanism: "A machine in user space sleeps when it has nothing to do, and its host wakes it when a packet comes. When that is lost, the packet waits until the sender's \
                    TCP sends it again, after 200 ms or a multiple of it. It is a trap of the machines, and nothing that NFS does.",
        formula: "found when two or more operations, and half of the slow ones, took 200 ms or a multiple of it, with no packet lost on purpose, and TCP sent segments again; \
                  in doubt = 200 ms · stalls / time of all operations",
        source: "the check `lost-wake-ups`; docs/lab.md; RFC 6298, section 2 (the shortest retransmission timeout; Linux has 200 ms)",
    },
    confidence: Confidence::Likely,
    could: in_lab,
    worth: worth_it,
    numbers: &[
        ("stalls", "operations that stood still for 200 ms or a multiple of it", "1"),
        ("operations", "operations that could have", "1"),
        ("segments_sent_again", "segments that TCP sent again", "1"),
    ],
    cost: |told| {
        let waited = told.number("stalls")? * 0.2e9;
        Some((
            waited / (told.measured.operation_ns() as f64).max(waited),
            CostOf::OperationTime,
            "200 ms for each stall",
        ))
    },
    remedy: |_| {
        Remedy::new("Use another back end of the lab, or leave these latencies out of what is told of NFS.")
            .by("[lab] back_end = \"qemu-kvm\"   # or time = \"virtual\"")
            .confirmed_by("the same study with another `back_end`")
    },
    plot: Some(Plot::Latency),
};

pub(super) static NEIGHBOURS: Stored = Stored {
    check: "neighbours",
    explanation: Explanation {
        id: "neighbours",
        group: Group::Doubt,
        title: "Hardware addresses were asked for over the network that was measured",
        mechanism: "Before a packet can be sent its hardware address must be known. Who asks for it on the measured network makes some requests wait for the answer; and when two \
                    bridges answer for each other, requests go another way than the one that was to be measured.",
        formula: "found when a client's entry for the server is not permanent, or the same hardware address is behind two devices (all of the run is in doubt then)",
        source: "the check `neighbours`; RFC 826; docs/lab.md",
    },
    confidence: Confidence::Certain,
    could: in_lab,
    worth: worth_it,
    numbers: &[("clients", "clients that ask", "1")],
    cost: all_of_it,
    remedy: |_| {
        Remedy::new("Enter the server's hardware address for good on every client.")
            .by("ip neigh replace ADDRESS lladdr HARDWARE-ADDRESS nud permanent dev DEVICE")
    },
    plot: None,
};

pub(super) static KERNEL_WARNING: Stored = Stored {
    check: "kernel-warning",
    explanation: Explanation {
        id: "kernel-warning",
        group: Group::Doubt,
        title: "A kernel of the lab warned of a fault of its own",
        mechanism: "After a warning (WARN, BUG, a hung task, a processor that was not scheduled) a kernel may be slower or do something else than a sound one.",
        formula: "found when a machine's console had a warning of its kernel during the run",
        source: "the check `kernel-warning`; docs/lab.md",
    },
    confidence: Confidence::Certain,
    could: in_lab,
    // It is of the whole run, and told once.
    worth: |told| {
        let first = told.measured.run.recordings.first();
        told.check.workload.is_some()
            || first.is_none_or(|first| first.workload == told.measured.recording.workload)
    },
    numbers: &[("lines", "lines of the warning", "1")],
    cost: nothing,
    remedy: |_: Told<'_>| {
        Remedy::new("The run's events have the lines. Repeat the run; if it comes again, use another version of the kernel and tell its developers.")
            .by("benchmaster lab kernel build VERSION")
    },
    plot: None,
};
