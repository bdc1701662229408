//! Golden packets of python-ndn: decoded to the same fields, and encoded to the same bytes.
//!
//! `vectors/named/write_vectors.py` made `vectors/named/v1/packets.jsonl` with python-ndn.

use std::time::Duration;

use prescient_named::*;
use serde_json::Value;

const PACKETS: &str = include_str!("../../../../vectors/named/v1/packets.jsonl");

/// Fails if any type number, the order of any two elements or the signed range differs
/// (`MUST_BE_FRESH` 0x13; `SIGNATURE_TIME` before `SIGNATURE_NONCE`; the digest over
/// `tail[1..]`).
#[test]
fn interests() {
    for packet in packets("interest") {
        let wire = packet.bytes("wire");
        let interest = Interest::decode(&wire).expect("a good packet");
        assert_eq!(interest.name().to_name(), packet.name("full_name"));
        assert_eq!(interest.can_be_prefix(), packet.flag("can_be_prefix"));
        assert_eq!(interest.must_be_fresh(), packet.flag("must_be_fresh"));
        let nonce = packet
            .number("nonce")
            .map(|nonce| (nonce as u32).to_be_bytes());
        assert_eq!(interest.nonce(), nonce);
        let lifetime = packet.number("lifetime").map(Duration::from_millis);
        assert_eq!(interest.lifetime(), lifetime.unwrap_or(DEFAULT_LIFETIME));
        let hop_limit = packet.number("hop_limit").map(|limit| limit as u8);
        assert_eq!(interest.hop_limit(), hop_limit);
        let hints = packet.0["forwarding_hint"].as_array().expect("a list");
        let hints: Vec<Name> = hints.iter().map(name_of).collect();
        let found: Vec<Name> = interest.forwarding_hint().map(NameRef::to_name).collect();
        assert_eq!(found, hints);
        let parameters = packet.has("parameters").then(|| packet.bytes("parameters"));
        assert_eq!(interest.parameters(), parameters.as_deref());

        let name = packet.name("name");
        let mut builder = InterestBuilder::new(name.view()).forwarding_hint(&hints);
        if packet.flag("can_be_prefix") {
            builder = builder.can_be_prefix();
        }
        if packet.flag("must_be_fresh") {
            builder = builder.must_be_fresh();
        }
        if let Some(nonce) = nonce {
            builder = builder.nonce(nonce);
        }
        if let Some(lifetime) = lifetime {
            builder = builder.lifetime(lifetime);
        }
        if let Some(limit) = hop_limit {
            builder = builder.hop_limit(limit);
        }
        if let Some(parameters) = &parameters {
            builder = builder.parameters(parameters);
        }
        let mut written = Vec::new();
        match packet.signer() {
            None => {
                assert_eq!(interest.signature(), None);
                assert_eq!(
                    interest.verify(&Verifier::digest()),
                    Err(VerifyError::Unsigned)
                );
                builder.encode(&mut written).expect("it fits");
            }
            Some(signer) => {
                interest
                    .verify(&signer.verifier())
                    .expect("a good signature");
                let stamp = interest.signature().expect("signed").stamp;
                builder.sign(&signer, stamp, &mut written).expect("it fits");
            }
        }
        assert_eq!(written, wire);
    }
}

/// Fails if an element of Data or of its MetaInfo differs (`FRESHNESS_PERIOD` 0x1a), or if the signature
/// covers another range.
#[test]
fn data() {
    for packet in packets("data") {
        let wire = packet.bytes("wire");
        let data = Data::decode(&wire).expect("a good packet");
        let name = packet.name("name");
        assert_eq!(data.name(), name.view());
        let content = packet.bytes("content");
        assert_eq!(data.content(), content);
        let content_type = packet.number("content_type");
        assert_eq!(data.content_type(), content_type.unwrap_or(BLOB));
        let freshness = packet.number("freshness_period").map(Duration::from_millis);
        assert_eq!(data.freshness(), freshness.unwrap_or_default());
        let last = packet.0["final"].as_str();
        let last: Option<Name> = last.map(|last| format!("/{last}").parse().expect("a name"));
        assert_eq!(data.final_block(), last.as_ref().map(Name::view));
        let signer = packet.signer().expect("all are signed");
        data.verify(&signer.verifier()).expect("a good signature");

        let mut builder = DataBuilder::new(name.view()).content(&content);
        if let Some(content_type) = content_type {
            builder = builder.content_type(content_type);
        }
        if let Some(freshness) = freshness {
            builder = builder.freshness(freshness);
        }
        if let Some(last) = &last {
            builder = builder.final_block(last.view());
        }
        let mut written = Vec::new();
        builder.sign(&signer, &mut written).expect("it fits");
        assert_eq!(written, wire);
    }
}

