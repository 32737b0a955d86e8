//! Whether the network of a treatment can be emulated, as far as it can be told without trying.

use benchmaster_netem::interface::{LEAST_REHASH, MOST_QUEUES};
use benchmaster_netem::link::{LEAST_BANDWIDTH, LEAST_MTU, LONGEST_DELAY, MOST_MTU};
use benchmaster_netem::network::is_congestion_control;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_rpc_gss::Flavor;
use benchmaster_units::TimeSpan;

use crate::file::Reader;
use crate::settings::{Means, NetworkSettings, Settings, TargetKind};

/// Reports what cannot be.
pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    let network = &settings.network;
    let first = if network.delay > TimeSpan::default() { Some("delay") } else { network.beyond_delay() };
    if let Some(key) = first {
        let longest = [("delay", network.delay), ("jitter", network.jitter)];
        for (key, span) in longest.into_iter().filter(|(_, span)| span.0 > LONGEST_DELAY) {
            let message = format!("a {key} of {span} is longer than can be emulated");
            let help = format!("write one up to `\"{}\"`", TimeSpan(LONGEST_DELAY));
            reader.error(&format!("network.{key}"), message, help);
        }
        if network.jitter > network.delay {
            let message =
                format!("a jitter of {} is more than the delay of {}", network.jitter, network.delay);
            let help = "write a longer `delay`: packets cannot arrive before they were sent";
            reader.error("network.jitter", message, help);
        }
        for (key, bandwidth) in
            [("bandwidth", network.bandwidth), ("server_bandwidth", network.server_bandwidth)]
        {
            if let Some(bandwidth) = bandwidth.filter(|bandwidth| bandwidth.0 * 8.0 < LEAST_BANDWIDTH as f64)
            {
                let message = format!("a bandwidth of {bandwidth} is less than can be emulated");
                let help =
                    format!("write at least `\"{LEAST_BANDWIDTH}bit/s\"`, or leave it out for no limit");
                reader.error(&format!("network.{key}"), message, help);
            }
        }
        if network.queue.is_some() && network.bandwidth.is_none() {
            let message = "nothing waits in a queue where no bandwidth is limited";
            reader.error("network.queue", message, "add `bandwidth`, or remove it");
        }
        let options = settings.target.mount_options("127.0.0.1").ok().flatten();
        if options.is_some_and(|options| !options.addresses.is_empty()) {
            let message = "the emulated network leads to one address of the server";
            let help = "remove `addresses`, or emulate the network outside of the study";
            reader.error("target.addresses", message, help);
        }
        check_tcp(reader, network);
        check_queues(reader, network);
        match settings.target.kind() {
            // Between machines it is.
            TargetKind::Mount(_) | TargetKind::Embedded(_) if settings.lab.is_some() => {}
            TargetKind::Directory(_) | TargetKind::Scratch | TargetKind::Mount(_) => {
                let help = "give the target a `url`, or emulate the network outside of the study (for example with `tc netem`)";
                let message = "the network of a directory cannot be emulated";
                reader.error(&format!("network.{key}"), message, help);
            }
            TargetKind::External(_) => by_relay(reader, settings, "the server is not the embedded one"),
            TargetKind::Embedded(_) if !settings.launcher().is_here() => {
                by_relay(reader, settings, "clients are on other hosts");
            }
            TargetKind::Embedded(_) if network.means == Means::Relay => {
                by_relay(reader, settings, "`means` asks for a relay");
            }
            TargetKind::Embedded(_) if asks_a_kdc(settings) => {
                let message =
                    "clients in a network namespace do not reach the KDC, which gives them their tickets";
                reader.error("network.means", message, "write `means = \"relay\"`");
            }
            TargetKind::Embedded(_) => {}
        }
    }
    if settings.lab.is_some() {
        return;
    }
    let between_namespaces = matches!(network.means, Means::Netem | Means::Wire);
    let here = matches!(settings.target.kind(), TargetKind::Embedded(_)) && settings.launcher().is_here();
    if between_namespaces && !here && first.is_none() {
        let message = format!(
            "`{}` joins network namespaces of this host, and the embedded server or the clients are not there",
            network.means.name()
        );
        let help =
            "write `means = \"auto\"`, or use `url = \"nfs://{server}/export\"` with clients on this host";
        reader.error("network.means", message, help);
    }
    if settings.clients.namespaces && !here {
        let message = "namespaces are joined by a network to the embedded server's, which is not used with clients here";
        let help = "remove it, or use `url = \"nfs://{server}/export\"` with clients on this host";
        reader.error("clients.namespaces", message, help);
    }
    if settings.clients.namespaces && network.means == Means::Relay {
        let message = "a relay joins no namespaces";
        reader.error("network.means", message, "write `means = \"auto\"`, or remove `clients.namespaces`");
    }
    if settings.server.listen.is_some() && here && (settings.clients.namespaces || between_namespaces) {
        let message =
            "the embedded server listens in its own network namespace, not at an address of this host";
        reader.error("server.listen", message, "remove it");
    }
}

