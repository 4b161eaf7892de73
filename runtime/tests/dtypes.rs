//! Element types beyond the usual ones: torch's wider unsigned integers and complex numbers of two float64.
mod support;

use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};
use support::{alone, refusal};
use xlazy::prelude::*;

#[test]
fn wider_unsigned_integers() {
    let _alone = alone();
    let x = tensor([65535, 1, 40000]).to(U16);
    assert_eq!((&x + 1).to_vec::<u16>(), [0, 2, 40001]);
    assert_eq!((&x * &x).dtype(), U16);
    assert_eq!((&x * 0.5).dtype(), F32);
    assert_eq!((&x + &tensor([0.5])).to_vec::<f32>(), [65535.5, 1.5, 40000.5]);
    assert_eq!(x.gt(39999).to_vec::<bool>(), [true, false, true]);
    assert_eq!((x.max().item(), x.min().item(), x.argsort(0, false).to_vec::<i64>()), (65535.0, 1.0, vec![1, 2, 0]));
    let wide = tensor([-1, 3]).to(U32);
    assert_eq!(wide.to_vec::<u32>(), [u32::MAX, 3]);
    assert_eq!(wide.to(F64).to_vec::<f64>(), [4294967295.0, 3.0]);
    assert_eq!((&wide / &wide).dtype(), F32);
    let most = Tensor::from_vec(vec![u64::MAX, 7, 1 << 63], [3]);
    assert_eq!(most.to_vec::<u64>(), [u64::MAX, 7, 1 << 63]);
    assert_eq!((&most - 1).to_vec::<u64>(), [u64::MAX - 1, 6, (1 << 63) - 1]);
    assert_eq!(most.max().reshape([1]).to_vec::<u64>(), [u64::MAX]);
    assert_eq!(most.min().reshape([1]).to_vec::<u64>(), [7]);
    assert_eq!(most.sort(0, true).0.to_vec::<u64>(), [u64::MAX, 1 << 63, 7]);
}

/// As `add_` and its like: `+=` binds the name to a new tensor, and that is of the dtype it was.
#[test]
fn assignments_keep_the_dtype_or_are_refused() {
    let _alone = alone();
    let (whole, broken) = (tensor([1, 2]), tensor([0.5, 1.5]));
    let assigned = |x: &Tensor, y: &Tensor| {
        let (mut a, mut b, mut c) = (x.clone(), x.clone(), x.clone());
        a += y;
        b -= y;
        c *= y;
        [a, b, c].map(|t| t.dtype())
    };
    assert_eq!(assigned(&broken, &whole), [F32; 3]);
    assert_eq!(assigned(&broken.half(), &broken), [F16; 3]);
    assert_eq!(assigned(&broken, &broken.double()), [F32; 3]);
    assert_eq!(assigned(&whole.to(U8), &whole), [U8; 3]);
    assert_eq!(assigned(&whole, &whole.to(I32)), [I64; 3]);
    let before = whole.clone();
    let refused = [
        refusal(|| before.clone().add_assign(&broken)),
        refusal(|| before.clone().sub_assign(0.5)),
        refusal(|| before.clone().mul_assign(2.0)),
        // As in torch, where a division gives floats.
        refusal(|| before.clone().div_assign(2)),
        refusal(|| before.gt(1).add_assign(1)),
    ];
    for (said, op) in refused.iter().zip(["+=", "-=", "*=", "/=", "+="]) {
        assert!(said.contains(op) && said.contains("cannot be put into a tensor of"), "{op}: {said}");
    }
    assert_eq!(whole.to_vec::<i64>(), [1, 2]);
}

#[test]
fn what_torch_does_not_promote_is_refused_in_its_words() {
    let _alone = alone();
    let (x, y) = (Tensor::ones([2]).to(U16), Tensor::ones([2]));
    for other in [Bool, U8, I8, I16, I32, I64, U32, U64, C64] {
        let said = refusal(|| &x + y.to(other));
        assert!(said.contains("Promotion for uint16, uint32, uint64 types is not supported"), "{other}: {said}");
    }
    let said = [
        refusal(|| cat(&[&x, &y.to(I32)], 0)),
        refusal(|| stack(&[&x, &y.to(I64)], 0)),
        refusal(|| x.where_(&y.gt(0.0), y.to(U32))),
        refusal(|| x.clamp(y.to(I16), y.to(I16))),
        refusal(|| x.eq(y.to(I32))),
    ];
    for said in said {
        assert!(said.contains("Promotion for uint16, uint32, uint64 types is not supported"), "{said}");
    }
    assert_eq!(cat(&[&x, &x], 0).dtype(), U16);
    for other in [F16, BF16, F32, F64] {
        assert_eq!((&x * y.to(other)).dtype(), other);
    }
    assert_eq!((&x + tensor(3)).dtype(), U16, "an integer without dimensions is a number");
}

#[test]
fn complex_numbers_of_float64() {
    let _alone = alone();
    let z = tensor([3.0, -1.0]).double().complex(&Tensor::from_slice(&[4.0, 1e-12], [2]));
    assert_eq!(z.dtype(), C128);
    assert_eq!(z.abs().to_vec::<f64>(), [5.0, 1.0]);
    let square = &z * &z;
    assert_eq!((square.real().to_vec::<f64>(), square.imag().to_vec::<f64>()), (vec![-7.0, 1.0], vec![24.0, -2e-12]));
    assert_eq!((&z + tensor([1.0, 1.0])).dtype(), C128);
    assert_eq!((tensor([1.0]).complex(&tensor([0.0])) * tensor([2.0]).double()).dtype(), C128);
    assert_eq!((tensor([1.0]).double() * tensor(1.0).complex(&tensor(1.0))).dtype(), C128);
    assert_eq!((tensor([1.0]) * tensor(1.0).double().complex(&tensor(1.0).double())).dtype(), C64);
    // A transform keeps the digits.
    let x = (Tensor::arange(0, 8, 1).double() * 0.3).sin();
    let back = x.fft(None, -1, FftNorm::Backward).ifft(None, -1, FftNorm::Backward);
    assert_eq!(back.dtype(), C128);
    assert!((back.real() - &x).abs().max().item() < 1e-15);
    let w = x.detach().requires_grad_(true);
    let power = w.fft(None, -1, FftNorm::Backward).abs().square().sum();
    let dw = grad(&power, &[&w]).remove(0).unwrap();
    assert!((dw - &x * 16.0).abs().max().item() < 1e-12);
    let path = std::env::temp_dir().join(format!("xlazy-complex-{}.safetensors", std::process::id()));
    let said = nn::save(&path, &[("z".into(), z)]).unwrap_err().to_string();
    assert!(said.contains("c128") && said.contains("`z`") && said.contains(".real()"), "{said}");
}

#[test]
fn integers_that_were_cut_are_joined_bit_by_bit() {
    let _alone = alone();
    let (x, y) = (tensor([1, 2, 3, 300]), tensor([4, 6, 6, -7]));
    for narrow in [I8, I16, I32, U8, U16] {
        let (a, b) = (x.to(narrow), y.to(narrow));
        let joined = a.bitwise_or(&b).bitwise_and(b.maximum(&a)).to(I64);
        let of = |v: i64| tensor(v).to(narrow).item_i64();
        let expected =
            x.to_vec::<i64>().into_iter().zip(y.to_vec::<i64>()).map(|(a, b)| of(of(a | b) & of(a).max(of(b))));
        assert_eq!(joined.to_vec::<i64>(), expected.collect::<Vec<_>>(), "{narrow}");
    }
}
