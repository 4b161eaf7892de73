//! Meshes that are no grid of the first devices: over the slices of a pod, and of ranks.
use super::{Mesh, is, too_few};

impl Mesh {
    /// The mesh whose axes are each so long within a slice and over as many slices; `slices` are the client's devices of each.
    ///
    /// Errors: why it is none, as a sentence.
    pub fn of_slices(ici: &[(&str, usize)], dcn: &[(&str, usize)], slices: &[Vec<u8>]) -> Result<Mesh, String> {
        let over = |name: &str| dcn.iter().find(|(n, _)| *n == name).map_or(1, |(_, size)| *size);
        if let Some((name, _)) = dcn.iter().find(|(n, _)| ici.iter().all(|(i, _)| i != n)) {
            return Err(format!(
                "`{name}` is an axis over slices only: name it within them, too, with size 1 at least"
            ));
        }
        let sizes: Vec<(&str, usize)> = ici.iter().map(|(name, size)| (*name, size * over(name))).collect();
        let plain = Mesh::of(&sizes, slices.iter().map(Vec::len).sum())?;
        let within: usize = ici.iter().map(|(_, size)| size).product();
        let wanted: usize = ici.iter().map(|(name, _)| over(name)).product();
        if wanted > slices.len() {
            let have = xlazy_mime::count(slices.len(), "slice");
            return Err(format!("the axes go over {wanted} slices, and there {} {have}", is(slices.len())));
        }
        if let Some(short) = slices[..wanted].iter().find(|s| s.len() < within) {
            let have = xlazy_mime::count(short.len(), "device");
            return Err(format!("the axes take {within} devices of each slice, and one has {have}"));
        }
        // Along each axis the devices of one slice are neighbours.
        let device = |position: usize| {
            let (mut slice, mut place) = (0, 0);
            for (axis, (name, size)) in ici.iter().enumerate() {
                let at = plain.coordinate(position, axis);
                slice = slice * over(name) + at / size;
                place = place * size + at % size;
            }
            slices[slice][place]
        };
        let devices: Vec<u8> = (0..plain.size()).map(device).collect();
        if plain.devices() == devices {
            return Ok(plain);
        }
        let says = |axes: &[(&str, usize)]| axes.iter().map(|(n, s)| format!("{n}={s}")).collect::<Vec<_>>().join(", ");
        let name = format!("mesh({}; slices {})", says(&sizes), says(dcn));
        Mesh::known(name, plain.axes().to_vec(), devices, false)
    }

    /// So many devices, each of which runs the whole program, on data of its own: replicas, as XLA calls them.
    ///
    /// Errors: there are fewer devices, as a sentence.
    pub fn of_ranks(ranks: usize, devices: usize) -> Result<Mesh, String> {
        match ranks {
            0 => Err("no rank at all: there is one at least".into()),
            _ if ranks > devices => Err(too_few(&xlazy_mime::count(ranks, "rank"), ranks, devices)),
            _ => Mesh::known(
                format!("ranks({ranks})"),
                vec![("rank".to_owned(), ranks)],
                (0..ranks as u8).collect(),
                true,
            ),
        }
    }
}
