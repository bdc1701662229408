//! Any name and any packet survive encoding and decoding, in streams of any portions; no bytes cause a
//! panic.

use std::time::Duration;

use prescient_named::{
    Component, ComponentKind, DEFAULT_LIFETIME, Data, DataBuilder, Deframer, Interest,
    InterestBuilder, LinkHeader, LinkPacket, MAX_HINTS, Name, NameRef, Signer, Verifier,
};
use proptest::prelude::*;

fn any_name() -> impl Strategy<Value = Name> {
    let kind = prop_oneof![
        4 => Just(8_u16),
        1 => Just(0x36),
        1 => Just(1),
        1 => Just(2),
        1 => 3..=u16::MAX,
    ];
    let component = (kind, prop::collection::vec(any::<u8>(), 0..40));
    prop::collection::vec(component, 0..12).prop_map(|components| {
        let mut name = Name::new();
        for (kind, mut value) in components {
            if kind < 3 {
                value.resize(32, 7);
            }
            let kind = ComponentKind::from_number(kind).expect("not 0");
            name.push(kind, &value).expect("short enough");
        }
        name
    })
}

/// The order of the specification: component by component, each by type, length and value.
fn canonical(name: &Name) -> Vec<(u16, usize, Vec<u8>)> {
    let components = name.view().components();
    let key = |part: Component<'_>| (part.kind.number(), part.value.len(), part.value.to_vec());
    components.map(key).collect()
}

