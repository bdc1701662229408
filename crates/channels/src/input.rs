//! Player input from client to server; a lost packet loses no key press.
//!
//! A retransmission after a round trip would be too late. Every packet therefore carries all inputs
//! that are not acknowledged yet, each as its difference to the one before; ticks without changes
//! cost almost nothing. A packet can be decoded without any other.
//!
//! The queue is bounded. When it gets too long, because nothing is acknowledged, the two oldest
//! neighbours are joined: keys, pointer and fields are those of the later one, and what was pressed
//! in either is pressed in it. Neighbours with a press of the same key are joined last, since the
//! two presses become one.
#![allow(
    unreachable_pub,
    reason = "tests and fuzzers reach it through the feature `__test_hooks`"
)]

mod frame;
mod keys;

use std::collections::{BTreeMap, VecDeque};

use thiserror::Error;

#[cfg(any(feature = "__test_hooks", test))]
use crate::bytes::Reader;

pub use frame::INPUT;
pub(crate) use frame::{Group, read};
pub use keys::Keys;

/// A player's input in one tick of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The keys that are down.
    pub keys_down: Keys,
    /// The keys that were pressed since the last input; they may be up again already.
    pub pressed: Keys,
    /// The position of the pointer, in units of the game.
    pub pointer: [i32; 2],
    /// Further data, up to [`MAX_FIELDS`] bytes. It is sent again only when it changes.
    pub fields: Vec<u8>,
}

/// The client's tick of an input; must increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputTick(pub u64);

/// The longest [`fields`](Input::fields).
pub const MAX_FIELDS: usize = 32;

/// The most inputs in a packet.
pub const MAX_INPUTS: usize = 64;

/// Why an input was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InputError {
    /// There is an input for this tick or a later one already.
    #[error("ticks of inputs must increase: the last one was {}", .last.0)]
    NotLater {
        /// The last tick.
        last: InputTick,
    },
    /// The connection does not exist: it is not established yet, or it has ended.
    #[error("not connected")]
    NotConnected,
    /// [`Input::fields`] is too long.
    #[error("{0} bytes of fields are too long for an input, which has room for {MAX_FIELDS}")]
    Fields(usize),
}

crate::debug_as_display!(InputError);

/// Not an input frame. A correct client never sends such bytes.
#[cfg(any(feature = "__test_hooks", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not inputs, or more than a packet may have")]
pub struct MalformedInputs;

/// An input that is not acknowledged yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    tick: InputTick,
    /// The first tick whose presses it contains.
    from: InputTick,
    input: Input,
}

/// The client's side.
#[derive(Clone, Debug)]
pub struct InputSender {
    waiting: VecDeque<Entry>,
    last: Option<InputTick>,
    room: usize,
    frame: Vec<u8>,
}

impl InputSender {
    /// Frames take at most `room` bytes, but at least as much as the longest single input.
    pub fn new(room: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            last: None,
            room: room.max(frame::MAX_SINGLE),
            frame: Vec::new(),
        }
    }

    /// Adds the input of a tick.
    pub fn push(&mut self, tick: InputTick, input: Input) -> Result<(), InputError> {
        if let Some(last) = self.last.filter(|&last| last >= tick) {
            return Err(InputError::NotLater { last });
        }
        if input.fields.len() > MAX_FIELDS {
            return Err(InputError::Fields(input.fields.len()));
        }
        self.last = Some(tick);
        let from = tick;
        self.waiting.push_back(Entry { tick, from, input });
        self.encode();
        while self.waiting.len() > MAX_INPUTS || self.frame.len() > self.room {
            self.fold();
            self.encode();
        }
        Ok(())
    }

    /// The frame with all inputs that are not acknowledged, and its last tick. `None` if there are
    /// no inputs.
    pub fn frame(&self) -> Option<(InputTick, &[u8])> {
        let newest = self.waiting.back()?.tick;
        Some((newest, &self.frame))
    }

    /// The packet whose frame ended with this tick was acknowledged.
    pub fn on_arrived(&mut self, tick: InputTick) {
        let before = self.waiting.len();
        while self.waiting.front().is_some_and(|entry| entry.tick <= tick) {
            self.waiting.pop_front();
        }
        if self.waiting.len() < before {
            self.encode();
        }
    }

    /// The number of inputs that are not acknowledged.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn encode(&mut self) {
        self.frame.clear();
        if !self.waiting.is_empty() {
            frame::write(&self.waiting, &mut self.frame);
        }
    }

    /// Joins the oldest two neighbours that have no press in common, or else the oldest two.
    fn fold(&mut self) {
        let pressed = |place: usize| self.waiting[place].input.pressed;
        let disjoint = |&place: &usize| pressed(place).and(pressed(place + 1)).is_empty();
        let place = (0..self.waiting.len() - 1).find(disjoint).unwrap_or(0);
        if let Some(earlier) = self.waiting.remove(place)
            && let Some(later) = self.waiting.get_mut(place)
        {
            later.from = earlier.from;
            later.input.pressed = later.input.pressed.or(earlier.input.pressed);
        }
    }
}

