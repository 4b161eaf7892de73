//! Protocol buffers as tests write them down: fields by number.

fn varint(v: u64) -> Vec<u8> {
    if v < 128 { vec![v as u8] } else { [vec![v as u8 | 0x80], varint(v >> 7)].concat() }
}

/// A field of bytes: a text, or a message.
pub fn field(number: u64, inside: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(inside.len() as u64), inside.to_vec()].concat()
}

pub fn int(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}