proptest! {
    /// Fails if a byte is escaped in one direction only, or dots are not.
    #[test]
    fn names_are_the_same_as_text(name in any_name()) {
        let text = name.to_string();
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
        prop_assert_eq!(text.parse::<Name>().expect("our own"), name);
    }

    #[test]
    fn any_text_is_a_name_or_not(text in "\\PC*") {
        if let Ok(name) = text.parse::<Name>() {
            let shown = name.to_string();
            prop_assert_eq!(shown.parse::<Name>().expect("our own"), name);
        }
    }

    /// Fails if types or lengths have more than one encoding, or if prefixes end within a component.
    #[test]
    fn names_are_ordered_as_specified(one in any_name(), other in any_name(), count in 0..14_usize) {
        prop_assert_eq!(one.cmp(&other), canonical(&one).cmp(&canonical(&other)));
        let is_prefix = canonical(&one).starts_with(&canonical(&other));
        prop_assert_eq!(one.view().starts_with(other.view()), is_prefix);
        let (prefix, suffix) = (one.view().prefix(count), one.view().suffix(count));
        prop_assert!(one.view().starts_with(prefix));
        prop_assert_eq!(prefix.len(), count.min(one.view().len()));
        prop_assert_eq!(&prefix.to_name().join(suffix).expect("as long as one"), &one);
    }

    /// Fails if a packet is returned from a wrong start, or before it is complete.
    #[test]
    fn a_stream_comes_in_any_portions(
        names in prop::collection::vec(any_name(), 1..20),
        cuts in prop::collection::vec(1..300_usize, 1..50),
    ) {
        let mut stream = Vec::new();
        for name in &names {
            let data = DataBuilder::new(name.view());
            data.sign(&Signer::digest(), &mut stream).expect("it fits");
        }
        let mut deframer = Deframer::default();
        let mut found = Vec::new();
        let mut rest = stream.as_slice();
        for cut in cuts.iter().cycle() {
            let (portion, after) = rest.split_at(rest.len().min(*cut));
            rest = after;
            deframer.push(portion);
            while let Some(packet) = deframer.next_packet().expect("all good") {
                found.push(Data::decode(packet).expect("whole").name().to_name());
            }
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(found, names);
    }

    /// Fails if a decoded packet has other bytes than the input, or if an accessor panics.
    #[test]
    fn any_bytes_are_a_packet_or_not(
        start in prop_oneof![Just(5_u8), Just(6), Just(0x64), any::<u8>()],
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        bytes.insert(0, start);
        read_all(&bytes);
    }

    #[test]
    fn good_packets_with_some_bytes_changed(
        packet in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let packets = include_str!("../../../../vectors/named/v1/packets.jsonl");
        let lines: Vec<_> = packets.lines().collect();
        let line: serde_json::Value = serde_json::from_str(lines[packet.index(lines.len())]).expect("JSON");
        let digits = line["wire"].as_str().expect("a text").as_bytes();
        let byte = |pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16);
        let mut bytes: Vec<u8> = digits.chunks(2).map(|pair| byte(pair).expect("one")).collect();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        read_all(&bytes);
    }

    /// Fails if a field is lost.
    #[test]
    fn interests_arrive_as_they_were_sent(
        name in any_name(),
        flags in any::<(bool, bool)>(),
        nonce in any::<Option<[u8; 4]>>(),
        lifetime in any::<Option<u64>>(),
        hop_limit in any::<Option<u8>>(),
        hints in prop::collection::vec(any_name(), 0..MAX_HINTS),
        parameters in any::<Option<Vec<u8>>>(),
    ) {
        let mut builder = InterestBuilder::new(name.view()).forwarding_hint(&hints);
        if flags.0 { builder = builder.can_be_prefix(); }
        if flags.1 { builder = builder.must_be_fresh(); }
        if let Some(nonce) = nonce { builder = builder.nonce(nonce); }
        let lifetime = lifetime.map(Duration::from_millis);
        if let Some(lifetime) = lifetime { builder = builder.lifetime(lifetime); }
        if let Some(limit) = hop_limit { builder = builder.hop_limit(limit); }
        if let Some(parameters) = &parameters { builder = builder.parameters(parameters); }
        let mut bytes = Vec::new();
        let written = builder.encode(&mut bytes);
        let is_digest = |part: Component<'_>| part.kind == ComponentKind::PARAMETERS_DIGEST;
        if name.view().is_empty() || name.view().components().any(is_digest) {
            prop_assert!(written.is_err());
            return Ok(());
        }
        prop_assert_eq!(written, Ok(()));
        let interest = Interest::decode(&bytes).expect("our own");
        let count = name.view().len();
        prop_assert_eq!(interest.name().prefix(count), name.view());
        prop_assert_eq!(interest.name().len(), count + usize::from(parameters.is_some()));
        prop_assert_eq!((interest.can_be_prefix(), interest.must_be_fresh()), flags);
        prop_assert_eq!(interest.nonce(), nonce);
        prop_assert_eq!(interest.lifetime(), lifetime.unwrap_or(DEFAULT_LIFETIME));
        prop_assert_eq!(interest.hop_limit(), hop_limit);
        prop_assert_eq!(interest.parameters(), parameters.as_deref());
        let found: Vec<Name> = interest.forwarding_hint().map(NameRef::to_name).collect();
        prop_assert_eq!(found, hints);
    }
}

fn read_all(bytes: &[u8]) {
    if let Ok(interest) = Interest::decode(bytes) {
        assert_eq!(interest.wire(), bytes);
        let _ = interest.verify(&Verifier::hmac(b"key"));
        let _ = (
            interest.name().to_string(),
            interest.forwarding_hint().count(),
        );
    }
    if let Ok(data) = Data::decode(bytes) {
        assert_eq!(data.wire(), bytes);
        let _ = data.verify(&Verifier::ed25519([0; 32]));
        let _ = (data.name().to_string(), data.freshness());
    }
    if let Ok(came) = LinkPacket::decode(bytes) {
        let mut written = Vec::new();
        came.header.encode(came.packet, &mut written);
        let again = LinkPacket::decode(&written);
        if !came.packet.is_empty() && came.header != LinkHeader::default() {
            let again = again.expect("our own");
            assert_eq!((again.header, again.packet), (came.header, came.packet));
        }
    }
    let mut deframer = Deframer::default();
    deframer.push(bytes);
    while let Ok(Some(packet)) = deframer.next_packet() {
        assert!(!packet.is_empty());
    }
}
