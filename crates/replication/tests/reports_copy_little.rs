//! Memory that a server allocates for the report of a client with authority. A single test, because
//! the allocator counts for the whole process.

mod common;

use std::alloc::System;
use std::sync::Arc;

use common::{Dice, encode, greet, poll};
use prescient_codec::{Ack, Encoder, HISTORY, Slot, history::Archive};
use prescient_replication::{
    Client, Config, Everything, MAX_REPORT_BYTES, PeerId, Room, Server, ServerConfig, Tick,
};
use prescient_schema::{Content, Field, FieldKind, SchemaBuilder, State};
use prescient_tests::seeds::over_seeds;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[derive(State, Clone, Debug, Default, PartialEq)]
#[state(rename = "porter")]
struct Porter {
    load: u8,
    #[state(max_len = 5000)]
    items: Vec<u16>,
}

/// Two hundred reported rows describe the same entity with the same long list, and each changes a
/// number. Fails with two hundred copies of the list if `AuthorityReports::take` copies every row.
#[test]
fn a_report_copies_one_list_per_entity() {
    over_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let schema = SchemaBuilder::new().state::<Porter>().build();
        let schema = schema.expect("a sound schema");
        let config = ServerConfig::default();
        let mut server = Server::new(schema.clone(), config, Everything).expect("sound");
        let mut client = Client::new(schema, Default::default()).expect("sound");
        let peer = PeerId(1);
        server.connect(peer);
        greet(&mut server, peer, &mut client);
        let mut step = server.step(Tick(1)).expect("the first");
        let porter = step.spawn(&Porter::default()).expect("sound");
        step.grant_authority(porter.entity_ref(), peer)
            .expect("there");
        step.finish();
        for (_, message) in encode(&mut server, &|_| Room::UNLIMITED) {
            client.handle(&message).expect("in order");
        }
        let entity = client.entities().next().expect("it is shown");
        let id = client.reference(entity).and_then(|to| to.index());
        let id = i64::from(id.expect("it has a number"));

        let mut reported = (**server.world().archive().schema()).clone();
        let (bits, signed) = (33, false);
        for name in ["entity", "since"] {
            let number = Field::new(name, FieldKind::Int { bits, signed });
            reported.classes[0].fields.push(number);
        }
        let reported = Arc::new(reported);
        let mut archive = Archive::new(reported.clone(), HISTORY);
        let mut encoder = Encoder::new(reported, Config::default());
        let list = [dice.below(9) as i64; 5000];
        let mut worst = 0;
        for tick in 1..10 {
            let mut capture = archive.begin(Tick(tick)).expect("in order");
            let list = Content::Cells(list.into());
            let list = capture.intern(list).expect("no other has its cell");
            for slot in (0..200).map(Slot) {
                let row = [dice.below(200) as i64, list, id, 1];
                match capture.class(slot) {
                    Some(_) => capture.write(slot, &row).expect("sound"),
                    None => drop(capture.spawn(0, &row).expect("sound")),
                }
            }
            capture.finish();
            for slot in archive.living_slots() {
                encoder.show(slot, &archive);
            }
            let packet = encoder.encode(&archive, None).expect("a new tick").bytes;
            assert!(packet.len() <= MAX_REPORT_BYTES, "{} bytes", packet.len());
            let message = [&[0x40], &packet[..]].concat();
            let region = Region::new(MEMORY);
            server.handle(peer, &message).expect("nothing is wrong");
            worst = worst.max(region.change().bytes_allocated);
            let message = poll(&mut server, peer).expect("it reported");
            let ack = Ack::from_bytes(&message[1..]).expect("an acknowledgement");
            assert_eq!(u64::from(ack.newest.0), tick, "seed {seed}");
            encoder.acknowledge(&ack, &archive).expect("honest");
        }
        // The list has 40 KB; reading the first packet takes most of the rest.
        assert!(worst < 3 << 20, "seed {seed}: {worst} bytes");
        server.step(Tick(2)).expect("in order").finish();
        let row = server.world().archive().latest(Slot(0)).expect("there");
        assert_ne!(row[1], 0, "the list is the world's now");
    });
}
