//! Packets that no encoder writes, with a correct check.

use prescient_schema::{Class, Field, FieldKind};

use super::*;
use crate::{
    packet_coder::{List, Topic, hash},
    range::RangeEncoder,
};

type ForgedCoder<'a> = PacketCoder<'a, RangeEncoder, DEFAULT_CONTEXTS>;

#[test]
fn far_ids_are_refused_and_near_ones_are_not() {
    let decode = |ids: &[u32]| {
        let mut decoder = decoder(&[FieldKind::Bool]);
        let packet = forge(&decoder, header(1, 0), |packet_coder| {
            spawns(packet_coder, ids.iter().map(|&id| (id, 0)));
        });
        decoder.decode(&packet).map(drop)
    };
    let limit = 1 << 13;
    for far in (13..32).map(|exponent| 1u32 << exponent) {
        for id in [far, far + 1, far + far / 2, far + (far - 2)] {
            assert_eq!(decode(&[id]), Err(DecodeError::Malformed), "{id}");
        }
    }
    assert_eq!(decode(&[limit - 1]), Ok(()));
    assert_eq!(decode(&[0, limit + 63]), Ok(()));
    assert_eq!(decode(&[0, limit + 64]), Err(DecodeError::Malformed));
    assert_eq!(decode(&[7, u32::MAX]), Err(DecodeError::Malformed));
}

#[test]
fn other_decisions_for_the_same_value_are_refused() {
    let decode_spawn = |differs: bool, value: i64| {
        let mut decoder = decoder(&[FieldKind::Enum { values: 3 }]);
        let packet = forge(&decoder, header(1, 0), |packet_coder| {
            packet_coder.end(List::Despawns);
            packet_coder.end(List::Wakes);
            let page = packet_coder.entity_states.layout.classes[0].first_page;
            packet_coder.list_item(List::Spawns, &mut None, 0);
            packet_coder.class(0);
            packet_coder.sum.add(0);
            packet_coder.flag(Topic::SpawnFlag, page, &[0; 5], differs);
            if differs {
                let from = hash(0);
                let contexts = [from, 0, from, 0, 0];
                packet_coder.symbol(Topic::SpawnSymbol, page, &contexts, 3, value);
            }
            packet_coder.sum.add(value as u64);
            packet_coder.log.covered.push(0);
            packet_coder.end(List::Spawns);
        });
        decoder.decode(&packet).map(drop)
    };
    assert_eq!(decode_spawn(false, 0), Ok(()));
    assert_eq!(decode_spawn(true, 2), Ok(()));
    assert_eq!(decode_spawn(true, 0), Err(DecodeError::Malformed));
}

/// A spawn of a known id is refused: under another class, under its own, with a despawn in the same
/// packet, and at rest. Fails if `Reader::spawn` does not check the phase.
#[test]
fn a_known_id_is_not_spawned_again() {
    for predicted_packets in [0, 1, 5, 90] {
        let mut decoder = decoder(&[FieldKind::Bool, FieldKind::Enum { values: 300 }]);
        let first = forge(&decoder, header(1, 0), |packet_coder| {
            spawns(packet_coder, [(0, 0)])
        });
        decoder.decode(&first).unwrap();
        for sequence in 2..2 + predicted_packets {
            let predicted = forge(&decoder, header(sequence, sequence - 1), |packet_coder| {
                as_predicted(packet_coder, false);
                packet_coder.end(List::Spawns);
            });
            decoder.decode(&predicted).unwrap();
        }
        let next = 2 + predicted_packets;
        let phase = decoder.shared_model.entity_states.phase(0);
        assert_eq!(phase == Phase::Resting, predicted_packets == 90);
        let before = (decoder.digest(), decoder.acknowledgement());
        for (class, despawns) in [(0, false), (1, false), (0, true), (1, true)] {
            let again = forge(&decoder, header(next, next - 1), |packet_coder| {
                as_predicted(packet_coder, despawns);
                list(packet_coder, [(0, class)]);
            });
            let taken = decoder.decode(&again);
            assert_eq!(taken, Err(DecodeError::Malformed), "{class} {despawns}");
            let after = decoder.acknowledgement().map(|ack| Ack {
                resync: false,
                ..ack
            });
            assert_eq!(before, (decoder.digest(), after));
        }
    }
}

