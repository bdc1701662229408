//! Tells messages about a client's current world from late ones about an earlier world.

/// Counts the worlds that a client has entered. Messages carry its last four bits, by which late
/// messages of an earlier world are recognized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WorldGeneration(pub u64);

impl WorldGeneration {
    pub(crate) fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    pub(crate) fn bits(self) -> u8 {
        (self.0 % GENERATIONS) as u8
    }

    /// The generation with these bits that is nearest to this one.
    pub(crate) fn near(self, bits: u8) -> Self {
        let ahead = u64::from(bits).wrapping_sub(self.0) % GENERATIONS;
        match ahead {
            0..8 => Self(self.0.wrapping_add(ahead)),
            _ => Self(self.0.wrapping_sub(GENERATIONS - ahead)),
        }
    }
}

/// How many generations can be told apart.
const GENERATIONS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if `near` only searches ahead.
    #[test]
    fn the_nearest_is_found_on_both_sides() {
        for at in (0..40).chain([u64::MAX - 2, u64::MAX]) {
            for off in -8i64..8 {
                let other = WorldGeneration(at.wrapping_add_signed(off));
                assert_eq!(WorldGeneration(at).near(other.bits()), other);
            }
        }
    }
}
