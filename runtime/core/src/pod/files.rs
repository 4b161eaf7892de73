//! Files on the machines that have the devices: a worker reads from its own disk what it is to hold, and none of it passes the
//! controller.
use super::objects::{Buffer, Client, Device, Far, mixed, parse, refused};
use super::signal::Signal;
use super::wire::{About, Bytes, Command};
use std::io::{Read, Seek, SeekFrom};
use xlazy_mime::regular;
use xlazy_pjrt::{BufferType, Result};

/// Bytes of a file that lie together: where, and how many.
pub type Run = (u64, u64);

/// What these runs of a file are, one behind the other, and how long the file is.
pub(super) fn read(path: &str, runs: &[Run]) -> Result<(u64, Vec<u8>)> {
    let failed = |e: std::io::Error| refused(format!("cannot read {path}: {e}"));
    let mut file = regular::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if runs.iter().any(|(at, n)| at.checked_add(*n).is_none_or(|end| end > size)) {
        return Err(refused(format!(
            "{path} has {size} bytes, and more are wanted of it: it has changed since it was looked at"
        )));
    }
    let mut bytes = vec![0; runs.iter().map(|(_, n)| *n as usize).sum()];
    let mut room = &mut bytes[..];
    for (at, n) in runs {
        let (next, rest) = std::mem::take(&mut room).split_at_mut(*n as usize);
        file.seek(SeekFrom::Start(*at)).and_then(|_| file.read_exact(next)).map_err(failed)?;
        room = rest;
    }
    Ok((size, bytes))
}

/// As [`read`], as a buffer's bytes.
pub(super) fn elements(path: &str, runs: &[Run], dtype: BufferType, dims: &[i64]) -> Result<Vec<u8>> {
    let wanted = dims.iter().product::<i64>() as u64 * dtype.size() as u64;
    if runs.iter().map(|(_, n)| *n).sum::<u64>() != wanted {
        return Err(refused(format!("other than {wanted} bytes of {path} were wanted for {dtype} of {dims:?}")));
    }
    let (_, bytes) = read(path, runs)?;
    // It would be true to one program and false to the next.
    if let Some(neither) = bytes.iter().find(|b| dtype == BufferType::Pred && **b > 1) {
        return Err(refused(format!("{path} has the byte {neither} where a boolean is 0 or 1")));
    }
    Ok(bytes)
}

impl Device {
    /// The number of the machine that has it: of a pod its worker's.
    pub fn machine(&self) -> usize {
        match self {
            Device::Here(_) => 0,
            Device::Pod(pod, i) => pod.devices()[*i].worker,
        }
    }

    /// How long a file is on the device's machine, and bytes of it.
    ///
    /// Errors: what that machine says.
    pub fn read_file(&self, path: &str, run: Run) -> Result<(u64, Vec<u8>)> {
        match self {
            Device::Here(_) => read(path, &[run]),
            Device::Pod(pod, i) => {
                let about = About::File { path: path.to_owned(), at: run.0, length: run.1 };
                let (size, Bytes(bytes)) = parse(&pod.about(pod.devices()[*i].worker, about)?)?;
                Ok((size, bytes))
            }
        }
    }
}

impl Client {
    /// A buffer whose bytes are runs of a file on the device's machine. Of a pod, what that machine says against it is told where
    /// the value is read.
    pub fn buffer_from_file(
        &self,
        path: &str,
        runs: Vec<Run>,
        dtype: BufferType,
        dims: &[i64],
        device: &Device,
    ) -> Result<Buffer> {
        match (self, device) {
            (Client::Here(_), Device::Here(_)) => {
                self.buffer_from_host(&elements(path, &runs, dtype, dims)?, dtype, dims, device)
            }
            (Client::Pod(pod), Device::Pod(_, index)) => {
                let place = &pod.devices()[*index];
                pod.room(place.worker)?;
                let far = Far::new(pod, *index, dtype, dims.into(), Signal::come());
                let (path, dims) = (path.to_owned(), dims.to_vec());
                let load = Command::Read { buffer: far.id, device: place.local, dtype: dtype as u32, dims, path, runs };
                pod.tell(place.worker, &load)?;
                Ok(Buffer::Pod(far))
            }
            _ => Err(mixed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_file_are_read_and_what_is_none_is_refused() {
        let path = std::env::temp_dir().join(format!("xlazy-runs-{}", std::process::id()));
        std::fs::write(&path, [0, 1, 2, 3, 4, 5]).unwrap();
        let name = path.to_str().unwrap();
        assert_eq!(read(name, &[(4, 2), (0, 1), (6, 0)]).unwrap(), (6, vec![4, 5, 0]));
        for runs in [&[(5, 2)][..], &[(0, 1), (7, 0)], &[(u64::MAX, 2)]] {
            assert!(read(name, runs).unwrap_err().message.contains("has 6 bytes"), "{runs:?}");
        }
        let of = |runs: &[Run], dtype| elements(name, runs, dtype, &[2]).map_err(|e| e.message);
        assert_eq!(of(&[(2, 1), (5, 1)], BufferType::U8), Ok(vec![2, 5]));
        assert_eq!(of(&[(0, 2)], BufferType::Pred), Ok(vec![0, 1]));
        assert!(of(&[(1, 2)], BufferType::Pred).unwrap_err().contains("the byte 2 where a boolean is 0 or 1"));
        assert!(of(&[(1, 3)], BufferType::U8).unwrap_err().contains("other than 2 bytes"));
        std::fs::remove_file(&path).unwrap();
        assert!(read(name, &[]).unwrap_err().message.starts_with(&format!("cannot read {name}: ")));
        assert!(read("/dev/zero", &[(0, 1)]).unwrap_err().message.contains("only a regular file"));
    }
}