/// A packet that was applied may be folded later, so the ids that it spawned keep their class until
/// then. Fails if `read` does not call `classes_agree`.
#[test]
fn an_unfolded_spawn_keeps_its_class() {
    let mut decoder = decoder(&[FieldKind::Bool, FieldKind::Enum { values: 300 }]);
    let spawn_packet = |decoder: &Decoder, sequence: u32, ids: [(u32, u16); 2]| {
        forge(decoder, header(sequence, 0), |packet_coder| {
            spawns(packet_coder, ids)
        })
    };
    let first = spawn_packet(&decoder, 1, [(3, 0), (5, 1)]);
    decoder.decode(&first).unwrap();
    let despawn_packet = forge(&decoder, header(2, 0), |packet_coder| {
        packet_coder.list_item(List::Despawns, &mut None, 3);
        packet_coder.log.despawns.push(3);
        packet_coder.end(List::Despawns);
        packet_coder.end(List::Wakes);
        packet_coder.end(List::Spawns);
    });
    decoder.decode(&despawn_packet).unwrap();
    assert!(decoder.row(NetEntityId(3)).is_none());
    for ids in [
        [(3, 1), (5, 1)],
        [(3, 0), (5, 0)],
        [(1, 0), (3, 1)],
        [(5, 0), (9, 0)],
    ] {
        let packet = spawn_packet(&decoder, 3, ids);
        assert_eq!(decoder.decode(&packet), Err(DecodeError::Malformed));
    }
    let same = spawn_packet(&decoder, 3, [(3, 0), (5, 1)]);
    assert!(decoder.decode(&same).is_ok());
}

/// A small packet can make a receiver fold up to 64 packets, and then be refused and sent again. Fails
/// if `decode_with` does not count that work, or `commit` the decisions of applied packets.
#[test]
fn refused_packets_fold_only_so_much() {
    let mut decoder = decoder(&[FieldKind::Enum { values: 300 }]);
    for sequence in 1..=40 {
        let ids = (0..400).map(|at| (at, 0));
        let packet = forge(&decoder, header(sequence, 0), |packet_coder| {
            spawns(packet_coder, ids);
        });
        decoder.decode(&packet).unwrap();
    }
    let mut bad = forge(&decoder, header(41, 40), |packet_coder| {
        as_predicted(packet_coder, false);
        packet_coder.end(List::Spawns);
    });
    let good = bad.clone();
    // The header of a near cursor has three bytes.
    bad[3] ^= 1;
    let work: u64 = decoder
        .logs
        .iter()
        .map(|log| log.decisions.count() as u64)
        .sum();
    assert_eq!(decoder.useful, work);
    let max = (FREE_WASTE + WASTE * work) / work;
    for nth in 0..max + 9 {
        let refused = match nth < max {
            true => DecodeError::CheckFailed,
            false => DecodeError::UnknownModel,
        };
        assert_eq!(decoder.decode(&bad), Err(refused), "{nth} of {max}");
    }
    assert_eq!(decoder.decode(&good), Err(DecodeError::UnknownModel));
    // The epoch that this end requests works.
    assert!(decoder.acknowledgement().is_some_and(|ack| ack.resync));
    let anew = Header {
        epoch: 1,
        ..header(42, 0)
    };
    let mut fresh = self::decoder(&[FieldKind::Enum { values: 300 }]);
    fresh.epoch = 1;
    let packet = forge(&fresh, anew, |packet_coder| spawns(packet_coder, [(0, 0)]));
    decoder.decode(&packet).unwrap();
    let next = Header {
        epoch: 1,
        ..header(43, 42)
    };
    let packet = forge(&decoder, next, |packet_coder| {
        as_predicted(packet_coder, false);
        packet_coder.end(List::Spawns);
    });
    decoder.decode(&packet).unwrap();
}

/// An empty partial packet is four decisions long, but folding it records the coverage of every
/// active entity. Fails with thousands of refused packets that are folded for if `Log::work` does
/// not count `active`.
#[test]
fn coverage_counts_as_work() {
    let mut decoder = decoder(&[FieldKind::Bool]);
    let first = forge(&decoder, header(1, 0), |packet_coder| {
        spawns(packet_coder, (0..2000).map(|id| (id, 0)));
    });
    decoder.decode(&first).unwrap();
    for sequence in 2..=60 {
        let partial = Header {
            full: false,
            ..header(sequence, 1)
        };
        let packet = forge(&decoder, partial, empty_body);
        decoder.decode(&packet).unwrap();
    }
    let mut bad = forge(&decoder, header(61, 60), |packet_coder| {
        as_predicted(packet_coder, false);
        packet_coder.end(List::Spawns);
    });
    bad[3] ^= 1;
    // 59 times 2000.
    let work = 118_000;
    let max = (FREE_WASTE + WASTE * decoder.useful) / work;
    assert!(max < 30, "{max}");
    for _ in 0..max {
        assert!(decoder.decode(&bad).is_err());
    }
    assert_eq!(decoder.decode(&bad), Err(DecodeError::UnknownModel));
}

