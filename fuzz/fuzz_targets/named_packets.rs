//! Any bytes as NDN packets: no panic, and what is decoded can be encoded again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prescient_named::*;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(interest) = Interest::decode(bytes) {
        assert_eq!(interest.wire(), bytes);
        names(interest.name());
        interest.forwarding_hint().for_each(names);
        assert!((1..=MAX_HINTS).contains(&interest.forwarding_hint().count().max(1)));
        if interest.signature().is_some() {
            assert!(interest.parameters().is_some());
        }
        for verifier in [
            Verifier::digest(),
            Verifier::hmac(b"key"),
            Verifier::ed25519([7; 32]),
        ] {
            let _ = interest.verify(&verifier);
        }
    }
    if let Ok(data) = Data::decode(bytes) {
        assert_eq!(data.wire(), bytes);
        names(data.name());
        if let Some(last) = data.final_block() {
            assert_eq!(last.len(), 1);
        }
        for verifier in [
            Verifier::digest(),
            Verifier::hmac(b"key"),
            Verifier::ed25519([7; 32]),
        ] {
            let _ = data.verify(&verifier);
        }
    }
    if let Ok(came) = LinkPacket::decode(bytes)
        && came.header != LinkHeader::default()
        && !came.packet.is_empty()
    {
        let mut written = Vec::new();
        came.header.encode(came.packet, &mut written);
        if let Ok(again) = LinkPacket::decode(&written) {
            assert_eq!((again.header, again.packet), (came.header, came.packet));
        } else {
            assert!(written.len() > MAX_PACKET);
        }
    }
    if let Ok(parameters) = ControlParameters::decode(bytes) {
        let mut written = Vec::new();
        parameters.encode(&mut written);
        if written.len() <= MAX_PACKET {
            assert_eq!(ControlParameters::decode(&written), Ok(parameters));
        }
    }
    if let Ok(response) = ControlResponse::decode(bytes) {
        let mut written = Vec::new();
        response.encode(&mut written);
        // Characters that are none became others, which may take more room.
        if written.len() <= MAX_PACKET {
            assert_eq!(ControlResponse::decode(&written), Ok(response));
        }
    }
    if let Ok(text) = str::from_utf8(bytes)
        && let Ok(name) = text.parse::<Name>()
    {
        names(name.view());
    }
    stream(bytes);
});

fn names(name: NameRef<'_>) {
    assert_eq!(NameRef::decode(name.as_bytes()), Ok(name));
    assert!(name.len() <= MAX_COMPONENTS);
    assert_eq!(name.to_string().parse(), Ok(name.to_name()));
}

/// The same packets come out of a stream in one portion and byte by byte.
fn stream(bytes: &[u8]) {
    let (mut whole, mut single) = (Deframer::default(), Deframer::default());
    whole.push(bytes);
    let mut packets = Vec::new();
    let mut error = None;
    loop {
        match whole.next_packet() {
            Ok(Some(packet)) => packets.push(packet.to_vec()),
            Ok(None) => break,
            Err(found) => {
                error = Some(found);
                break;
            }
        }
    }
    let mut again = Vec::new();
    'bytes: for byte in bytes {
        single.push(&[*byte]);
        loop {
            match single.next_packet() {
                Ok(Some(packet)) => again.push(packet.to_vec()),
                Ok(None) => break,
                Err(found) => {
                    assert_eq!(Some(found), error);
                    break 'bytes;
                }
            }
        }
    }
    assert_eq!(packets, again);
}
