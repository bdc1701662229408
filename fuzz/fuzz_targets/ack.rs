//! Any acknowledgements, honest or not: the sender never panics and continues to encode, and a new
//! epoch after them is decodable.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use prescient_codec::{Ack, AppliedSet, Decoder, Encoder, Sequence};
use prescient_fuzz::{World, config, holds_contents, schema, told};

#[derive(Arbitrary, Debug)]
struct Claim {
    whim: u8,
    budget: Option<u8>,
    epoch: u8,
    behind: i8,
    applied: u64,
    resync: bool,
    bytes: Option<Vec<u8>>,
}

fuzz_target!(|claims: Vec<Claim>| {
    let schema = schema();
    let mut world = World::new(schema.clone());
    let mut encoder = Encoder::new(schema.clone(), config(false));
    let mut newest = 0u32;
    for claim in claims.into_iter().take(200) {
        world.step(claim.whim);
        world.show(&mut encoder);
        let budget = claim.budget.map(usize::from);
        let packet = encoder.encode(&world.archive, budget);
        newest = packet.expect("a new tick").sequence.0;
        let mut applied = AppliedSet::ALL;
        for back in (1..64).filter(|back| claim.applied >> back & 1 == 0) {
            applied.remove(back * (1 + claim.applied as u32 % 4));
        }
        let mut ack = Ack {
            epoch: claim.epoch & 1,
            newest: Sequence(newest.wrapping_sub(claim.behind as u32)),
            applied,
            resync: claim.resync,
        };
        assert_eq!(Ack::from_bytes(&ack.to_bytes()), Some(ack));
        if let Some(bytes) = claim.bytes {
            match Ack::from_bytes(&bytes) {
                Some(read) => ack = read,
                None => continue,
            }
        }
        let _ = encoder.acknowledge(&ack, &world.archive);
    }
    encoder.resync();
    world.step(0);
    world.show(&mut encoder);
    let packet = encoder.encode(&world.archive, None).expect("a new tick");
    let mut decoder = Decoder::new(schema, config(false));
    let done = decoder
        .decode(&packet.bytes)
        .expect("a new epoch needs no earlier packet");
    assert!(done.full && done.sequence.0 > newest);
    assert_eq!(decoder.digest(), encoder.digest());
    for slot in world.archive.living_slots() {
        let id = encoder.net_entity_id(slot).expect("shown");
        let row = told(&world.archive, &encoder, slot);
        assert_eq!(decoder.row(id), row.as_deref());
        assert!(holds_contents(&decoder, id));
    }
});
