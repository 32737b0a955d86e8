//! What was counted between two readings.

use super::{NfsMount, Numbers, Operation, Transport};

/// What a mount's counters grew by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Operations, those not used too.
    pub operations: Vec<Operation>,
    pub events: Numbers,
    pub bytes: Numbers,
    /// Connections. Ports, the number of slots and times since something happened are those of the later reading; a
    /// connection that is new, or in the place of one of another kind, counts from zero.
    pub transports: Vec<Transport>,
}

/// Why two readings cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// They are of different mounts.
    #[error("{earlier} and {later} are different mounts")]
    Different {
        /// The first reading's.
        earlier: String,
        /// The second's.
        later: String,
    },
    /// A counter is lower than before: it was mounted again, or its statistics were reset, meanwhile.
    #[error(
        "{mount}: {counter} went back from {from} to {to}: it was mounted again, or its counters were reset"
    )]
    Backwards {
        mount: String,
        counter: String,
        /// Its value in the first reading.
        from: i128,
        /// Its value in the second.
        to: i128,
    },
}

impl NfsMount {
    /// What was counted since `earlier`, a reading of the same mount.
    ///
    /// # Errors
    /// See [`ChangeError`].
    pub fn since(&self, earlier: &Self) -> Result<Change, ChangeError> {
        let same = (&self.device, &self.mount_point, &self.file_system)
            == (&earlier.device, &earlier.mount_point, &earlier.file_system);
        if !same {
            return Err(ChangeError::Different { earlier: earlier.to_string(), later: self.to_string() });
        }
        let backwards = |(counter, from, to): (String, i128, i128)| ChangeError::Backwards {
            mount: self.to_string(),
            counter,
            from,
            to,
        };
        if self.age < earlier.age {
            return Err(backwards(("its age".into(), earlier.age.into(), self.age.into())));
        }
        let operation = |operation: &Operation| {
            let unused = Operation::default();
            operation.since(earlier.operation(&operation.name).unwrap_or(&unused))
        };
        let transport = |(at, transport): (usize, &Transport)| {
            let before = earlier.transports.get(at).filter(|before| before.kind == transport.kind);
            let numbers = match before {
                Some(before) => transport.numbers.since(&before.numbers, &transport.kind)?,
                None => transport.numbers.clone(),
            };
            Ok(Transport { kind: transport.kind.clone(), numbers })
        };
        Ok(Change {
            operations: self.operations.iter().map(operation).collect::<Result<_, _>>().map_err(backwards)?,
            events: self.events.since(&earlier.events, "events").map_err(backwards)?,
            bytes: self.bytes.since(&earlier.bytes, "bytes").map_err(backwards)?,
            transports: self
                .transports
                .iter()
                .enumerate()
                .map(transport)
                .collect::<Result<_, _>>()
                .map_err(backwards)?,
        })
    }
}

/// A counter that went back, and from where to where.
type Backwards = (String, i128, i128);

impl Operation {
    fn since(&self, earlier: &Self) -> Result<Self, Backwards> {
        let difference = |counter: &str, to: u64, from: u64| {
            to.checked_sub(from).ok_or_else(|| (format!("{} {counter}", self.name), from.into(), to.into()))
        };
        Ok(Self {
            name: self.name.clone(),
            ops: difference("ops", self.ops, earlier.ops)?,
            transmissions: difference("transmissions", self.transmissions, earlier.transmissions)?,
            timeouts: difference("timeouts", self.timeouts, earlier.timeouts)?,
            bytes_sent: difference("bytes sent", self.bytes_sent, earlier.bytes_sent)?,
            bytes_received: difference("bytes received", self.bytes_received, earlier.bytes_received)?,
            queue_ms: difference("queue time", self.queue_ms, earlier.queue_ms)?,
            rtt_ms: difference("round trip time", self.rtt_ms, earlier.rtt_ms)?,
            execute_ms: difference("execute time", self.execute_ms, earlier.execute_ms)?,
            errors: match self.errors {
                Some(errors) => Some(difference("errors", errors, earlier.errors.unwrap_or(0))?),
                None => None,
            },
            further: self
                .further
                .iter()
                .enumerate()
                .map(|(at, to)| difference("counter", *to, earlier.further.get(at).copied().unwrap_or(0)))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl Numbers {
    fn since(&self, earlier: &Self, what: &str) -> Result<Self, Backwards> {
        let mut difference = self.clone();
        for (at, value) in difference.values.iter_mut().enumerate().filter(|(at, _)| !self.is_state(*at)) {
            let from = earlier.values.get(at).copied().unwrap_or(0);
            if *value < from {
                let name = self.named().nth(at).map_or("a number without name", |(name, _)| name);
                return Err((format!("{what} {name}"), from, *value));
            }
            *value = value.saturating_sub(from);
        }
        Ok(difference)
    }
}
