//! What a player does, from the client to the server, so that a lost packet loses no key press.
//!
//! Input is old when it is repeated after a round trip, so nobody waits for that: every packet
//! carries all inputs that are not known to have arrived, each as its difference to the one before.
//! Ticks in which nothing changes are next to free. A packet is understood by itself.
//!
//! What waits is bounded. When it gets too long, because nothing arrives, the oldest two neighbours
//! become one: its keys, pointer and fields are those of the later, and what was pressed in either
//! is pressed in it. Neighbours in which the same key was pressed are the last to be joined, since
//! it would be pressed once then.

mod frame;
mod keys;

use std::collections::{BTreeMap, VecDeque};

use thiserror::Error;

#[cfg(any(feature = "__test_hooks", test))]
use crate::bytes::Reader;

pub use frame::INPUT;
pub(crate) use frame::{Group, read};
pub use keys::Keys;

/// What a player does in one tick of the client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The keys that are down.
    pub keys_down: Keys,
    /// The keys that went down since the last input; they may be up again already.
    pub pressed: Keys,
    /// Where the pointer is, in whatever units both ends agree on.
    pub pointer: [i32; 2],
    /// Anything else, up to [`MAX_FIELDS`] bytes. Sent again only when it changes.
    pub fields: Vec<u8>,
}

/// The number of an input: the client's tick, which only ever grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct InputTick(pub u64);

/// The longest [`fields`](Input::fields).
pub const MAX_FIELDS: usize = 32;

/// The most inputs in a packet.
pub const MAX_INPUTS: usize = 64;

/// Why an input was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InputError {
    /// There was an input of this tick or a later one.
    #[error("inputs are numbered by ticks that grow: the last one was {}", .last.0)]
    NotLater {
        /// The last one.
        last: InputTick,
    },
    /// There is no connection, or no more.
    #[error("not connected")]
    NotConnected,
    /// The fields are too long.
    #[error("{0} bytes of fields are too long for an input, which has room for {MAX_FIELDS}")]
    Fields(usize),
}

/// These bytes are no inputs. An honest client does not send such.
#[cfg(any(feature = "__test_hooks", test))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not inputs, or more than a packet may have")]
pub struct MalformedInputs;

/// An input that waits for its arrival to be known.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    tick: InputTick,
    /// The first tick whose presses are in it.
    from: InputTick,
    input: Input,
}

/// The client's end.
#[derive(Clone, Debug)]
pub struct InputSender {
    waiting: VecDeque<Entry>,
    last: Option<InputTick>,
    room: usize,
    frame: Vec<u8>,
}

impl InputSender {
    /// Frames take at most `room` bytes, or what the longest single input takes if that is more.
    pub fn new(room: usize) -> Self {
        Self {
            waiting: VecDeque::new(),
            last: None,
            room: room.max(frame::MAX_SINGLE),
            frame: Vec::new(),
        }
    }

    /// Adds what the player did in this tick.
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

    /// The frame with everything that is not known to have arrived, and the tick up to which its
    /// receiver has everything once the packet arrives. `None` if there is nothing to say.
    pub fn frame(&self) -> Option<(InputTick, &[u8])> {
        let newest = self.waiting.back()?.tick;
        Some((newest, &self.frame))
    }

    /// A packet arrived whose frame ended with this tick.
    pub fn on_arrived(&mut self, tick: InputTick) {
        let before = self.waiting.len();
        while self.waiting.front().is_some_and(|entry| entry.tick <= tick) {
            self.waiting.pop_front();
        }
        if self.waiting.len() < before {
            self.encode();
        }
    }

    /// How many inputs wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn encode(&mut self) {
        self.frame.clear();
        if !self.waiting.is_empty() {
            frame::write(&self.waiting, &mut self.frame);
        }
    }

    /// Joins the oldest two neighbours that have no press in common, or the oldest two.
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

/// The server's end.
#[derive(Clone, Debug, Default)]
pub struct InputReceiver {
    newest: Option<InputTick>,
    /// When each key was pressed last, as far as was handed out. Of a joined input only a part may
    /// be new.
    pressed: BTreeMap<u8, InputTick>,
    /// Presses of inputs that were more than allowed, and the first tick of them. The next input
    /// that is handed out has them.
    excess: Option<(InputTick, Keys)>,
}

impl InputReceiver {
    /// Nothing has arrived.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what follows the type of a frame, for tests of this end alone. What is new in it is
    /// returned, oldest first, each input once however often it arrives. Malformed bytes change
    /// nothing.
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

    /// Hands what is new in a frame to `out`, oldest first. Of more than `limit` inputs the oldest are
    /// joined with the first that is handed out, now or by a later frame; returns how many were.
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

    /// What is pressed in an input. Presses of a tick that was handed out by itself are not pressed
    /// again by what it was joined with.
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
    /// The input, and those that repeat it, in which nothing is pressed.
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

    /// Fails if any of the checks of `push` is left out.
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

    /// Presses that arrived by themselves are not repeated by what they were joined with, and those
    /// that did not are not lost. Fails if `take` does not remove what is known.
    #[test]
    fn of_a_joined_input_only_what_is_new_is_pressed() {
        let mut sender = InputSender::new(0);
        let mut receiver = InputReceiver::new();
        let mut pressed = [0; 256];
        for tick in 0..200u64 {
            sender
                .push(InputTick(tick), press(tick as u8))
                .expect("in order");
            // Two of the first arrive, then nothing for long, and no acknowledgement ever.
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

    /// Fails if `frame::read` takes counts for granted (`more <= room`).
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
        /// Fails if any part of an input is written and not read, or a frame takes more than its
        /// room (`self.frame.len() > self.room` left out of `push`).
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

        /// Fails if `frame::read` panics at any bytes, such as ticks beyond the last
        /// (`last.tick.0 + 1` for the `checked_add` of repeats).
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
