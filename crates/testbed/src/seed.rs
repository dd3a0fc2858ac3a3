//! Repeatable chance.

/// A small generator (splitmix64) that starts from a number which a failing test prints.
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// From this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// From `LEASEHOLD_SEED`, or else the given number.
    pub fn from_env(otherwise: u64) -> Self {
        let named = std::env::var("LEASEHOLD_SEED").ok();
        Self(named.map_or(otherwise, |text| text.parse().expect("LEASEHOLD_SEED is a whole number")))
    }

    /// The number it is at; before the first draw, the one that repeats the run.
    pub fn number(&self) -> u64 {
        self.0
    }

    /// Another generator for a part of the test.
    #[must_use]
    pub fn part(&self, number: u64) -> Self {
        let mut part = Self(self.0 ^ number.wrapping_mul(0xA076_1D64_78BD_642F));
        part.below(1);
        part
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A random UUID, as a client would choose for a lease.
    pub fn uuid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        let (a, b, c) = (high >> 32, (high >> 16) & 0xFFFF, high & 0xFFF);
        let (d, e) = ((low >> 48) & 0x3FFF | 0x8000, low & 0xFFFF_FFFF_FFFF);
        format!("{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_has_the_form_of_a_random_one() {
        let uuid = Seed(7).uuid();
        assert_eq!(uuid.len(), 36);
        assert_eq!(&uuid[14..15], "4");
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"));
        assert_eq!(uuid, Seed(7).uuid(), "the same seed gives the same ids");
    }
}
