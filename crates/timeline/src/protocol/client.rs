//! The client's state machine.

use std::collections::VecDeque;

use super::frame::{FRAME_BYTES, Frame, FrameError, Reassembly};
use super::server::timeline_config;
use crate::curve::{Edit, EditError, Keyframe};
use crate::time::{Span, Time};
use crate::timeline::{Operation, PropertyId, Timeline};

/// A timeline that receives a server's changes.
#[derive(Debug)]
pub struct Client {
    timeline: Timeline<f64>,
    base_time: Option<i64>,
    incoming: Reassembly,
    request: Option<[u8; FRAME_BYTES]>,
    /// Frames that arrived before the base time.
    early: Vec<Frame>,
    events: VecDeque<ClientEvent>,
    lost_events: u64,
}

/// An event of a client.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The server sent its base time, in milliseconds since 1970, for the first time or because it moved.
    Synced {
        /// The base time.
        base_time: i64,
    },
    /// A change was applied to the timeline.
    Applied(Operation<f64>),
    /// A change could not be applied.
    Refused {
        /// The change.
        operation: Operation<f64>,
        /// The reason.
        error: EditError,
    },
    /// A frame of an unknown type or method, as later versions of the protocol may send; it was ignored.
    Ignored(FrameError),
    /// A base time that is out of range, in milliseconds; it was ignored.
    BaseTimeOutOfRange {
        /// The base time.
        base_time: u128,
    },
    /// Too many frames arrived before the base time; one was ignored.
    TooEarly,
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl Client {
    /// A client for a new connection. The first frame to send requests the base time.
    pub fn new() -> Self {
        let request = Frame::Sync { base_time: 0 };
        Self {
            timeline: Timeline::new(timeline_config()),
            base_time: None,
            incoming: Reassembly::default(),
            request: Some(request.to_bytes().expect("0 fits")),
            early: Vec::new(),
            events: VecDeque::new(),
            lost_events: 0,
        }
    }

    /// Handles received bytes.
    pub fn handle_bytes(&mut self, mut bytes: &[u8]) {
        while let Some(frame) = self.incoming.take(&mut bytes) {
            match Frame::from_bytes(&frame) {
                Ok(frame) => self.handle_frame(frame),
                Err(error) => self.note(ClientEvent::Ignored(error)),
            }
        }
    }

    /// The next frame to send, in its own write.
    pub fn poll_transmit(&mut self) -> Option<[u8; FRAME_BYTES]> {
        self.request.take()
    }

    /// The next event. If events are not polled, the oldest are dropped; changes are applied nevertheless.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// How many events were dropped because they were not polled.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// The server's base time in milliseconds since 1970, once it is known.
    pub fn base_time(&self) -> Option<i64> {
        self.base_time
    }

    /// All keyframes.
    pub fn timeline(&self) -> &Timeline<f64> {
        &self.timeline
    }

    fn handle_frame(&mut self, frame: Frame) {
        let (property, edit) = match (frame, self.base_time) {
            (Frame::Sync { base_time }, _) => return self.sync(base_time),
            (_, None) => return self.keep(frame),
            (Frame::Add(key, value), Some(base_time)) => {
                let keyframe = Keyframe::new(key.after(base_time), f64::from(value));
                (key.property, Edit::Add(keyframe))
            }
            (Frame::Remove(key), Some(base_time)) => {
                let time = key.after(base_time);
                (key.property, Edit::Remove { time })
            }
            (Frame::Move(key, offset), Some(base_time)) => {
                let time = key.after(base_time);
                let by = Span::from_millis(offset.into());
                (key.property, Edit::Move { time, by })
            }
        };
        let property = PropertyId(property);
        let operation = Operation { property, edit };
        let event = match self.timeline.apply(&operation) {
            Ok(()) => ClientEvent::Applied(operation),
            Err(error) => ClientEvent::Refused { operation, error },
        };
        self.note(event);
    }

    /// Sets the base time. Keyframes have absolute times, so they do not move with it.
    fn sync(&mut self, base_time: u128) {
        let millis = i64::try_from(base_time).ok();
        let Some(millis) = millis.filter(|&millis| Time::from_millis(millis).is_valid()) else {
            return self.note(ClientEvent::BaseTimeOutOfRange { base_time });
        };
        self.base_time = Some(millis);
        self.note(ClientEvent::Synced { base_time: millis });
        for frame in std::mem::take(&mut self.early) {
            self.handle_frame(frame);
        }
    }

    /// Stores a frame until the base time is known: the protocol's own server sends changes before the
    /// client has requested it.
    fn keep(&mut self, frame: Frame) {
        if self.early.len() < MAX_EARLY {
            self.early.push(frame);
        } else {
            self.note(ClientEvent::TooEarly);
        }
    }

    fn note(&mut self, event: ClientEvent) {
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
            self.lost_events += 1;
        }
        self.events.push_back(event);
    }
}

const MAX_EARLY: usize = 1 << 16;
const MAX_EVENTS: usize = 1 << 16;
