//! Hashes that name files and crates: the same tomorrow and on another machine.
use sha2::{Digest, Sha256};

/// FNV-1a: the same in every version of the standard library, so that names may be kept on disk.
pub struct Fnv(pub u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    pub fn add(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.0 = (self.0 ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// The crate of a cell's statements whose source is that file, where its name had to be known before its text.
pub fn crate_of(file: &str) -> String {
    let mut hash = Fnv::default();
    hash.add(file.as_bytes());
    format!("cell_{:016x}", hash.0)
}

/// Eight bytes of SHA-256, in hexadecimal.
pub fn short_hash(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect()
}
