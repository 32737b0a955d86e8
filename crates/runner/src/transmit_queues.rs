//! Samples of the emulated network: transmit queues of its hosts, and which flow went where.

use benchmaster_netem::interface::{Host, InterfaceReport};
use benchmaster_netem::wire::Interfaces;
use benchmaster_telemetry::sampling::{MetricInfo, Reading, SampleError, Sampler, Sink};

/// Reads the transmit queues of the emulated network like a part of the system.
#[derive(Debug)]
pub(super) struct TransmitQueues(pub(super) Interfaces);

const METRICS: [MetricInfo; 9] = [
    MetricInfo::gauge("bytes", "B", QUEUE, "bytes that wait, as they are on the wire"),
    MetricInfo::gauge("packets", "1", QUEUE, "packets that wait"),
    MetricInfo::counter("sent_bytes", "B", QUEUE, "bytes that left"),
    MetricInfo::counter("sent_packets", "1", QUEUE, "packets that left"),
    MetricInfo::counter("drops", "1", QUEUE, "frames for which there was no room"),
    MetricInfo::gauge("flow_queue", "1", FLOW, "number of the queue that it is hashed to"),
    MetricInfo::counter("flow_sent_bytes", "B", FLOW, "bytes of it that left"),
    MetricInfo::gauge("flow_held_bytes", "B", FLOW, "bytes of it that `flow_limit` keeps at the sender"),
    MetricInfo::counter("flow_drops", "1", FLOW, "frames of it for which there was no room"),
];
const QUEUE: &str = "host and queue";
const FLOW: &str = "host, client and flow";

impl Sampler for TransmitQueues {
    fn name(&self) -> &'static str {
        "transmit_queues"
    }

    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        let (of_queue, of_flow) = METRICS.split_at(5);
        let mut put = |metrics: &[MetricInfo], instance: &str, values: &[u64]| {
            for (metric, value) in metrics.iter().zip(values) {
                out.put(metric.metric(), instance, *value as f64);
            }
        };
        for InterfaceReport { host, queues, flows } in self.0.read() {
            for (number, queue) in queues.iter().enumerate() {
                let values = [queue.bytes, queue.packets, queue.sent_bytes, queue.sent_packets, queue.drops];
                put(of_queue, &format!("{host} tx{number}"), &values);
            }
            let host = match host {
                Host::Server => "server",
                Host::Client(_) => "client",
            };
            for flow in &flows {
                let values = [u64::from(flow.queue), flow.sent_bytes, flow.held_bytes, flow.drops];
                put(of_flow, &format!("{host} {} {}", flow.client + 1, flow.name), &values);
            }
        }
        Ok(())
    }
}
