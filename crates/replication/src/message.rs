//! Encoding of the messages; WIRE.md documents the bytes.

use prescient_codec::{Ack, NetEntityId, Tick, numbers};
use prescient_schema::{Fingerprint, Tolerance};

use crate::settings::Settings;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// About one world. `world_generation` holds the last bits of a
    /// [`WorldGeneration`](crate::world_generation::WorldGeneration).
    World {
        world_generation: u8,
        body: WorldMessage<'a>,
    },
    /// To the server: the fingerprint of the schema that the client reads.
    Hello { fingerprint: Fingerprint },
    /// To the client: the server's schema, because the fingerprints differ.
    Schema {
        tolerance: Tolerance,
        schema: &'a [u8],
    },
    /// To the server: the client's schema, because it is incompatible with the server's.
    Unreadable { schema: &'a [u8] },
    /// To the client: its schema is accepted, and the settings with which state is coded.
    Welcome { settings: Settings },
    /// To the client: request for a state audit.
    AuditRequest,
    /// To the client: when ticks are due.
    Clock(TickClock),
}

/// When ticks are due, on the clock of the server's carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TickClock {
    /// A tick.
    pub tick: Tick,
    /// When it is due, in microseconds.
    pub due_micros: u64,
    /// Microseconds between two ticks.
    pub interval_micros: u32,
}

impl TickClock {
    /// The tick at a time of the same clock, with its fraction.
    pub fn tick_at(&self, micros: u64) -> f64 {
        let since = micros as i128 - i128::from(self.due_micros);
        self.tick.0 as f64 + since as f64 / f64::from(self.interval_micros)
    }
}

