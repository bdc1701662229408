//! Bounded queues of what waits to be polled: datagrams and events.

use std::collections::VecDeque;
use std::net::SocketAddr;

use prescient_channels::{PacketBuffer, Received};

use crate::config::LinkConfig;
use crate::connection::Transmit;

/// Datagrams that wait to be polled, up to a limit.
pub(crate) struct Outbox {
    waiting: VecDeque<Transmit>,
    limit: usize,
}

impl Outbox {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            limit,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit
    }

    /// Queues a datagram, or drops it if the queue is full.
    pub(crate) fn offer(&mut self, to: SocketAddr, bytes: impl Into<PacketBuffer>) {
        if !self.is_full() {
            let bytes = bytes.into();
            self.waiting.push_back(Transmit {
                to,
                bytes,
                is_ecn_capable: false,
            });
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Transmit> {
        self.waiting.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}

/// Events that wait to be polled. An event is never rejected; instead, the owner drops incoming
/// datagrams while the queue is full.
pub(crate) struct Inbox<T> {
    waiting: VecDeque<(usize, T)>,
    bytes: usize,
    limit: usize,
    limit_bytes: usize,
}

impl<T> Inbox<T> {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Self {
            waiting: VecDeque::new(),
            bytes: 0,
            limit: config.inbox,
            limit_bytes: config.inbox_bytes,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.waiting.len() >= self.limit || self.bytes >= self.limit_bytes
    }

    pub(crate) fn push(&mut self, event: T) {
        self.waiting.push_back((0, event));
    }

    /// Adds what a connection received.
    pub(crate) fn push_received(&mut self, received: Received, event: impl FnOnce(Received) -> T) {
        let cost = received.cost();
        self.bytes += cost;
        self.waiting.push_back((cost, event(received)));
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let (cost, event) = self.waiting.pop_front()?;
        self.bytes -= cost;
        Some(event)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }
}
