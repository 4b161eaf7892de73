//! Texts for tests of readers: the same in every run (xorshift), so that a failure can be repeated.

/// Numbers below what it is asked for.
pub fn drawn() -> impl FnMut(usize) -> usize {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    move |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n as u64) as usize
    }
}

/// A good text with up to three pieces of other texts in it, each in the place of up to five bytes.
pub fn spoilt(good: &str, pieces: &[&str], below: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut text = good.as_bytes().to_vec();
    for _ in 0..1 + below(3) {
        let (at, piece) = (below(text.len()), pieces[below(pieces.len())].as_bytes());
        let end = (at + below(6)).min(text.len());
        text.splice(at..end, piece.iter().copied());
    }
    text
}
