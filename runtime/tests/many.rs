//! Sixty-four devices: more than this machine has cores.
mod support;

use xlazy::prelude::*;

const N: usize = 64;

#[test]
fn sixty_four_devices_run_one_program() {
    let _alone = support::alone_on(N);
    let mesh = Mesh::new(&[("data", 16), ("model", 4)]);
    let x = Tensor::ones([64, 32]).mark_sharding(&mesh, &[Some("data"), Some("model")]);
    let w = Tensor::ones([32, 8]).mark_sharding(&mesh, &[Some("model"), None]);
    assert_eq!(x.matmul(&w).sum().item(), (64 * 32 * 8) as f64);
    let sums = spawn(N, |rank| {
        let x = tensor([rank as f32, 1.0]);
        xm::all_reduce(xm::Sum, &[&x], 1.0, ()).remove(0).to_vec::<f32>()
    });
    assert!(sums.iter().all(|s| *s == [(N * (N - 1) / 2) as f32, N as f32]));
}
