//! Layouts: in which order of dimensions a device keeps an array, and back to row-major on the host.
//!
//! The C API has a `host_layout` to ask for any order, but XLA's CPU client copies the bytes as they lie whatever is asked.
//! So we ask for the device's own order, as JAX does on every platform, and reorder here.
use crate::api::{self, Handle, Slice};
use crate::c::{self, Call, PJRT_Buffer, Struct};

/// The dimensions of an array on a device from the fastest to the slowest; `None` is row-major.
pub(crate) type MinorToMajor = Option<Box<[i64]>>;

/// The order in which the device keeps a buffer. A plugin that cannot tell is taken to be row-major.
pub(crate) fn of_buffer(buffer: &Handle<PJRT_Buffer>, dims: &[i64]) -> MinorToMajor {
    // With at most one dimension longer than 1 every order is the same.
    if dims.iter().filter(|d| **d != 1).count() <= 1 || dims.contains(&0) {
        return None;
    }
    let call = c::PJRT_Buffer_GetMemoryLayout_Args::NAME;
    let mut args = c::PJRT_Buffer_GetMemoryLayout_Args {
        buffer: buffer.raw(),
        // What the plugin leaves alone is not taken for an answer.
        layout: c::PJRT_Buffer_MemoryLayout { r#type: u32::MAX, ..Struct::zeroed() },
        ..Struct::zeroed()
    };
    // SAFETY: the buffer is alive, and so is its layout while it is copied.
    let order = unsafe {
        buffer.api.call(&mut args).ok()?;
        if args.layout.r#type != c::LAYOUT_TILED {
            return None;
        }
        let tiled = args.layout.tiled;
        let (at, len) = (tiled.minor_to_major, tiled.minor_to_major_size);
        api::list(Slice { call, what: "the layout", at, len }).ok()?
    };
    let row_major = order.iter().eq((0..dims.len() as i64).rev().collect::<Vec<_>>().iter());
    if row_major || !is_permutation(order, dims.len()) { None } else { Some(order.into()) }
}

fn is_permutation(order: &[i64], rank: usize) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.iter().copied().eq(0..rank as i64)
}

/// Copies an array that lies dense in the order `minor_to_major` to row-major. Both slices have the size that `dims` and
/// `element` bytes give.
pub(crate) fn to_row_major(src: &[u8], dst: &mut [u8], element: usize, dims: &[i64], minor_to_major: &[i64]) {
    match element {
        1 => reorder::<1>(src, dst, dims, minor_to_major),
        2 => reorder::<2>(src, dst, dims, minor_to_major),
        4 => reorder::<4>(src, dst, dims, minor_to_major),
        8 => reorder::<8>(src, dst, dims, minor_to_major),
        _ => reorder::<16>(src, dst, dims, minor_to_major),
    }
}

fn reorder<const N: usize>(src: &[u8], dst: &mut [u8], dims: &[i64], minor_to_major: &[i64]) {
    let (src, dst) = (src.as_chunks::<N>().0, dst.as_chunks_mut::<N>().0);
    let mut strides = vec![0; dims.len()];
    let mut stride = 1;
    for dim in minor_to_major {
        strides[*dim as usize] = stride;
        stride *= dims[*dim as usize] as usize;
    }
    let (Some(row), Some(step)) = (dims.last(), strides.last()) else { return };
    let (row, outer) = (*row as usize, dims.len() - 1);
    let mut index = vec![0; outer];
    let mut start = 0;
    for row in dst.chunks_exact_mut(row.max(1)) {
        for (i, element) in row.iter_mut().enumerate() {
            *element = src[start + i * step];
        }
        // The next row: count up, the last of the outer dimensions fastest.
        for dim in (0..outer).rev() {
            index[dim] += 1;
            start += strides[dim];
            if index[dim] < dims[dim] {
                break;
            }
            start -= strides[dim] * dims[dim] as usize;
            index[dim] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dims: &[i64], minor_to_major: &[i64], src: &[u8], expected: &[u8]) {
        for element in [1, 2, 4, 8, 16] {
            let widen = |bytes: &[u8]| bytes.iter().flat_map(|b| vec![*b; element]).collect::<Vec<u8>>();
            let mut dst = vec![0; src.len() * element];
            to_row_major(&widen(src), &mut dst, element, dims, minor_to_major);
            assert_eq!(dst, widen(expected), "{dims:?} {minor_to_major:?}");
        }
    }

    #[test]
    fn every_order_becomes_row_major() {
        check(&[2, 3], &[0, 1], &[1, 4, 2, 5, 3, 6], &[1, 2, 3, 4, 5, 6]);
        check(&[2, 3], &[1, 0], &[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6]);
        // [a][b][c] = 6a + 2b + c, kept with b fastest, then a, then c.
        check(&[2, 3, 2], &[1, 0, 2], &[0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11], &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
        check(&[5], &[0], &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_permutation_names_every_dimension_once() {
        assert!(is_permutation(&[2, 0, 1], 3) && is_permutation(&[], 0));
        for bad in [&[0, 0][..], &[0], &[0, 2], &[-1, 0], &[0, 1, 2]] {
            assert!(!is_permutation(bad, 2), "{bad:?}");
        }
    }
}
