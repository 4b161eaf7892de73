//! The fewest insertions and deletions that make one row of another (Myers, "An O(ND) Difference Algorithm and Its
//! Variations", 1986), where these are few: quick for long rows that hardly differ.

/// The pairs that stay, in order, where at most `most` elements of both come or go; `same` says which are equal.
pub(super) fn shortest(
    n: usize,
    m: usize,
    most: usize,
    same: impl Fn(usize, usize) -> bool,
) -> Option<Vec<(usize, usize)>> {
    let most = most as isize;
    // How far one gets in the first row on each diagonal (`x - y`), after so many came or went.
    let mut far: Vec<Vec<usize>> = Vec::new();
    let at = |far: &[Vec<usize>], d: isize, k: isize| far[d as usize][((k + d) / 2) as usize];
    for d in 0..=most {
        let mut row = Vec::with_capacity(d as usize + 1);
        for k in (-d..=d).step_by(2) {
            let from = if d == 0 { 0 } else { begin(&far, d, k, &at).0 };
            let mut x = from;
            while x < n && x.wrapping_sub_signed(k) < m && same(x, x.wrapping_sub_signed(k)) {
                x += 1;
            }
            row.push(x);
            if x >= n && x.wrapping_sub_signed(k) >= m {
                far.push(row);
                return Some(back(&far, d, k, &at));
            }
        }
        far.push(row);
    }
    None
}

type At<'a> = &'a dyn Fn(&[Vec<usize>], isize, isize) -> usize;

/// Where diagonal `k` is entered after `d`, and from which diagonal.
fn begin(far: &[Vec<usize>], d: isize, k: isize, at: At) -> (usize, isize) {
    let (down, right) = (k + 1, k - 1);
    if k == -d || k != d && at(far, d - 1, right) < at(far, d - 1, down) {
        (at(far, d - 1, down), down)
    } else {
        (at(far, d - 1, right) + 1, right)
    }
}

/// The pairs on the way that led there.
fn back(far: &[Vec<usize>], d: isize, k: isize, at: At) -> Vec<(usize, usize)> {
    let (mut pairs, mut k) = (Vec::new(), k);
    for d in (0..=d).rev() {
        let (from, before) = if d == 0 { (0, 0) } else { begin(far, d, k, at) };
        pairs.extend((from..at(far, d, k)).rev().map(|x| (x, x.wrapping_sub_signed(k))));
        k = before;
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use super::shortest;

    /// The most pairs that there can be in order, by trying all.
    fn longest(a: &[u8], b: &[u8]) -> usize {
        let mut rest = vec![vec![0; b.len() + 1]; a.len() + 1];
        for x in (0..a.len()).rev() {
            for y in (0..b.len()).rev() {
                rest[x][y] = match a[x] == b[y] {
                    true => rest[x + 1][y + 1] + 1,
                    false => rest[x + 1][y].max(rest[x][y + 1]),
                };
            }
        }
        rest[0][0]
    }

    #[test]
    fn as_many_stay_as_can() {
        let mut random = fastrand::Rng::with_seed(15);
        for _ in 0..3000 {
            let a: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..4)).collect();
            let mut b = a.clone();
            for _ in 0..random.usize(..6) {
                let place = random.usize(..b.len() + 1);
                match random.bool() || place == b.len() {
                    true => b.insert(place, random.u8(..4)),
                    false => {
                        b.remove(place);
                    }
                }
            }
            let most = random.usize(..12);
            let apart = a.len() + b.len() - 2 * longest(&a, &b);
            let found = shortest(a.len(), b.len(), most, |x, y| a[x] == b[y]);
            assert_eq!(found.is_some(), apart <= most, "{a:?} {b:?}");
            let Some(pairs) = found else { continue };
            assert_eq!(pairs.len(), longest(&a, &b));
            assert!(pairs.iter().all(|&(x, y)| a[x] == b[y]));
            assert!(pairs.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 < w[1].1));
        }
    }
}
