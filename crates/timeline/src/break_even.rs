//! When keyframes are cheaper than sending every value all the time: section 4 of the keyframe protocol's
//! document, as functions.

/// Sending all values at a constant rate, in packets as full as they can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BruteForce {
    /// How many properties there are.
    pub properties: u64,
    /// How many bytes a value takes.
    pub bytes_per_value: u64,
    /// How many times a second each is sent.
    pub updates_per_second: u64,
    /// What goes around the values.
    pub packets: Packets,
}

/// The overhead of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Headers of all layers, in bytes.
    pub header: u64,
    /// How many bytes of values one holds.
    pub payload: u64,
}

impl Packets {
    /// UDP over IPv4 over Ethernet, as full as a path of 1500 bytes allows.
    pub const UDP: Self = Self {
        header: 14 + 20 + 8,
        payload: 1500 - 20 - 8,
    };
}

/// What the keyframe protocol takes for a keyframe over TCP, IPv4 and Ethernet: a packet each, of 80 bytes.
pub const KEYFRAME_PROTOCOL_BYTES: f64 = 14.0 + 20.0 + 32.0 + 14.0;

impl BruteForce {
    /// All bytes in a second, with the headers of whole packets.
    pub fn bytes_per_second(&self) -> u64 {
        let values = self.properties * self.bytes_per_value * self.updates_per_second;
        values + values.div_ceil(self.packets.payload) * self.packets.header
    }

    /// All bits in a second.
    pub fn bits_per_second(&self) -> u64 {
        8 * self.bytes_per_second()
    }

    /// The bytes in a second for one property, with its share of headers.
    pub fn bytes_per_second_and_property(&self) -> f64 {
        let values = (self.bytes_per_value * self.updates_per_second) as f64;
        values * (1.0 + self.packets.header as f64 / self.packets.payload as f64)
    }

    /// How many keyframes of a property there may be in a second before they take more than sending its
    /// value all the time, if a keyframe takes so many bytes with all headers.
    ///
    /// Take the keyframes from [`Fitter`](crate::Fitter): with fewer than this, keyframes are cheaper.
    pub fn break_even(&self, bytes_per_keyframe: f64) -> f64 {
        self.bytes_per_second_and_property() / bytes_per_keyframe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document's case: a thousand entities of three floats, ten times a second.
    const CASE: BruteForce = BruteForce {
        properties: 3000,
        bytes_per_value: 4,
        updates_per_second: 10,
        packets: Packets::UDP,
    };

    /// Equations 12 to 15. Fails if packets are not rounded up.
    #[test]
    fn brute_force_takes_988_kilobits_a_second() {
        assert_eq!(CASE.packets.header, 42);
        assert_eq!(CASE.packets.payload, 1472);
        assert_eq!(CASE.bytes_per_second(), 120_000 + 82 * 42);
        assert_eq!(CASE.bits_per_second(), 987_552);
    }

    /// Equations 17 to 20, where the overhead is cut to 2.85 %.
    #[test]
    fn keyframes_break_even_at_about_one_in_two_seconds() {
        assert_eq!(KEYFRAME_PROTOCOL_BYTES, 80.0);
        assert!((CASE.bytes_per_second_and_property() - 41.14).abs() < 0.005);
        let break_even = CASE.break_even(KEYFRAME_PROTOCOL_BYTES);
        assert!((break_even - 0.51425).abs() < 0.00005, "{break_even}");
    }
}
