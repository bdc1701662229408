//! What a client is to be told once, until it is sent.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::Tick;

use crate::world::Serial;

/// Messages for one client. What waits is bounded: a client that lets more wait takes nothing in.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Messages that can be sent.
    ready: VecDeque<Vec<u8>>,
    /// Notices about entities that the client does not know yet, as far as we know.
    waiting: BTreeMap<Serial, Vec<(Tick, Notice)>>,
    /// Bytes of both, and how many they may be.
    bytes: usize,
    max_bytes: usize,
    overrun: bool,
}

/// What a client can be told of an entity.
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
    pub fn new(max_bytes: usize) -> Self {
        Self {
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            bytes: 0,
            max_bytes,
            overrun: false,
        }
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether more waited than may, and was thrown away. Nothing is taken any more.
    pub fn is_overrun(&self) -> bool {
        self.overrun
    }

    /// A message that can be sent; whether there is room for it.
    pub fn push(&mut self, message: Vec<u8>) -> bool {
        let has_room = self.make_room(message.len());
        if has_room {
            self.ready.push_back(message);
        }
        has_room
    }

    pub fn pop(&mut self) -> Option<Vec<u8>> {
        let message = self.ready.pop_front()?;
        self.bytes -= message.len() + MESSAGE_OVERHEAD;
        Some(message)
    }

    /// A notice for when the client knows an entity.
    pub fn defer(&mut self, about: Serial, tick: Tick, notice: Notice) {
        if self.make_room(notice.len()) {
            self.waiting.entry(about).or_default().push((tick, notice));
        }
    }

    /// What is held for an entity, no longer.
    pub fn take(&mut self, about: Serial) -> Vec<(Tick, Notice)> {
        let deferred = self.waiting.remove(&about).unwrap_or_default();
        let freed: usize = deferred
            .iter()
            .map(|(_, notice)| notice.len() + MESSAGE_OVERHEAD)
            .sum();
        self.bytes -= freed;
        deferred
    }

    /// The entities that something is held for.
    pub fn deferred(&self) -> impl Iterator<Item = Serial> {
        self.waiting.keys().copied()
    }

    /// Events that are held.
    pub fn deferred_events(&self) -> usize {
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

/// What a message takes besides its bytes, about.
const MESSAGE_OVERHEAD: usize = 64;
