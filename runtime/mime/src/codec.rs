//! Length-prefixed binary encoding: little-endian integers, strings and lists with a u32 length.
use crate::{Bundle, Content};
use std::io;

#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u8(&mut self, v: u8) {
        self.0.push(v);
    }
    pub fn u32(&mut self, v: u32) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    pub fn u64(&mut self, v: u64) {
        self.0.extend_from_slice(&v.to_le_bytes());
    }
    pub fn bool(&mut self, v: bool) {
        self.u8(v as u8);
    }
    pub fn bytes(&mut self, v: &[u8]) {
        self.u32(v.len() as u32);
        self.0.extend_from_slice(v);
    }
    pub fn str(&mut self, v: &str) {
        self.bytes(v.as_bytes());
    }
    pub fn list<T>(&mut self, v: &[T], mut each: impl FnMut(&mut Writer, &T)) {
        self.u32(v.len() as u32);
        v.iter().for_each(|x| each(self, x));
    }
    pub fn option<T>(&mut self, v: &Option<T>, each: impl FnOnce(&mut Writer, &T)) {
        self.bool(v.is_some());
        if let Some(x) = v {
            each(self, x);
        }
    }
    pub fn bundle(&mut self, v: &Bundle) {
        self.list(&v.entries, |w, (mime, content)| {
            w.str(mime);
            match content {
                Content::Text(t) => {
                    w.u8(0);
                    w.str(t);
                }
                Content::Bytes(b) => {
                    w.u8(1);
                    w.bytes(b);
                }
            }
        });
        self.option(&v.lasting, |w, text| w.str(text));
    }
}

pub(crate) struct Reader<'a>(pub &'a [u8]);

pub(crate) fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed frame: {what}"))
}

impl Reader<'_> {
    fn take(&mut self, n: usize) -> io::Result<&[u8]> {
        if self.0.len() < n {
            return Err(bad("it ends too early"));
        }
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        Ok(head)
    }
    pub fn u8(&mut self) -> io::Result<u8> {
        Ok(self.take(1)?[0])
    }
    pub fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().unwrap()))
    }
    pub fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().unwrap()))
    }
    pub fn bool(&mut self) -> io::Result<bool> {
        Ok(self.u8()? != 0)
    }
    pub fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let n = self.u32()? as usize;
        Ok(self.take(n)?.to_vec())
    }
    /// Text; bytes that are not UTF-8 are shown as replacement characters rather than refused.
    pub fn str(&mut self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }
    pub fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        let n = self.u32()?;
        (0..n).map(|_| each(self)).collect()
    }
    pub fn option<T>(&mut self, each: impl FnOnce(&mut Self) -> io::Result<T>) -> io::Result<Option<T>> {
        Ok(if self.bool()? { Some(each(self)?) } else { None })
    }
    pub fn bundle(&mut self) -> io::Result<Bundle> {
        let entries = self.list(|r| {
            let mime = r.str()?;
            let content = match r.u8()? {
                0 => Content::Text(r.str()?),
                1 => Content::Bytes(r.bytes()?),
                _ => return Err(bad("unknown kind of content")),
            };
            Ok((mime, content))
        })?;
        let lasting = self.option(|r| r.str())?;
        Ok(Bundle { entries, lasting })
    }
}
