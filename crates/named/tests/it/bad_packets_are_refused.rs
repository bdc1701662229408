//! Malformed packets of every kind, each with its error.

use prescient_named::*;

/// Each line fails if its check is left out of the decoder.
#[test]
fn each_for_its_reason() {
    use DecodeError::*;
    for (text, reason) in [
        ("", Truncated),
        ("05", Truncated),
        ("05 05 0703080161 00", Trailing),
        ("05 06 0703080161", Truncated),
        ("fd0005 05 0703080161", NotShortest),
        ("05 fd0005 0703080161", NotShortest),
        ("00 00", BadType),
        ("ff0000000100000000 00", BadType),
        ("06 05 0703080161", Unexpected { kind: 6 }),
        // No name, an empty one, one that is not the first.
        ("05 00", Missing { kind: 7 }),
        ("05 02 0700", BadLength { kind: 7, length: 0 }),
        ("05 07 2100 0703080161", Missing { kind: 7 }),
        // Components: of type 0, of too large a type, digests of another length.
        ("05 05 0703000161", BadType),
        ("05 09 0707fe0001000001 61", Unexpected { kind: 0x1_0000 }),
        ("05 05 0703010161", BadLength { kind: 1, length: 1 }),
        ("05 05 0703020161", BadLength { kind: 2, length: 1 }),
        ("05 04 07020805", Truncated),
        // Elements twice, out of order, of an unknown critical type.
        ("05 09 0703080161 2100 2100", Unexpected { kind: 0x21 }),
        ("05 09 0703080161 1200 2100", Unexpected { kind: 0x21 }),
        ("05 07 0703080161 1f00", Unexpected { kind: 0x1f }),
        ("05 07 0703080161 7f00", Unexpected { kind: 0x7f }),
        // Values of the wrong length.
        (
            "05 08 0703080161 210100",
            BadLength {
                kind: 0x21,
                length: 1,
            },
        ),
        (
            "05 0a 0703080161 0a03000000",
            BadLength {
                kind: 10,
                length: 3,
            },
        ),
        (
            "05 0a 0703080161 0c03000000",
            BadLength {
                kind: 12,
                length: 3,
            },
        ),
        (
            "05 07 0703080161 2200",
            BadLength {
                kind: 0x22,
                length: 0,
            },
        ),
        ("05 07 0703080161 1e00", BadValue { kind: 0x1e }),
        // Parameters without a digest, and a signature without parameters.
        ("05 07 0703080161 2400", BadParametersDigest),
        ("05 0c 0703080161 2c031b0100 2e00", Missing { kind: 0x24 }),
        ("05 0a 0703080161 2c031b0100", Missing { kind: 0x2e }),
        ("05 07 0703080161 2e00", Missing { kind: 0x2c }),
    ] {
        let refused = Interest::decode(&bytes(text)).map(|_| ());
        assert_eq!(refused, Err(reason), "{text}");
    }
    for (text, reason) in [
        ("06 05 0703080161", Missing { kind: 0x16 }),
        ("06 0a 0703080161 16031b0100", Missing { kind: 0x17 }),
        ("06 09 0703080161 1600 1700", Missing { kind: 0x1b }),
        ("06 0b 1600 0703080161 1700 1700", Missing { kind: 7 }),
        ("06 0f 0703080161 1400 16031b0100 1700 00", BadType),
        (
            "06 10 0703080161 14021900 16031b0100 1700",
            BadLength {
                kind: 0x19,
                length: 0,
            },
        ),
        (
            "06 16 0703080161 14081a06080161080162 16031b0100 1700",
            Trailing,
        ),
    ] {
        let refused = Data::decode(&bytes(text)).map(|_| ());
        assert_eq!(refused, Err(reason), "{text}");
    }
    for (text, reason) in [
        (
            "64 02 6200",
            BadLength {
                kind: 0x62,
                length: 0,
            },
        ),
        (
            "64 04 510101 00",
            BadLength {
                kind: 0x51,
                length: 1,
            },
        ),
        ("64 06 520101 530101", BadValue { kind: 0x52 }),
        ("64 03 530141", BadValue { kind: 0x53 }),
        ("64 03 530100", BadValue { kind: 0x53 }),
        ("64 06 520100 530102", Missing { kind: 0x51 }),
        ("64 05 5000 620101", Unexpected { kind: 0x62 }),
        ("64 06 620101 620101", Unexpected { kind: 0x62 }),
        ("64 04 fd032100", Unexpected { kind: 0x0321 }),
        ("64 04 fd03c000", Unexpected { kind: 0x03c0 }),
        ("64 02 5400", Unexpected { kind: 0x54 }),
    ] {
        let refused = LinkPacket::decode(&bytes(text)).map(|_| ());
        assert_eq!(refused, Err(reason), "{text}");
    }
}