/// Logs of packets that are not folded yet are kept up to a number of bytes. Further packets are
/// refused without a trace until the sender moves its cursor. Fails if `room_for` does not count
/// logs, or `read` does not call `Room::fits`.
#[test]
fn logs_have_a_limit_in_bytes() {
    for seed in 0..20u32 {
        let mut decoder = decoder(&[FieldKind::Bool]);
        let max = 1 << 20;
        decoder.set_max_bytes(2 * max);
        let logs = |decoder: &Decoder| decoder.logs.iter().map(Log::held_bytes).sum::<usize>();
        let partial = |sequence, cursor| Header {
            full: false,
            ..header(sequence, cursor)
        };
        let mut refused = 0;
        for sequence in 1..=64 {
            let before = (decoder.digest(), decoder.newest);
            let packet = forge(&decoder, partial(sequence, 0), |packet_coder| {
                despawn_unknown(packet_coder, 1000, sequence + 64 * seed);
            });
            if let Err(error) = decoder.decode(&packet) {
                assert_eq!(error, DecodeError::Full);
                assert_eq!(before, (decoder.digest(), decoder.newest));
                refused += 1;
            }
            assert!(logs(&decoder) <= max, "{} bytes", logs(&decoder));
        }
        assert!((40..63).contains(&refused), "{refused} were refused");
        let newest = decoder.newest.0;
        let packet = forge(&decoder, partial(65, newest), empty_body);
        decoder.decode(&packet).unwrap();
        assert!(logs(&decoder) < max / 2, "{} bytes", logs(&decoder));
        // A new epoch frees them, too.
        let mut fresh = self::decoder(&[FieldKind::Bool]);
        fresh.epoch = 1;
        let anew = Header {
            epoch: 1,
            ..header(66, 0)
        };
        let packet = forge(&fresh, anew, |packet_coder| spawns(packet_coder, [(0, 0)]));
        decoder.decode(&packet).unwrap();
        assert!(logs(&decoder) < 10_000, "{} bytes", logs(&decoder));
    }
}

/// Fails with an applied packet if `Reader::wake` does not search for the id among the despawns:
/// the entity would be shown and missing in the model until the next epoch.
#[test]
fn a_despawned_entity_does_not_wake() {
    let mut decoder = decoder(&[FieldKind::Enum { values: 300 }]);
    let first = forge(&decoder, header(1, 0), |packet_coder| {
        spawns(packet_coder, [(0, 0)])
    });
    decoder.decode(&first).unwrap();
    for sequence in 2..92 {
        let predicted = forge(&decoder, header(sequence, sequence - 1), |packet_coder| {
            as_predicted(packet_coder, false);
            packet_coder.end(List::Spawns);
        });
        decoder.decode(&predicted).unwrap();
    }
    assert_eq!(decoder.shared_model.entity_states.phase(0), Phase::Resting);
    let both = forge(&decoder, header(92, 91), |packet_coder| {
        packet_coder.list_item(List::Despawns, &mut None, 0);
        packet_coder.log.despawns.push(0);
        packet_coder.end(List::Despawns);
        packet_coder.list_item(List::Wakes, &mut None, 0);
    });
    assert_eq!(decoder.decode(&both), Err(DecodeError::Malformed));
}

/// Fails with a panic if `PacketCoder::class` accepts class 0 of a schema that has none.
#[test]
fn a_schema_without_classes_spawns_nothing() {
    let mut decoder = decoder(&[]);
    // One more spawn, and its id, but no bits for a class.
    let packet = forge(&decoder, header(1, 0), |packet_coder| {
        packet_coder.end(List::Despawns);
        packet_coder.end(List::Wakes);
        packet_coder.list_item(List::Spawns, &mut None, 0);
    });
    assert_eq!(decoder.decode(&packet), Err(DecodeError::Malformed));
}

/// Contents can be forged whose cells collide, so a container may be coded against any old content.
/// Fails with a panic if the other of two symbols is `1 - old`.
#[test]
fn a_container_is_coded_against_any_content() {
    let item = alloc::vec![Field::new("on", FieldKind::Bool)];
    let decoder = decoder(&[FieldKind::List { item, max_len: 9 }]);
    forge(&decoder, header(1, 0), |packet_coder| {
        let old = Content::Cells([i64::MIN, i64::MAX, 7].into());
        for new in [[0, 0, 0], [1, 1, 1]] {
            let new = Content::Cells(new.into());
            packet_coder.content(0, 0, &old, Some(&new));
        }
        let longer = Content::Cells([i64::MIN, i64::MIN, 7, 1, 0].into());
        packet_coder.content(0, 0, &longer, Some(&old));
    });
}

