//! Round-trip properties of every message.