/// Fails if an ignorable header field is refused (`is_ignorable` without 0x330), or if fields are written
/// in another order.
#[test]
fn link_headers() {
    let mut ignored = 0;
    for packet in packets("link") {
        let wire = packet.bytes("wire");
        let came = LinkPacket::decode(&wire).expect("a good packet");
        assert_eq!(came.packet, packet.bytes("packet"));
        let reason = packet.number("nack").map(|reason| match reason {
            0 => NackReason::None,
            50 => NackReason::Congestion,
            100 => NackReason::Duplicate,
            150 => NackReason::NoRoute,
            other => NackReason::Other(other),
        });
        let token = packet.has("pit_token").then(|| packet.bytes("pit_token"));
        let header = LinkHeader {
            nack: reason,
            pit_token: token.and_then(|token| PitToken::new(&token)),
            congestion_mark: packet.number("congestion_mark"),
            ..LinkHeader::default()
        };
        assert_eq!(came.header, header);
        if packet.has("incoming_face_id") {
            ignored += 1;
            continue;
        }
        let mut written = Vec::new();
        header.encode(came.packet, &mut written);
        assert_eq!(written, wire);
    }
    assert_eq!(ignored, 1);
}

/// Fails if a field of a command has another number (`COST` 0x6b) or another position.
#[test]
fn commands_and_their_answers() {
    for packet in packets("register") {
        let wire = packet.bytes("wire");
        let interest = Interest::decode(&wire).expect("a good packet");
        interest.verify(&Verifier::digest()).expect("whole");
        let mut command = Command::register(packet.name("prefix"));
        command.parameters.cost = packet.number("cost");
        command.parameters.flags = packet.number("flags");
        command.parameters.origin = packet.number("origin");
        command.parameters.expiration = packet.number("expiration").map(Duration::from_millis);
        let component = interest.name().get(4).expect("parameters");
        let parameters = ControlParameters::decode(component.value).expect("good ones");
        assert_eq!(parameters, command.parameters);
        let stamp = interest.signature().expect("signed").stamp;
        let nonce = interest.nonce().expect("it has one");
        let mut written = Vec::new();
        command
            .sign(&Signer::digest(), stamp, nonce, &mut written)
            .expect("it fits");
        assert_eq!(written, wire);
    }
    for packet in packets("response") {
        let wire = packet.bytes("wire");
        let response = ControlResponse::decode(&wire).expect("a good answer");
        assert!(response.is_ok());
        assert_eq!(response.text, "OK");
        let parameters = response.parameters.as_ref().expect("it has some");
        assert_eq!(parameters.name, Some(packet.name("prefix")));
        assert_eq!(parameters.face, packet.number("face"));
        let mut written = Vec::new();
        response.encode(&mut written);
        assert_eq!(written, wire);
    }
}

struct Packet(Value);

impl Packet {
    fn has(&self, field: &str) -> bool {
        !self.0[field].is_null()
    }

    fn flag(&self, field: &str) -> bool {
        self.0[field].as_bool().unwrap_or(false)
    }

    fn number(&self, field: &str) -> Option<u64> {
        self.0[field].as_u64()
    }

    fn name(&self, field: &str) -> Name {
        name_of(&self.0[field])
    }

    fn bytes(&self, field: &str) -> Vec<u8> {
        let text = self.0[field].as_str().expect("a text");
        let pairs = text.as_bytes().chunks(2);
        let byte = |pair| u8::from_str_radix(str::from_utf8(pair).expect("digits"), 16);
        pairs.map(|pair| byte(pair).expect("hexadecimal")).collect()
    }

    fn signer(&self) -> Option<Signer> {
        let ascending = |from: u8| std::array::from_fn::<u8, 32, _>(|place| from + place as u8);
        let locator = |name: &str| Some(name.parse().expect("a name"));
        match self.0["signer"].as_str()? {
            "digest" => Some(Signer::digest()),
            "hmac" => Some(Signer::hmac(&ascending(0), locator("/keys/h"))),
            "ed25519" => Some(Signer::ed25519(&ascending(32), locator("/keys/e/KEY/1"))),
            other => panic!("no such signer: {other}"),
        }
    }
}

fn name_of(value: &Value) -> Name {
    let text = value.as_str().expect("a text");
    text.parse().expect("a name")
}

fn packets(kind: &str) -> Vec<Packet> {
    let lines = PACKETS.lines();
    let parse = |line| serde_json::from_str::<Value>(line).expect("a line of JSON");
    let all = lines.map(parse).filter(|line| line["kind"] == kind);
    let all: Vec<_> = all.map(Packet).collect();
    assert!(!all.is_empty());
    all
}
