//! Packets with a correct check that spawn an entity under one class and again under another. The
//! check is not a signature: every sender of state can compute it.

use std::sync::Arc;

use crate::common::{Random, config, state};
use crate::forger::{Forger, Which};
use prescient_codec::{Ack, Config, DecodeError, Decoder, Policy, Profile};
use prescient_schema::{Class, Field, FieldKind, Schema};
use prescient_tests::seeds::over_seeds;

/// Six packets of about 60 bytes together made a decoder index a row of one field by a class of many.
/// Fails with an accepted second packet if `Decoder::read` does not call `classes_agree`; the sixth
/// panics then, unless `Archive::record_of` compares the class.
#[test]
fn six_packets_do_not_end_a_decoder() {
    over_seeds(20, |seed| {
        let ends = Ends::new(seed);
        let mut decoder = ends.decoder();
        let packets = ends.forger().attack(&ends.changed);
        decoder
            .decode(&packets[0])
            .expect("an honest packet so far");
        let before = (state(&decoder), decoder.acknowledgement());
        for (at, packet) in packets.iter().enumerate().skip(1) {
            let refused = decoder.decode(packet).expect_err("it is forged");
            assert!(at > 1 || refused == DecodeError::Malformed, "{refused}");
            // It requests a new epoch in time; the refused packets leave nothing else.
            let after = decoder.acknowledgement().map(|ack| Ack {
                resync: false,
                ..ack
            });
            assert_eq!(before, (state(&decoder), after), "packet {at}");
        }
    });
}

/// The packets of an honest sender after a forged packet are decoded as without it. Fails if the
/// refused spawn is kept in a log or in the shown world.
#[test]
fn an_honest_sender_goes_on_after_a_forged_packet() {
    over_seeds(20, |seed| {
        let ends = Ends::new(seed);
        let (mut honest, mut liar) = (ends.forger(), ends.forger());
        let (mut decoder, mut other) = (ends.decoder(), ends.decoder());
        liar.packet(Which::First);
        for count in 1..20 {
            let packet = honest.packet(Which::First);
            decoder.decode(&packet).expect("honest");
            other.decode(&packet).expect("honest");
            if count == 1 {
                let forged = liar.packet(Which::Second);
                assert_eq!(decoder.decode(&forged), Err(DecodeError::Malformed));
            }
            assert_eq!(state(&decoder), state(&other));
            honest.acknowledge(count);
        }
    });
}

/// Two classes, and rows of the entity in both.
struct Ends {
    schema: Arc<Schema>,
    config: Config,
    classes: [u16; 2],
    rows: [Vec<i64>; 2],
    changed: Vec<i64>,
}

impl Ends {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // The classes that an id has in turn: wide and narrow, or vice versa.
        let wide = 2 + random.below(12) as usize;
        let narrow = 1 + random.below(wide as u64 - 1) as usize;
        let widths = if seed % 4 == 3 {
            [narrow, wide]
        } else {
            [wide, narrow]
        };
        let profile = [Profile::Default, Profile::Best][seed as usize % 2];
        let schema = Schema {
            classes: widths.map(|width| class(width, &mut random)).into(),
        };
        let rows = widths.map(|width| vec![0; width]);
        // All fields of the first class change.
        let changed = schema.classes[0].fields.iter().map(|_| 1).collect();
        Self {
            schema: Arc::new(schema),
            config: config(Policy::Confirmed, profile),
            classes: [0, 1],
            rows,
            changed,
        }
    }

    fn forger(&self) -> Forger {
        let [first, second] = &self.rows;
        let entities = [
            (self.classes[0], &first[..]),
            (self.classes[1], &second[..]),
        ];
        Forger::new(&self.schema, self.config, 0, entities)
    }

    fn decoder(&self) -> Decoder {
        Decoder::new(self.schema.clone(), self.config)
    }
}

fn class(width: usize, random: &mut Random) -> Class {
    let kind = |random: &mut Random| match random.below(3) {
        0 => FieldKind::Bool,
        1 => FieldKind::Enum { values: 5 },
        _ => FieldKind::Int {
            bits: 1 + random.below(64) as u8,
            signed: false,
        },
    };
    let fields = (0..width).map(|at| Field::new(format!("f{at}"), kind(random)));
    Class::new(format!("of{width}"), fields.collect())
}