/// Reports what interfaces and TCP never have.
fn check_tcp(reader: &mut Reader<'_>, network: &NetworkSettings) {
    let sizes = u32::from(LEAST_MTU)..=u32::from(MOST_MTU);
    if let Some(mtu) = network.mtu.filter(|mtu| !sizes.contains(mtu)) {
        let message = format!("an MTU of {mtu} bytes cannot be emulated");
        let help =
            format!("write a number of bytes from {LEAST_MTU} to {MOST_MTU}: 1500, or 9000 for jumbo frames");
        reader.error("network.mtu", message, help);
    }
    if let Some(segments) = network.cwnd_clamp.filter(|segments| !(1..=65535).contains(segments)) {
        let message = format!("a congestion window cannot have {segments} segments");
        let help = "write a number of segments from 1 to 65535, such as `64`, or remove it for no limit";
        reader.error("network.cwnd_clamp", message, help);
    }
    let is_name = |name: &&String| is_congestion_control(name);
    if let Some(name) = network.congestion.as_ref().filter(|name| !is_name(name)) {
        let message = format!("`{name}` cannot be the name of a congestion control");
        let help = "write one that `cat /proc/sys/net/ipv4/tcp_available_congestion_control` shows, such as `\"cubic\"`, or remove it for the host's default";
        reader.error("network.congestion", message, help);
    }
}

/// Reports transmit queues that cannot be, or change nothing.
fn check_queues(reader: &mut Reader<'_>, network: &NetworkSettings) {
    let Some(key) = network.of_queues() else { return };
    if let Some(queues) = network.queues.filter(|queues| !(1..=MOST_QUEUES).contains(queues)) {
        let message = format!("an interface with {queues} transmit queues cannot be emulated");
        reader.error("network.queues", message, format!("write a number from 1 to {MOST_QUEUES}"));
    }
    if let Some(period) = network.rehash.filter(|period| period.0 < LEAST_REHASH) {
        let message = format!("a re-hash every {period} is more often than can be emulated");
        reader.error("network.rehash", message, format!("write at least `\"{}\"`", TimeSpan(LEAST_REHASH)));
    }
    if network.hash_key.is_some() && network.hash_seed.is_some() {
        let message = "`hash_key` is the key that `hash_seed` would give";
        reader.error("network.hash_key", message, "remove one of them");
    }
    if network.bandwidth.is_none() && network.server_bandwidth.is_none() {
        let message = "nothing waits in transmit queues where no bandwidth is limited";
        let help = "add `server_bandwidth` for those of the server, or `bandwidth` for those of the clients";
        reader.error(&format!("network.{key}"), message, help);
    }
    if network.means == Means::Netem {
        let message = "transmit queues are emulated by the wire only";
        reader.error("network.means", message, "write `means = \"auto\"`");
    }
}

/// What a relay for TCP connections cannot do, which is all that is left because of `why`.
fn by_relay(reader: &mut Reader<'_>, settings: &Settings, why: &str) {
    let network = &settings.network;
    if let Some(key) = network.beyond_delay() {
        let message =
            format!("`network.{key}` cannot be emulated: {why}, which leaves a relay, and that delays only");
        let help = "use `url = \"nfs://{server}/export\"` with clients on this host and `means = \"auto\"`, or emulate it outside \
                    of the study (`tc netem`)";
        reader.error(&format!("network.{key}"), message, help);
    }
    if matches!(network.means, Means::Netem | Means::Wire) {
        let message = format!("`{}` cannot be used: {why}", network.means.name());
        let help = "write `means = \"auto\"`, which is a relay here";
        reader.error("network.means", message, help);
    }
    let Ok(Some(options)) = settings.target.mount_options("127.0.0.1") else { return };
    if options.transport == Transport::Udp {
        let help = "use TCP, or emulate the network outside of the study";
        reader.error("network.delay", "the delay is emulated for TCP only", help);
    }
    let embedded = matches!(settings.target.kind(), TargetKind::Embedded(_));
    if !embedded && !options.version.has_state() && options.port.or(options.mount_port).is_none() {
        let help = "say where MOUNT is: add `mountport = 20048`, for example";
        let message =
            format!("the portmapper of `{}` cannot be asked through the emulated network", options.host);
        reader.error("network.delay", message, help);
    }
}

/// Whether clients get Kerberos tickets from keys.
fn asks_a_kdc(settings: &Settings) -> bool {
    let options = settings.target.mount_options("127.0.0.1").ok().flatten();
    options.is_some_and(|options| options.sec != Flavor::Sys && options.krb5_keytab.is_some())
}
