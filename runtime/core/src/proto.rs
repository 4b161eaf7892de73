//! Reads protocol buffers without their schema: fields by number, checked for length, nothing copied.

/// The fields of one message, in order.
#[derive(Default)]
pub struct Message<'a>(Vec<(u64, Value<'a>)>);

#[derive(Clone, Copy)]
enum Value<'a> {
    Varint(u64),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    /// `None` when the bytes are no message.
    pub fn read(mut bytes: &'a [u8]) -> Option<Message<'a>> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let value = match key & 7 {
                0 => Value::Varint(varint(&mut bytes)?),
                1 => Value::Fixed64(take(&mut bytes, 8)?.try_into().ok()?),
                2 => {
                    let n = usize::try_from(varint(&mut bytes)?).ok()?;
                    Value::Bytes(take(&mut bytes, n)?)
                }
                5 => Value::Fixed32(take(&mut bytes, 4)?.try_into().ok()?),
                _ => return None,
            };
            fields.push((key >> 3, value));
        }
        Some(Message(fields))
    }

    fn all(&self, field: u64) -> impl Iterator<Item = Value<'a>> + '_ {
        self.0.iter().filter(move |f| f.0 == field).map(|f| f.1)
    }

    pub fn has(&self, field: u64) -> bool {
        self.all(field).next().is_some()
    }

    /// An integer; 0 where it is missing.
    pub fn int(&self, field: u64) -> i64 {
        self.all(field).last().map_or(0, |v| if let Value::Varint(v) = v { v as i64 } else { 0 })
    }

    pub fn bytes(&self, field: u64) -> &'a [u8] {
        self.all(field).last().map_or(&[], |v| if let Value::Bytes(b) = v { b } else { &[] })
    }

    pub fn str(&self, field: u64) -> &'a str {
        std::str::from_utf8(self.bytes(field)).unwrap_or("")
    }

    /// Repeated texts.
    pub fn strings(&self, field: u64) -> Vec<String> {
        let text = |v| if let Value::Bytes(b) = v { Some(String::from_utf8_lossy(b).into_owned()) } else { None };
        self.all(field).filter_map(text).collect()
    }

    /// A message; an empty one where it is missing or broken.
    pub fn message(&self, field: u64) -> Message<'a> {
        Message::read(self.bytes(field)).unwrap_or_default()
    }

    pub fn messages(&self, field: u64) -> Vec<Message<'a>> {
        let read = |v| if let Value::Bytes(b) = v { Message::read(b) } else { None };
        self.all(field).filter_map(read).collect()
    }

    /// Repeated integers, packed or not.
    pub fn ints(&self, field: u64) -> Vec<i64> {
        let mut out = Vec::new();
        for v in self.all(field) {
            match v {
                Value::Varint(v) => out.push(v as i64),
                Value::Bytes(mut b) => {
                    while let Some(v) = varint(&mut b) {
                        out.push(v as i64);
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// Repeated floats, packed or not.
    pub fn f32s(&self, field: u64) -> Vec<f32> {
        let mut out = Vec::new();
        for v in self.all(field) {
            match v {
                Value::Fixed32(b) => out.push(f32::from_le_bytes(b)),
                Value::Bytes(b) => {
                    out.extend(b.chunks_exact(4).map(|c| f32::from_le_bytes([c[0], c[1], c[2], c[3]])));
                }
                _ => {}
            }
        }
        out
    }

    /// Repeated doubles, packed or not.
    pub fn f64s(&self, field: u64) -> Vec<f64> {
        let mut out = Vec::new();
        for v in self.all(field) {
            match v {
                Value::Fixed64(b) => out.push(f64::from_le_bytes(b)),
                Value::Bytes(b) => {
                    let eight = |c: &[u8]| f64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]);
                    out.extend(b.chunks_exact(8).map(eight));
                }
                _ => {}
            }
        }
        out
    }
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(head)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut out = 0u64;
    for shift in (0..70).step_by(7) {
        let byte = take(bytes, 1)?[0];
        out |= ((byte & 0x7f) as u64).checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(out);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_broken_bytes_refused() {
        // 1: 150, 2: "hi", 3: packed [1, 2], 3: 3
        let bytes = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1a, 2, 1, 2, 0x18, 3];
        let m = Message::read(&bytes).unwrap();
        assert_eq!((m.int(1), m.str(2), m.ints(3)), (150, "hi", vec![1, 2, 3]));
        assert!(m.has(3) && !m.has(4) && m.int(4) == 0);
        assert!(Message::read(&bytes[..6]).is_none(), "cut off");
        assert!(Message::read(&[0x0b]).is_none(), "a group");
        assert!(Message::read(&[0xff; 12]).is_none(), "a varint without end");
        assert_eq!(Message::read(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).unwrap().int(1), -1);
    }
}
