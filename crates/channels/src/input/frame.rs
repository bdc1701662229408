//! The encoding of inputs: the first in full, each other one as its difference to the one before.
#![allow(
    unreachable_pub,
    reason = "tests and fuzzers reach it through the feature `__test_hooks`"
)]

use std::collections::VecDeque;

use super::{Entry, Input, InputTick, Keys, MAX_FIELDS, MAX_INPUTS};
use crate::bytes::{Reader, write_number};

/// Writes a frame with its type.
pub(super) fn write(entries: &VecDeque<Entry>, bytes: &mut Vec<u8>) {
    let Some(first) = entries.front() else {
        return;
    };
    bytes.push(INPUT);
    write_number(bytes, first.tick.0);
    let count = bytes.len();
    bytes.push(0);
    let mut before: Option<&Entry> = None;
    // The position of the present group's flags, and how many entries repeat its first.
    let mut group: Option<(usize, u64)> = None;
    for entry in entries {
        match (&mut group, before) {
            (Some((_, repeats)), Some(before)) if entry.repeats(before) => *repeats += 1,
            _ => {
                end_group(group, bytes);
                group = Some((bytes.len(), 0));
                bytes[count] += 1;
                write_changes(entry, before, bytes);
            }
        }
        before = Some(entry);
    }
    end_group(group, bytes);
}

/// An input and the number of its repeats, as encoded in a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    pub(super) tick: InputTick,
    pub(super) from: InputTick,
    pub(super) keys_down: Keys,
    pub(super) pressed: Keys,
    pub(super) pointer: [i32; 2],
    pub(super) fields: &'a [u8],
    pub(super) repeats: u64,
}

/// Reads what follows the type. Ticks ascend, and there are at most [`MAX_INPUTS`] including
/// repeats.
pub(crate) fn read<'a>(reader: &mut Reader<'a>) -> Option<Vec<Group<'a>>> {
    let first = InputTick(reader.number()?);
    let count = reader.u8().filter(|&count| count > 0)?;
    let mut groups: Vec<Group<'a>> = Vec::with_capacity(MAX_INPUTS.min(count.into()));
    let mut room = MAX_INPUTS as u64;
    for _ in 0..count {
        let group = read_group(reader, first, groups.last())?;
        group.tick.0.checked_add(group.repeats)?;
        room = room.checked_sub(1)?.checked_sub(group.repeats)?;
        groups.push(group);
    }
    Some(groups)
}

impl Entry {
    /// Whether the entry can be encoded as a repeat of the one before.
    fn repeats(&self, before: &Self) -> bool {
        self.tick.0 - before.tick.0 == 1
            && self.from == self.tick
            && self.input.pressed.is_empty()
            && self.input.keys_down == before.input.keys_down
            && self.input.pointer == before.input.pointer
            && self.input.fields == before.input.fields
    }
}

/// Writes the flags, and the parts that they announce in the order of their bits.
fn write_changes(entry: &Entry, before: Option<&Entry>, bytes: &mut Vec<u8>) {
    let nothing = Input::default();
    let old = before.map_or(&nothing, |before| &before.input);
    let new = &entry.input;
    let flags_at = bytes.len();
    bytes.push(0);
    let mut flags = 0;
    if let Some(before) = before
        && entry.tick.0 - before.tick.0 != 1
    {
        flags |= STEP;
        write_number(bytes, entry.tick.0 - before.tick.0);
    }
    if entry.from != entry.tick {
        flags |= JOINED;
        write_number(bytes, entry.tick.0 - entry.from.0);
    }
    if new.keys_down != old.keys_down {
        flags |= KEYS_DOWN;
        write_keys(new.keys_down.xor(old.keys_down), bytes);
    }
    let expected = expected_presses(new.keys_down, before.map(|before| before.input.keys_down));
    if new.pressed != expected {
        flags |= PRESSED;
        write_keys(new.pressed.xor(expected), bytes);
    }
    if new.pointer != old.pointer {
        flags |= POINTER;
        for (new, old) in new.pointer.iter().zip(old.pointer) {
            write_number(bytes, zigzag(new.wrapping_sub(old)).into());
        }
    }
    if new.fields != old.fields {
        flags |= FIELDS;
        bytes.push(new.fields.len() as u8);
        bytes.extend_from_slice(&new.fields);
    }
    bytes[flags_at] = flags;
}