/// The server's side.
#[derive(Clone, Debug, Default)]
pub struct InputReceiver {
    newest: Option<InputTick>,
    /// The last tick in which each key was pressed, of the inputs handed out. Parts of a joined
    /// input may have been handed out before.
    pressed: BTreeMap<u8, InputTick>,
    /// Presses of inputs that exceeded the limit, and the first tick of them. They are added to the
    /// next input that is handed out.
    excess: Option<(InputTick, Keys)>,
}

impl InputReceiver {
    /// A receiver without inputs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Handles what follows the type of a frame, for tests of this side alone. Returns the new
    /// inputs, oldest first, each once however often it arrives. Malformed bytes change nothing.
    #[cfg(any(feature = "__test_hooks", test))]
    pub fn handle(&mut self, bytes: &[u8]) -> Result<Vec<(InputTick, Input)>, MalformedInputs> {
        let mut reader = Reader::new(bytes);
        let groups = frame::read(&mut reader).ok_or(MalformedInputs)?;
        reader.end().ok_or(MalformedInputs)?;
        let mut inputs = Vec::new();
        self.take(&groups, MAX_INPUTS, |tick, input| {
            inputs.push((tick, input))
        });
        Ok(inputs)
    }

    /// Passes the new inputs of a frame to `out`, oldest first. If there are more than `limit`, the
    /// oldest are joined with the first that is passed on, now or by a later frame. Returns how
    /// many were joined.
    pub(crate) fn take(
        &mut self,
        groups: &[Group<'_>],
        limit: usize,
        mut out: impl FnMut(InputTick, Input),
    ) -> usize {
        let known = self.newest;
        let is_new = |group: &Group<'_>| Some(group.tick) > known;
        let fresh = groups.iter().flat_map(Group::each).filter(is_new);
        let joined = fresh.clone().count().saturating_sub(limit);
        for (place, group) in fresh.enumerate() {
            let (from, pressed) = self.excess.take().unwrap_or((group.from, Keys::NONE));
            let (from, pressed) = (from.min(group.from), pressed.or(group.pressed));
            if place < joined {
                self.excess = Some((from, pressed));
            } else {
                let input = Input {
                    keys_down: group.keys_down,
                    pressed: self.press(group.tick, from, pressed),
                    pointer: group.pointer,
                    fields: group.fields.to_vec(),
                };
                out(group.tick, input);
            }
            self.newest = Some(group.tick);
        }
        joined
    }

    /// The presses of an input, without those that were handed out before with an input that it was
    /// joined with.
    fn press(&mut self, tick: InputTick, from: InputTick, mut pressed: Keys) -> Keys {
        if self.newest.is_some_and(|newest| from <= newest) {
            let before = self.pressed.iter().filter(|&(_, &last)| last >= from);
            for (&key, _) in before {
                pressed.remove(key);
            }
        }
        for key in pressed.iter() {
            self.pressed.insert(key, tick);
        }
        pressed
    }
}

impl Group<'_> {
    /// The input and its repeats, in which nothing is pressed.
    fn each(&self) -> impl Iterator<Item = Self> + Clone {
        let group = *self;
        (0..=group.repeats).map(move |number| {
            let tick = InputTick(group.tick.0 + number);
            match number {
                0 => group,
                _ => Self {
                    tick,
                    from: tick,
                    pressed: Keys::NONE,
                    ..group
                },
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entries(receiver: &mut InputReceiver, sender: &InputSender) -> Vec<(InputTick, Input)> {
        let (_, frame) = sender.frame().expect("something waits");
        assert_eq!(frame[0], INPUT);
        receiver.handle(&frame[1..]).expect("honest")
    }

    fn press(key: u8) -> Input {
        Input {
            keys_down: [key].into_iter().collect(),
            pressed: [key].into_iter().collect(),
            ..Input::default()
        }
    }

    /// Fails if repeats are not counted (`entry.repeats(before)` never true).
    #[test]
    fn ticks_in_which_nothing_changes_are_next_to_free() {
        let mut sender = InputSender::new(128);
        let mut receiver = InputReceiver::new();
        let mut input = press(7);
        input.fields = vec![1, 2, 3];
        for tick in 100..164 {
            sender
                .push(InputTick(tick), input.clone())
                .expect("in order");
            input.pressed = Keys::NONE;
        }
        let (newest, frame) = sender.frame().expect("something waits");
        assert_eq!((newest, frame.len()), (InputTick(163), 13));
        let arrived = entries(&mut receiver, &sender);
        assert_eq!(arrived.len(), 64);
        assert_eq!(
            arrived
                .iter()
                .filter(|(_, input)| input.pressed.contains(7))
                .count(),
            1
        );
        assert!(arrived.iter().all(|(_, input)| input.keys_down.contains(7)));
        assert!(entries(&mut receiver, &sender).is_empty(), "each once");
        sender.on_arrived(newest);
        assert_eq!(sender.frame(), None);
    }

    /// Fails if any check of `push` is left out.
    #[test]
    fn nonsense_is_refused() {
        let mut sender = InputSender::new(0);
        sender
            .push(InputTick(5), Input::default())
            .expect("the first");
        let last = InputTick(5);
        for tick in [0, 4, 5] {
            let refused = sender.push(InputTick(tick), Input::default());
            assert_eq!(refused, Err(InputError::NotLater { last }));
        }
        let long = Input {
            fields: vec![0; MAX_FIELDS + 1],
            ..Input::default()
        };
        let refused = sender.push(InputTick(6), long);
        assert_eq!(refused, Err(InputError::Fields(MAX_FIELDS + 1)));
        sender.on_arrived(InputTick(u64::MAX));
        sender
            .push(InputTick(u64::MAX), press(255))
            .expect("the last tick");
        let arrived = entries(&mut InputReceiver::new(), &sender);
        assert_eq!(arrived, [(InputTick(u64::MAX), press(255))]);
    }

    /// Presses that arrived by themselves are not repeated by a joined input, and others are not
    /// lost. Fails if `take` does not remove known presses.
    #[test]
    fn of_a_joined_input_only_what_is_new_is_pressed() {
        let mut sender = InputSender::new(0);
        let mut receiver = InputReceiver::new();
        let mut pressed = [0; 256];
        for tick in 0..200u64 {
            sender
                .push(InputTick(tick), press(tick as u8))
                .expect("in order");
            // Two of the first packets arrive, then none for a long time; no acknowledgement ever
            // arrives.
            if [3, 9, 199].contains(&tick) {
                for (_, input) in entries(&mut receiver, &sender) {
                    input
                        .pressed
                        .iter()
                        .for_each(|key| pressed[usize::from(key)] += 1);
                }
            }
        }
        assert_eq!(pressed[..200], [1; 200]);
        assert_eq!(pressed[200..], [0; 56]);
    }

    /// Fails if `frame::read` does not check counts (`more <= room`).
    #[test]
    fn a_frame_has_no_more_inputs_than_it_may() {
        let count = |bytes: &[u8]| {
            let inputs = InputReceiver::new().handle(bytes);
            inputs.map(|inputs| inputs.len())
        };
        assert_eq!(count(&[5, 1, 64, 63]), Ok(64));
        assert_eq!(count(&[5, 1, 64, 64]), Err(MalformedInputs));
        assert_eq!(count(&[5, 2, 64, 61, 64, 1]), Ok(64));
        assert_eq!(count(&[5, 2, 64, 61, 64, 2]), Err(MalformedInputs));
        assert_eq!(count(&[[5, 64].as_slice(), &[0; 64]].concat()), Ok(64));
        assert_eq!(
            count(&[[5, 65].as_slice(), &[0; 65]].concat()),
            Err(MalformedInputs)
        );
    }

    fn any_input() -> impl Strategy<Value = Input> {
        let keys = || {
            prop_oneof![
                4 => Just(Vec::new()),
                4 => prop::collection::vec(0u8..8, 0..3),
                1 => prop::collection::vec(any::<u8>(), 0..256),
            ]
        };
        let pointer = prop_oneof![[-9i32..9, -9i32..9], [any::<i32>(), any::<i32>()]];
        let fields = prop_oneof![
            Just(Vec::new()),
            prop::collection::vec(any::<u8>(), 0..=MAX_FIELDS)
        ];
        let parts = (keys(), keys(), pointer, fields);
        parts.prop_map(|(keys_down, pressed, pointer, fields)| Input {
            keys_down: keys_down.into_iter().collect(),
            pressed: pressed.into_iter().collect(),
            pointer,
            fields,
        })
    }

    proptest! {
        /// Fails if any part of an input is written and not read, or if a frame exceeds its room
        /// (`self.frame.len() > self.room` left out of `push`).
        #[test]
        fn anything_arrives_and_nothing_takes_more_than_its_room(
            inputs in prop::collection::vec((any_input(), 1u64..4, any::<bool>()), 1..100),
            room in 0usize..400,
        ) {
            let mut sender = InputSender::new(room);
            let mut receiver = InputReceiver::new();
            let (mut tick, mut last) = (0, None);
            let (mut sent, mut arrived) = (Keys::NONE, Keys::NONE);
            for (input, step, delivered) in inputs {
                tick += step;
                sent = sent.or(input.pressed);
                sender.push(InputTick(tick), input.clone()).expect("in order");
                let (newest, frame) = sender.frame().expect("something waits");
                prop_assert_eq!(newest, InputTick(tick));
                prop_assert!(frame.len() <= room.max(frame::MAX_SINGLE));
                prop_assert!(sender.waiting() <= MAX_INPUTS);
                if !delivered {
                    continue;
                }
                let inputs = entries(&mut receiver, &sender);
                for (tick, input) in &inputs {
                    prop_assert!(Some(*tick) > last, "in order");
                    last = Some(*tick);
                    arrived = arrived.or(input.pressed);
                }
                let (_, newest) = inputs.last().expect("the newest is new");
                prop_assert_eq!(
                    (newest.keys_down, newest.pointer, &newest.fields),
                    (input.keys_down, input.pointer, &input.fields)
                );
                prop_assert_eq!(arrived, sent, "every key that was pressed");
            }
        }

        /// Fails if `frame::read` panics on any bytes, such as ticks beyond the last (`last.tick.0
        /// + 1` for the `checked_add` of repeats).
        #[test]
        fn any_bytes_are_inputs_or_refused(
            high in any::<bool>(),
            rest in prop::collection::vec(prop_oneof![0u8..128, any::<u8>()], 0..200),
        ) {
            let mut bytes = Vec::new();
            if high {
                bytes.extend([0xff; 9]);
                bytes.push(1);
            }
            bytes.extend(rest);
            let mut receiver = InputReceiver::new();
            let before = receiver.newest;
            match receiver.handle(&bytes) {
                Ok(inputs) => prop_assert!(inputs.len() <= MAX_INPUTS),
                Err(MalformedInputs) => prop_assert_eq!(receiver.newest, before),
            }
        }
    }
}
