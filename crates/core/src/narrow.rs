//! Numbers in fewer bytes than a `u64` has, for records that there are millions of.

/// The lowest `N` bytes of a number, which must have no others.
pub(crate) fn narrow<const N: usize>(number: u64) -> [u8; N] {
    let bytes = number.to_le_bytes();
    let (kept, rest) = bytes.split_at(N);
    assert!(rest.iter().all(|byte| *byte == 0), "the number fits into its bytes");
    kept.try_into().expect("so many bytes were kept")
}

/// The number that [`narrow`] was given.
pub(crate) fn wide<const N: usize>(bytes: [u8; N]) -> u64 {
    let mut number = [0; 8];
    number[..N].copy_from_slice(&bytes);
    u64::from_le_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_they_went() {
        for number in [0, 1, 255, 256, (1 << 40) - 1] {
            assert_eq!(wide(narrow::<5>(number)), number);
            assert_eq!(wide(narrow::<8>(number)), number);
        }
        assert_eq!(wide(narrow::<8>(u64::MAX)), u64::MAX);
    }

    #[test]
    #[should_panic(expected = "fits")]
    fn a_number_that_is_too_large_is_not_cut_off() {
        narrow::<5>(1 << 40);
    }
}
