//! Sealing and opening the packets of a connection.
//!
//! Each direction has its own key and counts its packets over the whole connection. The packet
//! number is the nonce, so no pair of key and nonce repeats. Keys are replaced along a one-way
//! chain: a key that is stolen from memory does not decrypt packets from before the last key
//! update.

use std::time::Duration;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use prescient_channels::{PacketBuffer, Time};

use crate::key_schedule::{Secret, follow};
use crate::packet::{Header, HeaderError, PacketKind, ShortNumber};
use crate::replay::Replay;

/// One key of a direction's chain.
struct Key {
    secret: Secret,
    cipher: LessSafeKey,
}

impl Key {
    fn new(secret: Secret) -> Self {
        let bytes = follow(&secret, b"packets");
        let key = UnboundKey::new(&CHACHA20_POLY1305, &*bytes)
            .expect("a key of ChaCha20-Poly1305 has 32 bytes");
        Self {
            secret,
            cipher: LessSafeKey::new(key),
        }
    }

    fn next(&self) -> Self {
        Self::new(follow(&self.secret, b"next"))
    }
}

fn nonce(sequence: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&sequence.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// When a sender replaces its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rekeying {
    pub(crate) packets: u64,
    pub(crate) lifetime: Duration,
}

/// Both directions of a connection, as one end has them.
pub(crate) struct PacketProtection {
    seal: Key,
    seal_epoch: u64,
    /// The other end has received the present key, so the next one may be used.
    seal_settled: bool,
    sealed_with_key: u64,
    key_since: Time,
    next_sequence: u64,
    /// One more than the highest packet number that the other end is known to have received.
    acknowledged: Option<u64>,
    /// Packets were seen to overtake each other, so short headers may not do.
    is_reordered: bool,
    rekeying: Rekeying,

    open: Key,
    open_before: Option<Key>,
    /// Derived in advance, so that a forged packet costs no more than one failed decryption.
    open_next: Key,
    open_epoch: u64,
    /// The lowest packet number received with the present key. Packets below it that have the other
    /// phase were sealed with the previous key, those above with the next.
    open_since: u64,
    forged_with_key: u64,
    replay: Replay,
}

/// An authentic packet that was not received before.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) kind: PacketKind,
    pub(crate) sequence: u64,
    pub(crate) payload: Vec<u8>,
    /// It has the highest packet number so far.
    pub(crate) newest: bool,
}

/// Why a packet was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    Malformed,
    Replayed,
    /// Older than the replay window.
    Late,
    Forged,
}

/// The packet numbers are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exhausted;

impl PacketProtection {
    pub(crate) fn new(seal: Secret, open: Secret, rekeying: Rekeying, now: Time) -> Self {
        let open = Key::new(open);
        Self {
            seal: Key::new(seal),
            seal_epoch: 0,
            seal_settled: true,
            sealed_with_key: 0,
            key_since: now,
            next_sequence: 0,
            acknowledged: None,
            is_reordered: false,
            rekeying,
            open_next: open.next(),
            open_before: None,
            open,
            open_epoch: 0,
            open_since: 0,
            forged_with_key: 0,
            replay: Replay::new(),
        }
    }

    /// Makes `payload` the whole datagram that carries it, in its buffer.
    pub(crate) fn seal(
        &mut self,
        kind: PacketKind,
        connection: Option<u64>,
        mut payload: PacketBuffer,
        now: Time,
    ) -> Result<PacketBuffer, Exhausted> {
        if self.next_sequence == u64::MAX {
            return Err(Exhausted);
        }
        self.rekey_if_due(now);
        let (sequence, number) = (self.next_sequence, self.next_number(kind));
        self.next_sequence += 1;
        self.sealed_with_key += 1;
        let header = Header {
            kind,
            phase: phase(self.seal_epoch),
            other_phase: phase(self.open_epoch),
            connection,
            number,
        };
        let length = payload.len();
        header.prepend(&mut payload);
        let head = payload.len() - length;
        let (head, text) = payload.split_at_mut(head);
        let tag = self
            .seal
            .cipher
            .seal_in_place_separate_tag(nonce(sequence), Aad::from(head), text)
            .expect("a datagram is shorter than 2^38 bytes");
        payload.append(tag.as_ref());
        Ok(payload)
    }

