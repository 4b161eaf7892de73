//! Ops of StableHLO text, and calls by name: what they compute, their types and gradients, what is said of wrong ones.
mod support;

use support::{alone, compiles, refusal};
use xlazy::prelude::*;

/// `x / (1 + |x|)`, and the sign of x beside it.
fn softsign() -> CustomOp {
    custom_op("softsign", |types| {
        let t = &types[0];
        format!(
            "func.func public @softsign(%x: {t}) -> ({t}, {t}) {{
               %d = func.call @one_more(%x) : ({t}) -> {t}
               %y = stablehlo.divide %x, %d : {t}
               %s = stablehlo.sign %x : {t}
               return %y, %s : {t}, {t}
             }}
             func.func @one_more(%x: {t}) -> {t} {{
               %a = stablehlo.abs %x : {t}
               %one = stablehlo.constant dense<1.0> : {t}
               %d = stablehlo.add %a, %one : {t}
               return %d : {t}
             }}"
        )
    })
}

fn differentiable() -> CustomOp {
    softsign().register_autograd(|x, _, dy| vec![dy[0].as_ref().map(|dy| dy / (x[0].abs() + 1.0).square())])
}

#[test]
fn text_computes_among_other_ops() {
    let _alone = alone();
    let x = tensor([1.0, -3.0, 0.0]);
    let op = softsign();
    let all = op.call_all(&[&(&x * 2.0)]);
    assert_eq!(all[1].to_vec::<f32>(), [1.0, -1.0, 0.0]);
    let plain = (&x * 2.0) / ((&x * 2.0).abs() + 1.0);
    assert_eq!(all[0].to_vec::<f32>(), plain.to_vec::<f32>());
    // One text serves all dtypes and shapes, each a program; defined again it is the same op.
    let wide = softsign().call(&[&tensor([[0.5, 1.0]]).double()]);
    assert_eq!((wide.dtype(), wide.shape().to_vec()), (F64, vec![1, 2]));
    assert_eq!(compiles(|| drop(softsign().call(&[&(&x * 3.0)]).to_vec::<f32>())), 0);
    // Twice in one program, and in the body of a loop.
    let y = op.call(&[&op.call(&[&x])]);
    let rows = map(|row: Tensor| op.call(&[&row]), &x);
    assert_eq!((y.shape(), rows.to_vec::<f32>()), (x.shape(), op.call(&[&x]).to_vec::<f32>()));
}

#[test]
fn gradients_are_what_is_registered() {
    let _alone = alone();
    let x = tensor([1.0, -3.0]).requires_grad_(true);
    let of = |y: Tensor| grad(&(y * tensor([2.0, 5.0])).sum(), &[&x]).remove(0).unwrap();
    let dx = of(differentiable().call(&[&x]));
    assert_eq!(dx.to_vec::<f32>(), of(&x / (x.abs() + 1.0)).to_vec::<f32>());
    let looped = of(map(|row: Tensor| differentiable().call(&[&row]), &x));
    assert_eq!(looped.to_vec::<f32>(), dx.to_vec::<f32>());
    let none = custom_op("id", |t| format!("func.func @f(%x: {0}) -> {0} {{ return %x : {0} }}", t[0]));
    let said = refusal(|| none.call(&[&x]).sum().backward());
    assert!(said.contains("`id` has no gradient") && said.contains("register_autograd"), "{said}");
    let short = none.register_autograd(|_, _, _| vec![]);
    assert!(refusal(|| short.call(&[&x]).sum().backward()).contains("gives 0 tensors, and the op takes 1"));
}

#[test]
fn wrong_texts_and_operands_are_said() {
    let _alone = alone();
    let x = tensor([1.0, 2.0]);
    let op = |text: &'static str| custom_op("mine", move |_| text.into());
    let fixed = op("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }");
    let said = refusal(|| fixed.call(&[&x]));
    assert!(said.contains("f32[2]") && said.contains("`mine` takes (f32[4])"), "{said}");
    assert!(refusal(|| op("module {}").call(&[&x])).contains("func.func"));
    assert!(refusal(|| op("func.func @f(%x: tensor<?xf32>) -> tensor<f32> {}").call(&[&x])).contains("sizes"));
    assert!(refusal(|| op("func.func @f(%x: tensor<2xf32>) { return }").call(&[&x])).contains("gives nothing"));
    let nonsense = op("func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { %y = stablehlo.nonsense %x }");
    let said = refusal(|| nonsense.call(&[&x]));
    assert!(said.contains("nonsense"), "{said}");
    assert_eq!((x * 2.0).to_vec::<f32>(), [2.0, 4.0]);
}

#[test]
fn calls_by_name() {
    let _alone = alone();
    let x = tensor([1.0, 2.0]);
    // What XLA knows on every platform: an annotation that gives its operand.
    let y = custom_call("Sharding", &[&(&x * 3.0)], &[(F32, [2].into())], "mhlo.sharding = \"{replicated}\"").remove(0);
    assert_eq!((y + 1.0).to_vec::<f32>(), [4.0, 7.0]);
    let said = refusal(|| custom_call("no_such_kernel", &[&x], &[(F32, [2].into())], ""));
    assert!(said.contains("no_such_kernel"), "{said}");
}

#[test]
fn each_op_of_one_text_has_its_own_gradient() {
    let _alone = alone();
    let text = |types: &[String]| {
        let t = &types[0];
        // A name in a comment is no function's: @f2 is none.
        format!(
            "// @squared2\nfunc.func  public @squared(%x: {t}) -> {t} {{ %y = stablehlo.multiply %x, %x : {t}\n return %y : {t} }}"
        )
    };
    let right =
        custom_op("squared", text).register_autograd(|x, _, dy| vec![dy[0].as_ref().map(|dy| dy * &x[0] * 2.0)]);
    let wrong = custom_op("squared", text).register_autograd(|_, _, dy| vec![dy[0].as_ref().map(|dy| dy * 100.0)]);
    let x = tensor([3.0]).requires_grad_(true);
    let y = right.call(&[&x]);
    let (other, plain) = (wrong.call(&[&x]), custom_op("squared", text).call(&[&x.detach()]));
    assert_eq!(plain.to_vec::<f32>(), [9.0]);
    assert_eq!(grad(&y.sum(), &[&x])[0].as_ref().unwrap().to_vec::<f32>(), [6.0]);
    assert_eq!(grad(&other.sum(), &[&x])[0].as_ref().unwrap().to_vec::<f32>(), [100.0]);
}
