//! Sockets: event loops that receive many records at once and answer them with one vectored send.
//!
//! Every thread has an epoll and connections of its own; the first one accepts, and hands each new connection to the
//! thread with the fewest. What has to reach a connection from another thread (callbacks, requests to close) goes
//! through its thread's mailbox.

mod connection;
mod datagram;
mod delayed;
mod listener;
mod output;
mod stream;
mod worker;

pub(crate) use datagram::Datagrams;
pub(crate) use listener::Listener;
pub(crate) use worker::Worker;
