//! What xlazy tells as data is what docs/insight.schema.json says, field by field.
#[path = "../../tests/support/schema.rs"]
mod schema;

use schema::Schema;
use std::path::Path;
use xlazy::insight::{self, Cause, Class, Origin};
use xlazy::prelude::*;

fn schema() -> Schema {
    Schema::read(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
}

#[test]
fn the_enums_are_the_schemas() {
    let schema = schema();
    assert_eq!(schema.names("cause"), Cause::ALL.map(Cause::name));
    assert_eq!(schema.names("class"), Class::ALL.map(Class::name));
    assert_eq!(schema.names("origin"), Origin::ALL.map(Origin::name));
}

#[test]
fn every_answer_is_of_the_schema() {
    let schema = schema();
    let pending = || schema.check("pending", &insight::pending_json());
    let compiles = || schema.check("compiles", &insight::compiles_json());
    assert!(pending()["next"].is_null() && compiles().as_array().unwrap().is_empty());
    let x = Tensor::ones([8, 4]);
    let y = &x * 2.0 + 1.0;
    let next = pending();
    assert_eq!(next["next"]["origin"], "compiled");
    assert_eq!(next["next"]["results_bytes"], 2 * 8 * 4 * 4);
    assert_eq!(next["pending"][1]["nodes"], 3, "{next}");
    sync();
    let line = line!() + 1;
    let step = |n: i64| x.narrow(0, n, 2).sum().item();
    assert_eq!([0, 1, 2].map(step), [8.0; 3]);
    let _short = x.narrow(0, 0, 3).matmul(&Tensor::ones([4, 4])).sum().item() + y.sum().item();
    let all = compiles();
    let all = all.as_array().unwrap();
    assert!(all.iter().any(|c| c["why"]["class"] == "index"), "{all:#?}");
    assert!(all.iter().all(|c| c["memory"]["arguments"].is_u64() && c["flops"].is_number()), "{all:#?}");
    let healed = schema.check("healed", &insight::healed_json());
    assert_eq!((&healed[0]["op"], &healed[0]["site"]["line"]), (&"slice".into(), &line.into()));
    assert!(schema.check("budget", &insight::budget_json())["compiles"].is_null());
    insight::set_budget(Some(3));
    assert_eq!(schema.check("budget", &insight::budget_json())["compiles"], 3);
    let metrics = schema.check("metrics", &insight::metrics::report_json());
    assert_eq!(metrics["counters"]["UncachedCompile"], all.len());
    insight::events().iter().for_each(|e| drop(schema.check("sync", &insight::event_json(e))));
    assert!(insight::events().iter().any(|e| e.origin == Origin::Memory), "the third step compiled nothing");
}
