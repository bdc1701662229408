//! Reliable messages that wait to be sent to a client.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::Tick;

use crate::transmit::{Delivery, Transmit};
use crate::world::Serial;

/// Messages for one client. The waiting bytes are bounded: a client that exceeds the bound receives
/// nothing.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Messages that can be sent.
    ready: VecDeque<(Delivery, Vec<u8>)>,
    /// How many of them precede and include the one after which the client can decode state.
    settings: Option<usize>,
    /// Notices about entities that the client is not known to know yet.
    waiting: BTreeMap<Serial, Vec<(Tick, Notice)>>,
    /// Bytes of both, and their maximum.
    bytes: usize,
    max_bytes: usize,
    overrun: bool,
}

/// A notice about an entity.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    Event(Vec<u8>),
    Authority(bool),
}

impl Notice {
    fn len(&self) -> usize {
        match self {
            Self::Event(payload) => payload.len(),
            Self::Authority(_) => 1,
        }
    }
}

impl Outbox {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            ready: VecDeque::new(),
            settings: None,
            waiting: BTreeMap::new(),
            bytes: 0,
            max_bytes,
            overrun: false,
        }
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the bound was exceeded. Waiting messages were discarded, and no more are accepted.
    pub(crate) fn is_overrun(&self) -> bool {
        self.overrun
    }

    /// Queues a message for sending in order; returns whether there was room.
    pub(crate) fn push(&mut self, message: Vec<u8>) -> bool {
        self.push_as(Delivery::Reliable, message)
    }

    /// Queues a message for sending; returns whether there was room.
    pub(crate) fn push_as(&mut self, delivery: Delivery, message: Vec<u8>) -> bool {
        let has_room = self.make_room(message.len());
        if has_room {
            self.ready.push_back((delivery, message));
        }
        has_room
    }

    /// Counts bytes that wait elsewhere; returns whether there was room.
    pub(crate) fn reserve(&mut self, bytes: usize) -> bool {
        self.make_room(bytes)
    }

    /// Ends what [`reserve`](Self::reserve) began.
    pub(crate) fn release(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes + MESSAGE_OVERHEAD);
    }

    /// Queues the message after which the client can decode state; it replaces an earlier one in
    /// that role.
    pub(crate) fn push_settings(&mut self, message: Vec<u8>) {
        if self.push(message) {
            self.settings = Some(self.ready.len());
        }
    }

    /// The next message, and whether the client can decode state after it.
    pub(crate) fn pop(&mut self) -> Option<(Transmit, bool)> {
        let (delivery, message) = self.ready.pop_front()?;
        self.bytes -= message.len() + MESSAGE_OVERHEAD;
        self.settings = self.settings.map(|left| left - 1);
        let is_settings = self.settings.take_if(|left| *left == 0).is_some();
        Some((Transmit::new(delivery, message), is_settings))
    }

    /// Keeps a notice until the client knows the entity.
    pub(crate) fn defer(&mut self, about: Serial, tick: Tick, notice: Notice) {
        if self.make_room(notice.len()) {
            self.waiting.entry(about).or_default().push((tick, notice));
        }
    }

    /// Removes the notices deferred for an entity.
    pub(crate) fn take(&mut self, about: Serial) -> Vec<(Tick, Notice)> {
        let deferred = self.waiting.remove(&about).unwrap_or_default();
        let freed: usize = deferred
            .iter()
            .map(|(_, notice)| notice.len() + MESSAGE_OVERHEAD)
            .sum();
        self.bytes -= freed;
        deferred
    }

    /// The entities that have deferred notices.
    pub(crate) fn deferred(&self) -> impl Iterator<Item = Serial> {
        self.waiting.keys().copied()
    }

    /// Number of deferred events.
    pub(crate) fn deferred_events(&self) -> usize {
        let notices = self.waiting.values().flatten();
        let is_event = |(_, notice): &&(Tick, Notice)| matches!(notice, Notice::Event(_));
        notices.filter(is_event).count()
    }

    fn make_room(&mut self, bytes: usize) -> bool {
        let sum = self.bytes.saturating_add(bytes + MESSAGE_OVERHEAD);
        if self.overrun || sum > self.max_bytes {
            *self = Self::new(self.max_bytes);
            self.overrun = true;
            return false;
        }
        self.bytes = sum;
        true
    }
}

/// Approximate memory of a message besides its bytes.
const MESSAGE_OVERHEAD: usize = 64;
