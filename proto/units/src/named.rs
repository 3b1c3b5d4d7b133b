//! Whether a list names a number twice.

/// The numbers below a bound that were named so far.
#[derive(Clone, Debug)]
pub struct Named {
    words: Vec<u64>,
}

impl Named {
    /// None yet, of those below `bound`.
    #[must_use]
    pub fn below(bound: usize) -> Self {
        Self { words: vec![0; bound.div_ceil(64)] }
    }

    /// Names one; whether it is the first time. One past the bound never is.
    pub fn is_new(&mut self, number: u32) -> bool {
        let Some(word) = self.words.get_mut(number as usize / 64) else { return false };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_new_once() {
        let mut named = Named::below(130);
        let all = [129, 0, 63, 64, 1];
        assert!(all.iter().all(|&n| named.is_new(n)));
        assert!(!all.iter().any(|&n| named.is_new(n)));
        assert!(!named.is_new(4_000_000_000));
    }
}
