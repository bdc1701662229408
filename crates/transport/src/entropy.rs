//! The source of randomness, which callers pass in.

/// A source of unpredictable random bytes: the operating system's, or a cryptographic generator
/// seeded by it. Keys are made of them, so use a deterministic generator in tests only.
///
/// Any closure that fills a slice will do:
///
/// ```
/// # fn system(_: &mut [u8]) {}
/// let mut entropy = |bytes: &mut [u8]| system(bytes);
/// let key = prescient_transport::TokenKey::generate(&mut entropy);
/// ```
pub trait Entropy {
    /// Fills all of `bytes`.
    fn fill(&mut self, bytes: &mut [u8]);
}

impl<F: FnMut(&mut [u8])> Entropy for F {
    fn fill(&mut self, bytes: &mut [u8]) {
        self(bytes);
    }
}

/// `N` random bytes.
pub(crate) fn random<const N: usize>(entropy: &mut dyn Entropy) -> [u8; N] {
    let mut bytes = [0; N];
    entropy.fill(&mut bytes);
    bytes
}