/// A message about one world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorldMessage<'a> {
    /// A packet of the codec: to a client the world's state, to the server a report of entities
    /// that the client has authority over.
    State(&'a [u8]),
    /// To the client: the same, with the last bits of the newest input tick that was consumed for
    /// it.
    StateAfter { input: u16, packet: &'a [u8] },
    /// Acknowledgement of applied packets.
    Applied(Ack),
    /// To the client: an event.
    Event {
        tick: Tick,
        about: Option<NetEntityId>,
        payload: &'a [u8],
    },
    /// To the server: an event, sent while the client showed this tick.
    ClientEvent {
        tick: Tick,
        about: Option<NetEntityId>,
        payload: &'a [u8],
    },
    /// To the client: whether it has authority over an entity.
    Authority {
        tick: Tick,
        about: NetEntityId,
        granted: bool,
    },
    /// To the client: it is in this world from now on, coded with these settings.
    Entered { settings: Settings },
    /// To the server: a part of a state audit ([`audit`](crate::audit)), and whether it is the
    /// last.
    AuditReport { last: bool, rows: &'a [u8] },
    /// An event of the program's own types, as a row that the codec coded.
    TypedEvent { kind: TypedKind, row: &'a [u8] },
}

/// What a typed event is for, and how its row is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypedKind {
    /// In the sender's stream of rows.
    Ordered,
    /// By itself; it may be late or lost.
    Alone,
    /// A question with its number, in the stream.
    Question(u32),
    /// The reply to the receiver's question of this number, in the stream.
    Reply(u32),
}

impl TypedKind {
    /// The head of a message of this kind.
    pub(crate) fn head(self, world_generation: u8) -> Vec<u8> {
        let first = |kind: u8| kind << 4 | world_generation;
        let (kind, number) = match self {
            Self::Ordered => (TYPED, None),
            Self::Alone => (TYPED_ALONE, None),
            Self::Question(number) => (QUESTION, Some(number)),
            Self::Reply(number) => (REPLY, Some(number)),
        };
        let mut head = vec![first(kind)];
        if let Some(number) = number {
            numbers::put(&mut head, number.into());
        }
        head
    }

    fn read(kind: u8, rest: &[u8]) -> Option<(Self, &[u8])> {
        match kind {
            TYPED => Some((Self::Ordered, rest)),
            TYPED_ALONE => Some((Self::Alone, rest)),
            QUESTION => take_number(rest).map(|(number, rest)| (Self::Question(number), rest)),
            REPLY => take_number(rest).map(|(number, rest)| (Self::Reply(number), rest)),
            _ => None,
        }
    }
}

impl<'a> Message<'a> {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::World {
                world_generation,
                body,
            } => body.write(world_generation, &mut bytes),
            Self::Hello { fingerprint } => {
                bytes.push(HELLO);
                bytes.extend_from_slice(&fingerprint.to_be_bytes());
            }
            Self::Schema { tolerance, schema } => {
                bytes.extend([SCHEMA, u8::from(tolerance == Tolerance::Additive)]);
                bytes.extend_from_slice(schema);
            }
            Self::Unreadable { schema } => {
                bytes.push(UNREADABLE);
                bytes.extend_from_slice(schema);
            }
            Self::Welcome { settings } => {
                bytes.push(WELCOME);
                settings.write(&mut bytes);
            }
            Self::AuditRequest => bytes.push(AUDIT_REQUEST),
            Self::Clock(clock) => {
                bytes.push(CLOCK);
                put_tick(&mut bytes, clock.tick);
                numbers::put(&mut bytes, clock.due_micros);
                numbers::put(&mut bytes, clock.interval_micros.into());
            }
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` for anything else.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (&first, rest) = bytes.split_first()?;
        match first {
            HELLO => Some(Self::Hello {
                fingerprint: Fingerprint::from_be_bytes(rest.try_into().ok()?),
            }),
            SCHEMA => {
                let (additive, schema) = take_flag(rest)?;
                let tolerance = match additive {
                    false => Tolerance::Exact,
                    true => Tolerance::Additive,
                };
                Some(Self::Schema { tolerance, schema })
            }
            UNREADABLE => Some(Self::Unreadable { schema: rest }),
            WELCOME => Some(Self::Welcome {
                settings: Settings::read(rest)?,
            }),
            AUDIT_REQUEST => rest.is_empty().then_some(Self::AuditRequest),
            CLOCK => {
                let (tick, rest) = take_tick(rest)?;
                let (due_micros, rest) = take_number(rest)?;
                let (interval_micros, rest) = take_number(rest)?;
                let is_sound = rest.is_empty() && interval_micros > 0;
                is_sound.then_some(Self::Clock(TickClock {
                    tick,
                    due_micros,
                    interval_micros,
                }))
            }
            _ => Some(Self::World {
                world_generation: first & 15,
                body: WorldMessage::read(first >> 4, rest)?,
            }),
        }
    }
}

/// Whether a message holds state, so that it is to be acknowledged.
pub fn is_state(message: &[u8]) -> bool {
    matches!(
        message.first().map(|first| first >> 4),
        Some(STATE | STATE_AFTER)
    )
}

/// Puts the head of a [`WorldMessage::State`] or, if inputs were consumed, of a
/// [`WorldMessage::StateAfter`] into the free bytes before a packet; returns how many are left. There
/// must be at least [`MAX_STATE_HEAD`].
pub(crate) fn put_state_head(
    buffer: &mut [u8],
    free: usize,
    world_generation: u8,
    input: Option<u16>,
) -> usize {
    let first = |kind: u8| kind << 4 | world_generation;
    match input {
        None => {
            buffer[free - 1] = first(STATE);
            free - 1
        }
        Some(input) => {
            buffer[free - 3] = first(STATE_AFTER);
            buffer[free - 2..free].copy_from_slice(&input.to_le_bytes());
            free - 3
        }
    }
}

impl<'a> WorldMessage<'a> {
    fn write(self, world_generation: u8, bytes: &mut Vec<u8>) {
        let first = |kind: u8| kind << 4 | world_generation;
        match self {
            Self::State(packet) => {
                bytes.reserve_exact(1 + packet.len());
                bytes.push(first(STATE));
                bytes.extend_from_slice(packet);
            }
            Self::StateAfter { input, packet } => {
                bytes.reserve_exact(3 + packet.len());
                bytes.push(first(STATE_AFTER));
                bytes.extend_from_slice(&input.to_le_bytes());
                bytes.extend_from_slice(packet);
            }
            Self::Applied(ack) => {
                bytes.push(first(APPLIED));
                bytes.extend_from_slice(&ack.to_bytes());
            }
            Self::Event {
                tick,
                about,
                payload,
            } => {
                bytes.push(first(EVENT));
                put_tick(bytes, tick);
                put_about(bytes, about);
                bytes.extend_from_slice(payload);
            }
            Self::ClientEvent {
                tick,
                about,
                payload,
            } => {
                bytes.push(first(CLIENT_EVENT));
                put_tick(bytes, tick);
                put_about(bytes, about);
                bytes.extend_from_slice(payload);
            }
            Self::Authority {
                tick,
                about,
                granted,
            } => {
                bytes.push(first(AUTHORITY));
                put_tick(bytes, tick);
                numbers::put(bytes, about.0.into());
                bytes.push(u8::from(granted));
            }
            Self::Entered { settings } => {
                bytes.push(first(ENTERED));
                settings.write(bytes);
            }
            Self::AuditReport { last, rows } => {
                bytes.extend([first(AUDIT_REPORT), u8::from(last)]);
                bytes.extend_from_slice(rows);
            }
            Self::TypedEvent { kind, row } => {
                bytes.extend(kind.head(world_generation));
                bytes.extend_from_slice(row);
            }
        }
    }

    fn read(kind: u8, rest: &'a [u8]) -> Option<Self> {
        match kind {
            STATE => Some(Self::State(rest)),
            STATE_AFTER => {
                let (input, packet) = rest.split_first_chunk()?;
                let input = u16::from_le_bytes(*input);
                Some(Self::StateAfter { input, packet })
            }
            APPLIED => Ack::from_bytes(rest).map(Self::Applied),
            EVENT => {
                let (tick, rest) = take_tick(rest)?;
                let (about, payload) = take_about(rest)?;
                Some(Self::Event {
                    tick,
                    about,
                    payload,
                })
            }
            CLIENT_EVENT => {
                let (tick, rest) = take_tick(rest)?;
                let (about, payload) = take_about(rest)?;
                Some(Self::ClientEvent {
                    tick,
                    about,
                    payload,
                })
            }
            AUTHORITY => {
                let (tick, rest) = take_tick(rest)?;
                let (about, rest) = take_number(rest)?;
                let (granted, rest) = take_flag(rest)?;
                rest.is_empty().then_some(Self::Authority {
                    tick,
                    about: NetEntityId(about),
                    granted,
                })
            }
            ENTERED => Some(Self::Entered {
                settings: Settings::read(rest)?,
            }),
            AUDIT_REPORT => {
                let (last, rows) = take_flag(rest)?;
                Some(Self::AuditReport { last, rows })
            }
            _ => {
                let (kind, row) = TypedKind::read(kind, rest)?;
                Some(Self::TypedEvent { kind, row })
            }
        }
    }
}

fn put_tick(bytes: &mut Vec<u8>, tick: Tick) {
    numbers::put(bytes, tick.0);
}

fn take_tick(bytes: &[u8]) -> Option<(Tick, &[u8])> {
    let (number, rest) = take_number(bytes)?;
    Some((Tick(number), rest))
}

/// The id plus one; 0 for none.
fn put_about(bytes: &mut Vec<u8>, about: Option<NetEntityId>) {
    let number = about.map_or(0, |id| id.0.saturating_add(1));
    numbers::put(bytes, number.into());
}

fn take_about(bytes: &[u8]) -> Option<(Option<NetEntityId>, &[u8])> {
    let (number, rest) = take_number::<u32>(bytes)?;
    Some((number.checked_sub(1).map(NetEntityId), rest))
}

fn take_flag(bytes: &[u8]) -> Option<(bool, &[u8])> {
    match bytes.split_first()? {
        (0, rest) => Some((false, rest)),
        (1, rest) => Some((true, rest)),
        _ => None,
    }
}

/// Refuses numbers that are too great for their type.
fn take_number<T: TryFrom<u64>>(mut bytes: &[u8]) -> Option<(T, &[u8])> {
    let number = numbers::take(&mut bytes)?;
    Some((T::try_from(number).ok()?, bytes))
}

/// The longest head of a message of state.
pub(crate) const MAX_STATE_HEAD: usize = 3;

/// Upper half of the first byte; the lower half is the world generation. Messages that begin with 64
/// to 127 need no head where channels carry them, so what is sent every tick does.
const EVENT: u8 = 0;
const CLIENT_EVENT: u8 = 1;
const AUTHORITY: u8 = 2;
const AUDIT_REPORT: u8 = 3;
const STATE: u8 = 4;
const STATE_AFTER: u8 = 5;
const APPLIED: u8 = 6;
const ENTERED: u8 = 8;
const TYPED: u8 = 9;
const TYPED_ALONE: u8 = 10;
const QUESTION: u8 = 11;
const REPLY: u8 = 12;
/// The whole first byte.
const HELLO: u8 = 0xf0;
const SCHEMA: u8 = 0xf1;
const UNREADABLE: u8 = 0xf2;
const WELCOME: u8 = 0xf3;
const AUDIT_REQUEST: u8 = 0xf4;
const CLOCK: u8 = 0xf5;

#[cfg(test)]
mod tests {
    use prescient_codec::{Config, Policy, Profile};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Fails if any part is written in one order and read in another.
        #[test]
        fn what_is_written_is_read(
            world_generation in 0u8..16,
            tick in any::<u64>(),
            about in prop::option::of(0u32..u32::MAX),
            granted in any::<bool>(),
            fingerprint in any::<[u8; 16]>(),
            payload in prop::collection::vec(any::<u8>(), 0..40),
            policy in prop::sample::select(vec![
                Policy::Confirmed,
                Policy::Immediate,
                Policy::Stateless,
            ]),
            profile in prop::sample::select(vec![Profile::Default, Profile::Best]),
        ) {
            let config = Config::default().with_policy(policy).with_profile(profile);
            let config = config.with_learning(granted).with_max_entities(tick as u32 as usize);
            let prior = about.map(|_| Fingerprint::from_be_bytes(fingerprint));
            let settings = Settings { config, prior };
            let clock = TickClock {
                tick: Tick(tick),
                due_micros: tick.rotate_left(20),
                interval_micros: (tick as u32).max(1),
            };
            let tick = Tick(tick);
            let of = NetEntityId(about.unwrap_or_default());
            let about = about.map(NetEntityId);
            let payload = &payload[..];
            let body = [
                WorldMessage::State(payload),
                WorldMessage::StateAfter { input: tick.0 as u16, packet: payload },
                WorldMessage::Event { tick, about, payload },
                WorldMessage::ClientEvent { tick, about, payload },
                WorldMessage::Authority { tick, about: of, granted },
                WorldMessage::AuditReport { last: granted, rows: payload },
                WorldMessage::Entered { settings },
                WorldMessage::TypedEvent { kind: TypedKind::Ordered, row: payload },
                WorldMessage::TypedEvent { kind: TypedKind::Alone, row: payload },
                WorldMessage::TypedEvent { kind: TypedKind::Question(7), row: payload },
                WorldMessage::TypedEvent { kind: TypedKind::Reply(8), row: payload },
            ];
            let here = body.map(|body| Message::World { world_generation, body });
            let tolerance = if granted { Tolerance::Additive } else { Tolerance::Exact };
            let others = [
                Message::Hello { fingerprint: Fingerprint::from_be_bytes(fingerprint) },
                Message::Schema { tolerance, schema: payload },
                Message::Unreadable { schema: payload },
                Message::Welcome { settings },
                Message::AuditRequest,
                Message::Clock(clock),
            ];
            for message in here.into_iter().chain(others) {
                let bytes = message.to_bytes();
                prop_assert_eq!(Message::read(&bytes), Some(message));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(message) = Message::read(&bytes) {
                prop_assert_eq!(message.to_bytes(), bytes);
            }
        }
    }
}
