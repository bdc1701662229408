//! The server's state machine.

use std::collections::{BTreeMap, VecDeque};

use super::frame::{FRAME_BYTES, Frame, FrameError, KeyframeKey, Range, Reassembly};
use crate::curve::{CurveConfig, Edit, EditError, Keyframe};
use crate::time::{Span, Time};
use crate::timeline::{Operation, PropertyId, Timeline, TimelineConfig};

/// A timeline, and the clients that receive its changes.
#[derive(Debug)]
pub struct Server {
    /// In milliseconds since 1970.
    base_time: i64,
    timeline: Timeline<f64>,
    streams: BTreeMap<StreamId, Stream>,
    events: VecDeque<ServerEvent>,
    next_id: u64,
    history: bool,
    max_waiting: usize,
}

/// A connection of a [`Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(u64);

/// An event of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A client requested the base time, and receives changes from now on.
    Synced(StreamId),
    /// A client sent a frame that is unknown or only for servers; it was ignored.
    Ignored {
        /// The client.
        stream: StreamId,
        /// The error; `None` for a frame that only servers send.
        error: Option<FrameError>,
    },
    /// A client does not read, and its send queue is full. Close its connection; no more frames are queued
    /// for it.
    Stalled(StreamId),
}

impl ServerEvent {
    fn stream(&self) -> StreamId {
        match *self {
            Self::Synced(stream) | Self::Stalled(stream) | Self::Ignored { stream, .. } => stream,
        }
    }
}

