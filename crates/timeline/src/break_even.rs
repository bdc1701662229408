//! The rate of keyframes up to which they are cheaper than sending every value at a constant rate: section 4
//! of the keyframe protocol's document.

/// Sends all values at a constant rate, in full packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BruteForce {
    /// The number of properties.
    pub properties: u64,
    /// The bytes of a value.
    pub bytes_per_value: u64,
    /// How often each value is sent per second.
    pub updates_per_second: u64,
    /// The packets that carry the values.
    pub packets: Packets,
}

/// The overhead of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Headers of all layers, in bytes.
    pub header: u64,
    /// The most bytes of values in a packet.
    pub payload: u64,
}

impl Packets {
    /// UDP over IPv4 over Ethernet, with an MTU of 1500 bytes.
    pub const UDP: Self = Self {
        header: 14 + 20 + 8,
        payload: 1500 - 20 - 8,
    };
}

/// The bytes of a keyframe in the keyframe protocol: a packet of its own over TCP, IPv4 and Ethernet.
pub const KEYFRAME_PROTOCOL_BYTES: f64 = 14.0 + 20.0 + 32.0 + 14.0;

impl BruteForce {
    /// Bytes per second, with the headers of whole packets.
    pub fn bytes_per_second(&self) -> u64 {
        let values = self.properties * self.bytes_per_value * self.updates_per_second;
        values + values.div_ceil(self.packets.payload) * self.packets.header
    }

    /// Bits per second.
    pub fn bits_per_second(&self) -> u64 {
        8 * self.bytes_per_second()
    }

    /// Bytes per second for one property, with its share of headers.
    pub fn bytes_per_second_and_property(&self) -> f64 {
        let values = (self.bytes_per_value * self.updates_per_second) as f64;
        values * (1.0 + self.packets.header as f64 / self.packets.payload as f64)
    }

    /// The keyframes per second and property at which both methods cost the same, for a keyframe of
    /// `bytes_per_keyframe` with all headers. If a [`Fitter`](crate::Fitter) makes fewer, keyframes are
    /// cheaper.
    pub fn break_even(&self, bytes_per_keyframe: f64) -> f64 {
        self.bytes_per_second_and_property() / bytes_per_keyframe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document's example: a thousand entities of three floats, ten times per second.
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

    /// Equations 17 to 20, which round the overhead to 2.85 %.
    #[test]
    fn keyframes_break_even_at_about_one_in_two_seconds() {
        assert_eq!(KEYFRAME_PROTOCOL_BYTES, 80.0);
        assert!((CASE.bytes_per_second_and_property() - 41.14).abs() < 0.005);
        let break_even = CASE.break_even(KEYFRAME_PROTOCOL_BYTES);
        println!("figure: {break_even:.3} keyframes/s for the document's own framing");
        assert!((break_even - 0.51425).abs() < 0.00005, "{break_even}");
    }
}
