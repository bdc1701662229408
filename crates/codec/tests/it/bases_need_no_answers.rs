//! A base takes the place of an acknowledgement: whoever has it decodes what depends on it, whatever
//! else arrived.
//!
//! Mutations tried: `Encoder::make_base` keeps the logs of the packets before it (fails: receivers
//! that applied them fold them), or does nothing (fails: nothing is smaller).

use std::sync::Arc;

use crate::pair::int;
use prescient_codec::{Config, Decoder, Encoder, HISTORY, Layout, Policy, Tick, history::Archive};
use prescient_schema::{Class, Schema};

#[test]
fn any_delta_between_bases_may_be_lost() {
    let schema = Arc::new(Schema {
        classes: vec![Class::new("thing", vec![int("x", 24), int("y", 24)])],
    });
    let config = Config::default().with_policy(Policy::Stateless);
    let layout = Arc::new(Layout::new(schema.clone()));
    let mut archive = Archive::new(schema, HISTORY);
    let mut encoder = Encoder::with_layout(layout.clone(), config);
    // Receiver `k` loses every packet whose number has bit `k`, unless it is a base; the last one
    // loses one base, too.
    let mut decoders: Vec<Decoder> = (0..4)
        .map(|_| Decoder::with_layout(layout.clone(), config))
        .collect();
    let mut slots = Vec::new();
    let (mut whole, mut deltas) = (0, 0);
    for tick in 0..200u32 {
        let mut capture = archive.begin(Tick(tick.into())).unwrap();
        // They start anywhere and move steadily.
        let row = |number: u32| {
            let start = number.wrapping_mul(0x9E37_79B1) >> 10;
            [i64::from(start + tick * (number + 1)), 7]
        };
        if tick == 0 {
            slots.extend((0..30).map(|number| capture.spawn(0, &row(number)).unwrap()));
        }
        for (number, &slot) in (0..).zip(&slots) {
            capture.write(slot, &row(number)).unwrap();
        }
        capture.finish();
        for &slot in &slots {
            encoder.show(slot, &archive);
        }
        let (is_whole, is_base) = (tick % 50 == 0, tick % 10 == 0);
        if is_whole {
            encoder.resync();
        }
        let packet = encoder.encode(&archive, None).unwrap();
        assert!(packet.full);
        if is_base {
            encoder.make_base(&archive);
        }
        match is_whole {
            true => whole += packet.bytes.len(),
            false => deltas += packet.bytes.len(),
        }
        for (number, decoder) in decoders.iter_mut().enumerate() {
            let is_lost = number == 3 && tick == 110 || !is_base && tick >> number & 1 == 1;
            if is_lost {
                continue;
            }
            let decoded = decoder.decode(&packet.bytes);
            if number == 3 && (111..150).contains(&tick) {
                assert!(decoded.is_err(), "it lacks the base");
                continue;
            }
            assert_eq!(decoded.map(|applied| applied.tick), Ok(Tick(tick.into())));
            for (id, &slot) in (0..).zip(&slots) {
                let shown = decoder.row(prescient_codec::NetEntityId(id));
                assert_eq!(shown, archive.latest(slot));
            }
        }
    }
    let (whole, deltas) = (whole / 4, deltas / 196);
    assert!(
        4 * deltas < whole,
        "{deltas} bytes of a delta, {whole} whole"
    );
}