/// Fails if an unknown element that is not critical is refused, or if the element after it is skipped.
#[test]
fn what_need_not_be_understood_is_skipped() {
    let wire = bytes("05 10 0703080161 fc00 1200 2600 22010a fc00");
    let interest = Interest::decode(&wire).expect("all is well");
    assert!(interest.must_be_fresh());
    assert_eq!(interest.hop_limit(), Some(10));
    let wire = bytes("64 0a fd032c020001 50020500");
    let came = LinkPacket::decode(&wire).expect("all is well");
    assert_eq!(came.packet, [5, 0]);
}

/// Fails if a length above a limit is accepted.
#[test]
fn limits_hold() {
    let component = [8_u8, 0];
    let deep = |count: usize| component.repeat(count);
    let name = deep(MAX_COMPONENTS);
    assert!(NameRef::decode(&name).is_ok());
    let name = deep(MAX_COMPONENTS + 1);
    assert_eq!(NameRef::decode(&name), Err(DecodeError::TooDeep));

    let mut long = vec![6, 0xfd];
    long.extend_from_slice(&8797_u16.to_be_bytes());
    long.resize(MAX_PACKET + 1, 0);
    let too_long = DecodeError::TooLong {
        length: MAX_PACKET + 1,
        limit: MAX_PACKET,
    };
    assert_eq!(Data::decode(&long).map(|_| ()), Err(too_long));
    assert_eq!(LinkPacket::decode(&long).map(|_| ()), Err(too_long));

    let name: Name = "/a".parse().expect("a name");
    let content = vec![0; MAX_PACKET];
    let mut written = vec![1, 2, 3];
    let refused = DataBuilder::new(name.view())
        .content(&content)
        .sign(&Signer::digest(), &mut written);
    assert!(matches!(refused, Err(EncodeError::TooLong { .. })));
    let refused = InterestBuilder::new(name.view())
        .parameters(&content)
        .encode(&mut written);
    assert!(matches!(refused, Err(EncodeError::TooLong { .. })));
    assert_eq!(written, [1, 2, 3]);
    let refused = InterestBuilder::new(Name::new().view()).encode(&mut written);
    assert_eq!(refused, Err(EncodeError::EmptyName));

    let mut deep = Name::new();
    for _ in 0..MAX_COMPONENTS {
        deep.push(ComponentKind::GENERIC, b"")
            .expect("there is room");
    }
    assert_eq!(
        deep.push(ComponentKind::GENERIC, b""),
        Err(NameError::TooDeep)
    );
    let refused = InterestBuilder::new(deep.view())
        .parameters(b"")
        .encode(&mut written);
    assert_eq!(refused, Err(EncodeError::TooDeep));
    let mut long = Name::new();
    let refused = long.push(ComponentKind::GENERIC, &content);
    assert_eq!(refused, Err(NameError::TooLong));
    let refused = long.push(ComponentKind::IMPLICIT_DIGEST, b"short");
    assert_eq!(refused, Err(NameError::BadDigest(5)));
}

/// Fails if a signature verifies for another packet or key.
#[test]
fn no_bit_of_a_signed_packet_may_change() {
    let name: Name = "/interact/5/heal".parse().expect("a name");
    let signers = [
        Signer::digest(),
        Signer::hmac(b"key", None),
        Signer::ed25519(&[7; 32], Some(name.clone())),
    ];
    for signer in &signers {
        let (mut data, mut interest) = (Vec::new(), Vec::new());
        let builder = DataBuilder::new(name.view()).content(b"content");
        builder.sign(signer, &mut data).expect("it fits");
        let stamp = SignatureStamp {
            nonce: Some(&[1; 8]),
            time: Some(2),
            sequence: Some(3),
        };
        let builder = InterestBuilder::new(name.view()).parameters(b"parameters");
        builder.sign(signer, stamp, &mut interest).expect("it fits");
        let verifier = signer.verifier();
        let is_good = |data: &[u8], interest: &[u8]| {
            let data = Data::decode(data).is_ok_and(|data| data.verify(&verifier).is_ok());
            let interest = Interest::decode(interest);
            let interest = interest.is_ok_and(|interest| interest.verify(&verifier).is_ok());
            (data, interest)
        };
        assert_eq!(is_good(&data, &interest), (true, true));
        for place in 0..data.len().max(interest.len()) * 8 {
            let flip = |packet: &[u8]| {
                let mut packet = packet.to_vec();
                if let Some(byte) = packet.get_mut(place / 8) {
                    *byte ^= 1 << (place % 8);
                }
                packet
            };
            let (flipped, other) = (flip(&data), flip(&interest));
            let (data_good, interest_good) = is_good(&flipped, &other);
            assert_eq!(data_good, flipped == data, "bit {place}");
            assert_eq!(interest_good, other == interest, "bit {place}");
        }
        for other in &signers {
            let found = Data::decode(&data)
                .expect("whole")
                .verify(&other.verifier());
            assert_eq!(found.is_ok(), std::ptr::eq(signer, other));
        }
        let stranger = Verifier::hmac(b"another key");
        let found = Data::decode(&data).expect("whole").verify(&stranger);
        assert!(found.is_err());
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b' ').collect();
    let pairs = digits.chunks(2);
    let byte = |pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16);
    pairs.map(|pair| byte(pair).expect("hexadecimal")).collect()
}