    /// Opens a datagram. Unless it is authentic and new, nothing changes but the count of
    /// forgeries.
    pub(crate) fn open(&mut self, bytes: &[u8], to_server: bool) -> Result<Opened, Rejected> {
        let (header, sealed) =
            Header::read(bytes, to_server).map_err(|HeaderError| Rejected::Malformed)?;
        if sealed.len() < TAG_LEN {
            return Err(Rejected::Malformed);
        }
        let sequence = header.number.nearest(self.replay.end());
        if self.replay.is_behind(sequence) {
            return Err(Rejected::Late);
        }
        if !self.replay.is_new(sequence) {
            return Err(Rejected::Replayed);
        }
        let same_phase = header.phase == phase(self.open_epoch);
        let is_next = !same_phase && sequence >= self.open_since;
        let key = match (same_phase, is_next) {
            (true, _) => &self.open,
            (false, true) => &self.open_next,
            (false, false) => self.open_before.as_ref().ok_or(Rejected::Forged)?,
        };
        let mut payload = sealed.to_vec();
        let head = &bytes[..bytes.len() - sealed.len()];
        let opened = key
            .cipher
            .open_in_place(nonce(sequence), Aad::from(head), &mut payload)
            .map(|text| text.len());
        let Ok(length) = opened else {
            self.forged_with_key = self.forged_with_key.saturating_add(1);
            return Err(Rejected::Forged);
        };
        payload.truncate(length);

        let newest = sequence >= self.replay.end();
        self.replay.accept(sequence);
        if is_next {
            let next = self.open_next.next();
            let now = std::mem::replace(&mut self.open_next, next);
            self.open_before = Some(std::mem::replace(&mut self.open, now));
            self.open_epoch += 1;
            self.open_since = sequence;
            self.forged_with_key = 0;
        } else if same_phase {
            self.open_since = self.open_since.min(sequence);
        }
        // In a late packet, the phase may mean the key from two updates ago. In the newest it is
        // that of the present key or of the one before, which the other end had to have first.
        if newest && header.other_phase == phase(self.seal_epoch) {
            self.seal_settled = true;
        }
        Ok(Opened {
            kind: header.kind,
            sequence,
            payload,
            newest,
        })
    }

    /// The packet number of the next packet.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// How many bytes the number of the next packet takes if it is of this kind, and if no
    /// [update of the key](Self::rekey_if_due) is due.
    pub(crate) fn number_bytes(&self, kind: PacketKind) -> usize {
        self.next_number(kind).bytes
    }

    fn next_number(&self, kind: PacketKind) -> ShortNumber {
        let (phase, other_phase) = (phase(self.seal_epoch), phase(self.open_epoch));
        let keeps_order = self.acknowledged >= Some(TRIED) && !self.is_reordered;
        let may_be_short = keeps_order && Header::may_be_short(kind, phase, other_phase);
        ShortNumber::of(self.next_sequence, self.acknowledged, may_be_short)
    }

    /// The other end has received the packet before number `end`, which a packet of its own says.
    /// `is_reordered` if packets overtook each other so far.
    pub(crate) fn on_acknowledged(&mut self, end: u64, is_reordered: bool) {
        self.acknowledged = self.acknowledged.max(Some(end));
        self.is_reordered = is_reordered;
    }

    /// How many packet numbers the other end has used, as far as its packets arrived.
    pub(crate) fn numbers_seen(&self) -> u64 {
        self.replay.end()
    }

    /// Whether the number of forgeries under one key reached the limit of ChaCha20-Poly1305 (RFC
    /// 9001, section 6.6).
    pub(crate) fn is_worn_out(&self) -> bool {
        self.forged_with_key >= FORGERIES_PER_KEY
    }

    /// Updates the key if it is time and the other end can follow. The other end has the next key
    /// but never the one after that, so it must have received the present one first.
    pub(crate) fn rekey_if_due(&mut self, now: Time) {
        let due = self.sealed_with_key >= self.rekeying.packets
            || now.since(self.key_since) >= self.rekeying.lifetime;
        if due && self.seal_settled {
            self.seal = self.seal.next();
            self.seal_epoch += 1;
            self.seal_settled = false;
            self.sealed_with_key = 0;
            self.key_since = now;
        }
    }
}

fn phase(epoch: u64) -> bool {
    epoch % 2 == 1
}