/// Ends a group with the number of its repeats, if there are any.
fn end_group(group: Option<(usize, u64)>, bytes: &mut Vec<u8>) {
    if let Some((flags_at, repeats)) = group
        && repeats > 0
    {
        bytes[flags_at] |= REPEATED;
        write_number(bytes, repeats);
    }
}

fn read_group<'a>(
    reader: &mut Reader<'a>,
    first: InputTick,
    before: Option<&Group<'a>>,
) -> Option<Group<'a>> {
    let flags = reader.u8().filter(|&flags| flags < ALL)?;
    let has = |flag: u8| flags & flag != 0;
    // The last repeat of the group before; it cannot overflow.
    let last = before.map(|before| before.tick.0 + before.repeats);
    let tick = match (last, has(STEP)) {
        (Some(last), true) => {
            let step = reader.number().filter(|&step| step > 0)?;
            InputTick(last.checked_add(step)?)
        }
        (Some(last), false) => InputTick(last.checked_add(1)?),
        (None, false) => first,
        (None, true) => return None,
    };
    let from = match has(JOINED) {
        true => InputTick(tick.0.checked_sub(reader.number()?)?),
        false => tick,
    };
    let old = before.map_or(Keys::NONE, |before| before.keys_down);
    let mut keys_down = old;
    if has(KEYS_DOWN) {
        keys_down = keys_down.xor(read_keys(reader)?);
    }
    let mut pressed = expected_presses(keys_down, before.map(|_| old));
    if has(PRESSED) {
        pressed = pressed.xor(read_keys(reader)?);
    }
    let mut pointer = before.map_or([0; 2], |before| before.pointer);
    if has(POINTER) {
        for place in &mut pointer {
            let change = u32::try_from(reader.number()?).ok()?;
            *place = place.wrapping_add(unzigzag(change));
        }
    }
    let mut fields = before.map_or(&[][..], |before| before.fields);
    if has(FIELDS) {
        let length = usize::from(reader.u8()?);
        fields = reader.slice(length).filter(|_| length <= MAX_FIELDS)?;
    }
    let repeats = match has(REPEATED) {
        true => reader.number()?,
        false => 0,
    };
    Some(Group {
        tick,
        from,
        keys_down,
        pressed,
        pointer,
        fields,
        repeats,
    })
}

/// A key that is newly down was most likely pressed. For the first entry of a frame nothing is
/// expected, since the entry before is not known.
fn expected_presses(keys_down: Keys, before: Option<Keys>) -> Keys {
    before.map_or(Keys::NONE, |before| keys_down.without(before))
}

/// Few keys as a list, many as a bitmap.
fn write_keys(keys: Keys, bytes: &mut Vec<u8>) {
    let count = keys.len().min(AS_BITS.into());
    bytes.push(count as u8);
    if count < AS_BITS.into() {
        bytes.extend(keys.iter());
    } else {
        bytes.extend_from_slice(&keys.to_bytes());
    }
}

fn read_keys(reader: &mut Reader<'_>) -> Option<Keys> {
    match reader.u8()? {
        AS_BITS => reader.array().map(Keys::from_bytes),
        count if count < AS_BITS => {
            let keys = reader.slice(count.into())?;
            Some(keys.iter().copied().collect())
        }
        _ => None,
    }
}

/// Maps numbers of small magnitude to small numbers.
fn zigzag(value: i32) -> u32 {
    (value << 1 ^ value >> 31) as u32
}

fn unzigzag(value: u32) -> i32 {
    (value >> 1) as i32 ^ -((value & 1) as i32)
}

/// The type of the input frame.
pub const INPUT: u8 = 19;

const STEP: u8 = 1;
const JOINED: u8 = 1 << 1;
const KEYS_DOWN: u8 = 1 << 2;
const PRESSED: u8 = 1 << 3;
const POINTER: u8 = 1 << 4;
const FIELDS: u8 = 1 << 5;
const REPEATED: u8 = 1 << 6;
const ALL: u8 = 1 << 7;
/// In place of a count: a bitmap of 32 bytes follows.
const AS_BITS: u8 = 32;
const NUMBER: usize = 10;
const KEYS: usize = 1 + 32;
/// The longest frame of one input: type, tick, count, flags and all parts.
pub(super) const MAX_SINGLE: usize =
    1 + NUMBER + 1 + 1 + NUMBER + 2 * KEYS + 2 * 5 + 1 + MAX_FIELDS;
