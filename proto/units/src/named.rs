//! Search for a number that a list contains twice.

/// The first number that a list of numbers below `bound` contains for the second time; `None`: all are different.
#[must_use]
pub fn find_repeated(list: &[u32], bound: usize) -> Option<u32> {
    // Most lists ascend; one of hundreds that MEASY matched is in no order.
    if list.windows(2).fold(true, |ascends, pair| ascends & (pair[0] < pair[1])) {
        return None;
    }
    let mut words = vec![0_u64; bound.div_ceil(64)];
    let is_new = |number: &u32| {
        let Some(word) = words.get_mut(*number as usize / 64) else { return true };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    };
    let mut rest = list.iter().copied().skip_while(is_new);
    rest.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_a_number_once_or_twice() {
        for once in [&[][..], &[7], &[0, 1, 63, 64, 129], &[129, 0, 63, 64, 1]] {
            assert_eq!(find_repeated(once, 130), None, "{once:?}");
        }
        for (list, number) in [
            (&[5, 5][..], 5),
            (&[129, 0, 63, 64, 0, 129], 0),
            (&[1, 2, 3, 3, 2], 3),
            (&[64, 0, 128, 64], 64),
        ] {
            assert_eq!(find_repeated(list, 130), Some(number), "{list:?}");
        }
    }
}