pub(crate) const TAG_LEN: usize = 16;
/// After so many packets, a path on which none was overtaken by many others is likely to keep them
/// in order.
const TRIED: u64 = 100;
const FORGERIES_PER_KEY: u64 = 1 << 36;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use zeroize::Zeroizing;

    use super::*;

    fn pair(packets: u64) -> (PacketProtection, PacketProtection) {
        let rekeying = Rekeying {
            packets,
            lifetime: Duration::MAX,
        };
        let (up, down) = (Zeroizing::new([1; 32]), Zeroizing::new([2; 32]));
        (
            PacketProtection::new(up.clone(), down.clone(), rekeying, Time::default()),
            PacketProtection::new(down, up, rekeying, Time::default()),
        )
    }

    /// Two ends that have received this many packets of each other.
    fn after(packets: u64) -> (PacketProtection, PacketProtection) {
        let (mut client, mut server) = pair(u64::MAX);
        for end in [&mut client, &mut server] {
            end.next_sequence = packets;
            end.replay.accept(packets - 1);
            end.on_acknowledged(packets, false);
        }
        (client, server)
    }

    fn up(protection: &mut PacketProtection) -> Vec<u8> {
        let payload = b"up".to_vec().into();
        let sealed = protection.seal(PacketKind::Frames, Some(9), payload, Time::default());
        sealed.expect("numbers are left").into_vec()
    }

    fn down(protection: &mut PacketProtection) -> Vec<u8> {
        let payload = b"down".to_vec().into();
        let sealed = protection.seal(PacketKind::Frames, None, payload, Time::default());
        sealed.expect("numbers are left").into_vec()
    }

    /// Fails if `nearest` does not carry (`expected & !mask | low`), or if a number travels whole
    /// although the packets before it are acknowledged.
    #[test]
    fn numbers_pass_the_wrap_of_what_travels_of_them() {
        let (mut client, mut server) = pair(u64::MAX);
        let starts = [251, 65_531, u64::from(u32::MAX) - 5, (1 << 40) - 5];
        for start in starts.into_iter().chain([u64::MAX - 40]) {
            client.next_sequence = start;
            client.on_acknowledged(start, false);
            assert_eq!(up(&mut client).len(), 1 + 8 + 2 + 16);
            client.next_sequence = start;
            server.replay.accept(start - 1);
            let mut packets: Vec<_> = (0..20).map(|_| up(&mut client)).collect();
            packets.swap(3, 12);
            for (sent, packet) in packets.iter().enumerate() {
                let opened = server.open(packet, true).expect("authentic and new");
                let expected = match sent {
                    3 => 12,
                    12 => 3,
                    other => other as u64,
                };
                assert_eq!(opened.sequence, start + expected);
                assert_eq!(server.open(packet, true).err(), Some(Rejected::Replayed));
            }
        }
    }

    /// Fails if `seal` does not check how many packet numbers are left: it would overflow.
    #[test]
    fn when_numbers_run_out_nothing_more_is_sealed() {
        let (mut client, mut server) = pair(u64::MAX);
        client.next_sequence = u64::MAX - 1;
        client.on_acknowledged(u64::MAX - 1, false);
        server.replay.accept(u64::MAX - 2);
        let last = up(&mut client);
        assert_eq!(
            server.open(&last, true).expect("the last").sequence,
            u64::MAX - 1
        );
        let more = client.seal(
            PacketKind::Frames,
            Some(9),
            PacketBuffer::default(),
            Time::default(),
        );
        assert_eq!(more.err(), Some(Exhausted));
    }

    /// Fails if `rekey_if_due` does not wait for the other end (`if due {`): after a blackout that
    /// would be two keys behind.
    #[test]
    fn keys_change_often_and_a_blackout_does_not_matter() {
        let (mut client, mut server) = pair(3);
        for round in 0..100 {
            for _ in 0..(if round % 10 == 9 { 500 } else { 0 }) {
                up(&mut client);
                down(&mut server);
            }
            for _ in 0..4 {
                let packet = up(&mut client);
                assert_eq!(server.open(&packet, true).expect("in order").payload, b"up");
                let packet = down(&mut server);
                assert_eq!(
                    client.open(&packet, false).expect("in order").payload,
                    b"down"
                );
            }
        }
        assert!(client.seal_epoch > 50 && server.seal_epoch > 50);
        assert_eq!(client.seal_epoch, server.open_epoch);
    }

    /// Fails if a header is short although the two phases differ (`may_be_short` always true for
    /// frames): its only bit would be read as both.
    #[test]
    fn headers_are_longer_while_one_end_has_another_key() {
        let (mut client, mut server) = after(100);
        assert_eq!(down(&mut server).len(), 1 + 4 + 16);
        client.seal_epoch = 1;
        client.seal = client.seal.next();
        let packet = up(&mut client);
        assert_eq!(packet.len(), 1 + 8 + 1 + 2 + 16);
        assert!(server.open(&packet, true).is_ok());
        assert_eq!(down(&mut server).len(), 1 + 1 + 4 + 16);
    }

    /// Fails if headers are short before it is known whether packets overtake each other (`TRIED` of
    /// 0), or although they do (`is_reordered` left out).
    #[test]
    fn headers_are_longer_where_packets_overtake_each_other() {
        let (mut client, _) = after(99);
        assert_eq!(up(&mut client).len(), 1 + 8 + 1 + 2 + 16);
        client.on_acknowledged(100, false);
        assert_eq!(up(&mut client).len(), 1 + 8 + 2 + 16);
        client.on_acknowledged(101, true);
        assert_eq!(up(&mut client).len(), 1 + 8 + 1 + 2 + 16);
    }

    /// Fails if the previous key is not kept (`self.open_before = None`).
    #[test]
    fn a_packet_that_a_change_of_keys_overtook_is_still_read() {
        let (mut client, mut server) = pair(2);
        let packets: Vec<_> = (0..4).map(|_| up(&mut client)).collect();
        assert_eq!(client.seal_epoch, 1);
        for packet in packets.iter().rev() {
            assert!(server.open(packet, true).is_ok());
        }
    }

    /// Fails if forgeries are not counted, or if the count survives a key update.
    #[test]
    fn a_key_wears_out_by_forgeries_and_a_new_one_does_not_remember() {
        let (mut client, mut server) = pair(2);
        let mut forged = up(&mut client);
        *forged.last_mut().expect("not empty") ^= 1;
        server.forged_with_key = FORGERIES_PER_KEY - 1;
        assert!(!server.is_worn_out());
        assert_eq!(server.open(&forged, true).err(), Some(Rejected::Forged));
        assert!(server.is_worn_out());
        for _ in 0..3 {
            let packet = up(&mut client);
            assert!(server.open(&packet, true).is_ok());
        }
        assert!(!server.is_worn_out());
    }

    proptest! {
        /// Fails if the header is not authenticated (`Aad::from(&[])`).
        #[test]
        fn no_changed_bit_is_accepted(bit in 0usize..(9 + 2 + 16) * 8) {
            let (mut client, mut server) = after(100);
            let honest = up(&mut client);
            let mut packet = honest.clone();
            packet[bit / 8] ^= 1 << (bit % 8);
            // The server finds the connection by its id before this; here there is only one.
            prop_assert!(server.open(&packet, true).is_err());
            prop_assert!(server.open(&honest, true).is_ok());
        }

        /// Fails if fewer bits travel than the packets in flight require (`0..=0xff` in
        /// `ShortNumber::of`, `MAX_SHORT` of 10), or if nothing is left for packets that are
        /// overtaken (`0..=0x7f`, `mask / 2` for all in `nearest`).
        #[test]
        fn a_number_is_found_again_from_what_the_other_end_has(
            acknowledged in prop_oneof![0u64..1000, 0u64..1 << 48],
            in_flight in prop_oneof![0u64..20, 0u64..200, 0u64..70_000, 0u64..1 << 28],
            may_be_short in any::<bool>(),
            received in any::<prop::sample::Index>(),
            overtaken in any::<prop::sample::Index>(),
        ) {
            let sequence = acknowledged + in_flight;
            let number = ShortNumber::of(sequence, Some(acknowledged), may_be_short);
            // Anything from the newest acknowledged on may be the newest that has arrived.
            let expected = acknowledged + received.index(in_flight as usize + 1) as u64;
            prop_assert_eq!(number.nearest(expected), sequence);
            let most = match number.bytes {
                0 => 22,
                _ => 3 * in_flight as usize + 2,
            };
            let overtaken = overtaken.index(most + 1) as u64;
            prop_assert_eq!(number.nearest(sequence + 1 + overtaken), sequence);
        }

        /// Fails if the first packets, of which nothing is known to have arrived, have fewer bytes
        /// of their number.
        #[test]
        fn before_anything_is_acknowledged_four_bytes_travel(sequence in 0u64..1 << 31) {
            let number = ShortNumber::of(sequence, None, true);
            prop_assert_eq!(number.bytes, 4);
            prop_assert_eq!(number.nearest(0), sequence);
        }
    }
}