/// A decoder without entities, with a class of one field of each of these kinds.
fn decoder(kinds: &[FieldKind]) -> Decoder {
    let class = |(at, kind): (usize, &FieldKind)| {
        // Rows of different classes differ in length.
        let fields = (0..=at).map(|field| Field::new(alloc::format!("f{field}"), kind.clone()));
        Class::new(alloc::format!("c{at}"), fields.collect())
    };
    let classes = kinds.iter().enumerate().map(class).collect();
    Decoder::new(Arc::new(Schema { classes }), Config::default())
}

fn header(sequence: u32, cursor: u32) -> Header {
    Header {
        epoch: 0,
        sequence: Sequence(sequence),
        tick: Tick(sequence.into()),
        cursor: Sequence(cursor),
        full: true,
        excluded: Vec::new(),
    }
}

/// No despawns (or only that of entity 0), no wakes, and all active entities as predicted.
fn as_predicted(packet_coder: &mut ForgedCoder<'_>, despawns: bool) {
    if despawns {
        packet_coder.list_item(List::Despawns, &mut None, 0);
        packet_coder.log.despawns.push(0);
    }
    packet_coder.end(List::Despawns);
    packet_coder.end(List::Wakes);
    let entity_states = packet_coder.entity_states;
    for &id in &entity_states.active {
        if !despawns || id != 0 {
            let head = entity_states.population.active(id).unwrap().head;
            packet_coder.entity_flag(&head, false, false);
        }
    }
}

/// An empty body of a partial packet.
fn empty_body(packet_coder: &mut ForgedCoder<'_>) {
    let lists = [List::Despawns, List::Wakes, List::Covered, List::Spawns];
    lists.into_iter().for_each(|list| packet_coder.end(list));
}

/// A partial packet that despawns this many unknown entities.
fn despawn_unknown(packet_coder: &mut ForgedCoder<'_>, count: u32, seed: u32) {
    let (mut id, mut previous) = (0, None);
    for nth in 0..count {
        id += 1 + hash(u64::from(seed) << 32 | u64::from(nth)) % 60;
        packet_coder.list_item(List::Despawns, &mut previous, id);
        packet_coder.log.despawns.push(id);
    }
    empty_body(packet_coder);
}

/// A body for a decoder without entities, with these spawns.
fn spawns(packet_coder: &mut ForgedCoder<'_>, ids: impl IntoIterator<Item = (u32, u16)>) {
    packet_coder.end(List::Despawns);
    packet_coder.end(List::Wakes);
    list(packet_coder, ids);
}

/// The list of spawns: ids and classes.
fn list(packet_coder: &mut ForgedCoder<'_>, ids: impl IntoIterator<Item = (u32, u16)>) {
    let mut previous = None;
    for (id, class) in ids {
        packet_coder.list_item(List::Spawns, &mut previous, id);
        packet_coder.class(class);
        let row = alloc::vec![1; packet_coder.entity_states.layout.classes[usize::from(class)].shapes.len()];
        packet_coder.appear(id, class, Cause::Spawn, Some(&row), &mut Vec::new());
    }
    packet_coder.end(List::Spawns);
}

/// A packet that a decoder takes for one of its sender, with any body.
fn forge(decoder: &Decoder, header: Header, body: impl FnOnce(&mut ForgedCoder<'_>)) -> Vec<u8> {
    let mut decoder = decoder.clone();
    let anchor = decoder.anchor_of(header.cursor).unwrap_or_default();
    decoder.fold_for::<DEFAULT_CONTEXTS>(&header).unwrap();
    let mut log = Log::default();
    log.begin(&header, anchor.tick);
    let mut bytes = Vec::new();
    header::write(&header, &anchor, false, &mut bytes);
    let header_len = bytes.len();
    let Decoder {
        shared_model,
        shown,
        layout,
        ..
    } = &mut decoder;
    let rows = Shown(shown);
    let mark = shared_model.context_model.mark();
    let mut packet_coder = PacketCoder::<_, DEFAULT_CONTEXTS> {
        coder: RangeEncoder::new(bytes, 0),
        context_model: &mut shared_model.context_model,
        entity_states: &shared_model.entity_states,
        rows: &rows,
        log: &mut log,
        ledger: None,
        account: Account {
            class: None,
            field: None,
            cause: Cause::Spawn,
        },
        sum: start_check(&header, layout),
        counting: false,
        cost: 0,
        max_decisions: usize::MAX,
        copy_work: 0,
        new_contents: Vec::new(),
        content_room: usize::MAX,
        invalid: false,
    };
    body(&mut packet_coder);
    let PacketCoder { coder, sum, .. } = packet_coder;
    shared_model.context_model.rewind(mark);
    let mut bytes = coder.finish();
    log.covered.sort_unstable();
    let check = finish_check(sum, shared_model, &log, &rows);
    header::set_check(&mut bytes, header_len, check);
    bytes
}