/// Why a server refuses a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// A number does not fit its field.
    #[error(transparent)]
    Range(#[from] Range),
    /// Before the base time, which frames cannot express.
    #[error("{time} is before the base time")]
    BeforeBaseTime {
        /// The time.
        time: Time,
    },
    /// Times must be whole milliseconds.
    #[error("{micros} µs is not a whole number of milliseconds")]
    NotMilliseconds {
        /// The time or offset.
        micros: i64,
    },
    /// The timeline refuses it.
    #[error(transparent)]
    Edit(#[from] EditError),
}

#[derive(Debug, Default)]
struct Stream {
    incoming: Reassembly,
    waiting: VecDeque<[u8; FRAME_BYTES]>,
    /// The first property whose history is still to be sent. Changes of this and later properties are not
    /// sent by themselves, since the history will contain them.
    history: Option<PropertyId>,
    synced: bool,
    stalled: bool,
}

impl Server {
    /// With a base time in milliseconds since 1970, usually the present; keyframes lie between it and
    /// 18.6 hours later.
    ///
    /// # Errors
    ///
    /// If the base time is negative or after [`Time::MAX`].
    pub fn new(base_time: i64) -> Result<Self, ServerError> {
        Ok(Self {
            base_time: checked_base_time(base_time)?,
            timeline: Timeline::new(timeline_config()),
            streams: BTreeMap::new(),
            events: VecDeque::new(),
            next_id: 0,
            history: false,
            max_waiting: 1 << 16,
        })
    }

    /// Whether a client that joins is sent all keyframes since the base time, or only later changes. Off by
    /// default, as in the protocol's own implementation, which may lose frames that follow each other
    /// closely.
    pub fn set_history(&mut self, history: bool) {
        self.history = history;
    }

    /// How many frames may wait for a client before it counts as stalled; 65,536 if not set.
    pub fn set_max_waiting(&mut self, max: usize) {
        self.max_waiting = max;
    }

    /// A client connected.
    pub fn handle_connected(&mut self) -> StreamId {
        let id = StreamId(self.next_id);
        self.next_id += 1;
        self.streams.insert(id, Stream::default());
        id
    }

    /// A connection ended. Its events that were not polled are dropped, so that connections which come and
    /// go do not fill the queue.
    pub fn handle_disconnected(&mut self, stream: StreamId) {
        self.streams.remove(&stream);
        self.events.retain(|event| event.stream() != stream);
    }

    /// Handles received bytes. Those of unknown connections are ignored.
    pub fn handle_bytes(&mut self, stream: StreamId, mut bytes: &[u8]) {
        while let Some(known) = self.streams.get_mut(&stream) {
            let Some(frame) = known.incoming.take(&mut bytes) else {
                return;
            };
            match Frame::from_bytes(&frame) {
                Ok(Frame::Sync { .. }) => self.sync(stream),
                Ok(_) => self.ignore(stream, None),
                Err(error) => self.ignore(stream, Some(error)),
            }
        }
    }

    /// The next frame for a connection, to be sent in its own write.
    pub fn poll_transmit(&mut self, stream: StreamId) -> Option<[u8; FRAME_BYTES]> {
        let stream = self.streams.get_mut(&stream)?;
        while stream.waiting.is_empty()
            && let Some(next) = stream.history
        {
            let base = Time::from_millis(self.base_time);
            let mut rest = self.timeline.curves_from(next);
            if let Some((property, curve)) = rest.next() {
                let keyframes = curve.keyframes_from(base);
                let frames = keyframes.map(|keyframe| history_frame(property, keyframe, base));
                stream.waiting.extend(frames);
            }
            stream.history = rest.next().map(|(property, _)| property);
        }
        stream.waiting.pop_front()
    }

    /// The next event, the oldest first.
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    /// Adds a keyframe, here and at all clients.
    ///
    /// # Errors
    ///
    /// If a frame cannot express it, or the timeline refuses it; then nothing is sent.
    pub fn add(&mut self, property: PropertyId, time: Time, value: u32) -> Result<(), ServerError> {
        let frame = Frame::Add(self.key(property, time)?, value);
        let keyframe = Keyframe::new(time, f64::from(value));
        self.change(property, Edit::Add(keyframe), frame)
    }

    /// Removes the keyframes at a time, here and at all clients.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and if there is none.
    pub fn remove(&mut self, property: PropertyId, time: Time) -> Result<(), ServerError> {
        let frame = Frame::Remove(self.key(property, time)?);
        self.change(property, Edit::Remove { time }, frame)
    }

    /// Moves a keyframe, here and at all clients.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and if there is none.
    pub fn move_one(
        &mut self,
        property: PropertyId,
        time: Time,
        by: Span,
    ) -> Result<(), ServerError> {
        Frame::Remove(self.key(property, time + by)?).to_bytes()?;
        let offset = whole_millis(by.as_micros())?;
        let offset = i32::try_from(offset).map_err(|_| Range::Offset)?;
        let frame = Frame::Move(self.key(property, time)?, offset);
        self.change(property, Edit::Move { time, by }, frame)
    }

    /// Moves the base time forward, for games that last longer than 18.6 hours, and sends it to all clients.
    /// Older keyframes stay and can no longer be changed. The protocol's own implementation moves its
    /// keyframes along with the base time; do not use this with it.
    ///
    /// # Errors
    ///
    /// If it is earlier than the present one, or after [`Time::MAX`].
    pub fn move_base_time(&mut self, base_time: i64) -> Result<(), ServerError> {
        if base_time < self.base_time {
            let time = Time::from_millis(base_time);
            return Err(ServerError::BeforeBaseTime { time });
        }
        self.base_time = checked_base_time(base_time)?;
        self.broadcast(encode(self.sync_frame()), None);
        Ok(())
    }

    /// The base time in milliseconds since 1970.
    pub fn base_time(&self) -> i64 {
        self.base_time
    }

    /// All keyframes.
    pub fn timeline(&self) -> &Timeline<f64> {
        &self.timeline
    }

    fn sync(&mut self, id: StreamId) {
        let answer = encode(self.sync_frame());
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        if !stream.push(answer, self.max_waiting) {
            self.events.push_back(ServerEvent::Stalled(id));
        }
        if !stream.synced {
            stream.synced = true;
            stream.history = self.history.then_some(PropertyId(0));
            self.events.push_back(ServerEvent::Synced(id));
        }
    }

    fn ignore(&mut self, stream: StreamId, error: Option<FrameError>) {
        // Limited, because clients can send any number of such frames.
        if self.events.len() < MAX_EVENTS {
            self.events
                .push_back(ServerEvent::Ignored { stream, error });
        }
    }

    fn change(
        &mut self,
        property: PropertyId,
        edit: Edit<f64>,
        frame: Frame,
    ) -> Result<(), ServerError> {
        let frame = frame.to_bytes()?;
        self.timeline.apply(&Operation { property, edit })?;
        self.broadcast(frame, Some(property));
        Ok(())
    }

    /// Sends a frame to all synced clients, except those whose history will contain the property.
    fn broadcast(&mut self, bytes: [u8; FRAME_BYTES], property: Option<PropertyId>) {
        for (&id, stream) in &mut self.streams {
            let in_history = |next| property.is_some_and(|property| property >= next);
            let receives = stream.synced && !stream.history.is_some_and(in_history);
            if receives && !stream.push(bytes, self.max_waiting) {
                self.events.push_back(ServerEvent::Stalled(id));
            }
        }
    }

    fn sync_frame(&self) -> Frame {
        Frame::Sync {
            base_time: self.base_time as u128,
        }
    }

    fn key(&self, property: PropertyId, time: Time) -> Result<KeyframeKey, ServerError> {
        let since = whole_millis(time.as_micros())? - self.base_time;
        if since < 0 {
            return Err(ServerError::BeforeBaseTime { time });
        }
        let time = u32::try_from(since).map_err(|_| Range::Time)?;
        let property = property.0;
        Ok(KeyframeKey { time, property })
    }
}

impl Stream {
    /// Queues a frame. False once, when the queue is full: then the stream is stalled.
    fn push(&mut self, frame: [u8; FRAME_BYTES], max: usize) -> bool {
        if self.stalled {
            return true;
        }
        if self.waiting.len() >= max {
            self.stalled = true;
            self.waiting = VecDeque::new();
            return false;
        }
        self.waiting.push_back(frame);
        true
    }
}

/// The protocol's own implementation keeps every keyframe that it is sent, also the same one twice; both ends
/// here do the same.
pub(super) fn timeline_config() -> TimelineConfig<f64> {
    let curve = CurveConfig::default().allow_duplicates(true);
    let curve = curve.max_at_one_time(64).expect("64 is enough");
    TimelineConfig::default().curves(curve)
}

fn history_frame(property: PropertyId, keyframe: Keyframe<f64>, base: Time) -> [u8; FRAME_BYTES] {
    let key = KeyframeKey {
        time: (keyframe.time.since(base).as_micros() / 1000) as u32,
        property: property.0,
    };
    encode(Frame::Add(key, keyframe.value as u32))
}

fn encode(frame: Frame) -> [u8; FRAME_BYTES] {
    frame
        .to_bytes()
        .expect("numbers were checked when they came in")
}

fn checked_base_time(millis: i64) -> Result<i64, ServerError> {
    let time = Time::from_millis(millis);
    if millis < 0 {
        return Err(ServerError::BeforeBaseTime { time });
    }
    if !time.is_valid() {
        return Err(EditError::TimeOutOfRange { time }.into());
    }
    Ok(millis)
}

fn whole_millis(micros: i64) -> Result<i64, ServerError> {
    if micros % 1000 != 0 {
        return Err(ServerError::NotMilliseconds { micros });
    }
    Ok(micros / 1000)
}

const MAX_EVENTS: usize = 1024;
