//! What a client is to be told once, until it is sent.

use std::collections::{BTreeMap, VecDeque};

use prescient_codec::Tick;

use crate::world::Serial;

/// Messages for one client. What waits is bounded: a client that lets more wait takes nothing in.
#[derive(Debug)]
pub(crate) struct Mail {
    /// Messages that can be sent.
    ready: VecDeque<Vec<u8>>,
    /// Notices about objects that the client does not know yet, as far as we know.
    waiting: BTreeMap<Serial, Vec<(Tick, Notice)>>,
    /// Bytes of both, and how many they may be.
    bytes: usize,
    most: usize,
    overrun: bool,
}

/// What a client can be told of an object.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    Event(Vec<u8>),
    Charge(bool),
}

impl Notice {
    fn len(&self) -> usize {
        match self {
            Self::Event(payload) => payload.len(),
            Self::Charge(_) => 1,
        }
    }
}

impl Mail {
    pub fn new(most: usize) -> Self {
        Self {
            ready: VecDeque::new(),
            waiting: BTreeMap::new(),
            bytes: 0,
            most,
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
        self.bytes -= message.len() + ROOM;
        Some(message)
    }

    /// A notice for when the client knows an object.
    pub fn hold(&mut self, about: Serial, tick: Tick, notice: Notice) {
        if self.make_room(notice.len()) {
            self.waiting.entry(about).or_default().push((tick, notice));
        }
    }

    /// What is held for an object, no longer.
    pub fn take(&mut self, about: Serial) -> Vec<(Tick, Notice)> {
        let held = self.waiting.remove(&about).unwrap_or_default();
        let freed: usize = held.iter().map(|(_, notice)| notice.len() + ROOM).sum();
        self.bytes -= freed;
        held
    }

    /// The objects that something is held for.
    pub fn held(&self) -> impl Iterator<Item = Serial> {
        self.waiting.keys().copied()
    }

    /// Events that are held.
    pub fn events_held(&self) -> usize {
        let notices = self.waiting.values().flatten();
        let is_event = |(_, notice): &&(Tick, Notice)| matches!(notice, Notice::Event(_));
        notices.filter(is_event).count()
    }

    fn make_room(&mut self, bytes: usize) -> bool {
        let sum = self.bytes.saturating_add(bytes + ROOM);
        if self.overrun || sum > self.most {
            *self = Self::new(self.most);
            self.overrun = true;
            return false;
        }
        self.bytes = sum;
        true
    }
}

/// What a message takes besides its bytes, about.
const ROOM: usize = 64;
